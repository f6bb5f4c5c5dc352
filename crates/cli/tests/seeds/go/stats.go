package main

import (
    "context"
    "fmt"
    "math"

    "github.com/bitop-dev/agent/pkg/ai"
    "github.com/bitop-dev/agent/pkg/tools"
)

// StatsTool computes descriptive statistics on a list of numbers.
type StatsTool struct{}

func (t *StatsTool) Definition() ai.ToolDefinition {
    return ai.ToolDefinition{
        Name:        "stats",
        Description: "Compute descriptive statistics (min, max, mean, stddev) on a list of numbers.",
        Parameters: tools.MustSchema(tools.SimpleSchema{
            Properties: map[string]tools.Property{
                "numbers": {
                    Type:        "array",
                    Description: "List of numeric values",
                },
                "precision": {
                    Type:        "integer",
                    Description: "Decimal places in output (default 2)",
                },
            },
            Required: []string{"numbers"},
        }),
    }
}

func (t *StatsTool) Execute(
    _ context.Context, _ string,
    params map[string]any, _ tools.UpdateFn,
) (tools.Result, error) {
    raw, ok := params["numbers"].([]any)
    if !ok || len(raw) == 0 {
        return tools.ErrorResult(fmt.Errorf("numbers must be a non-empty array")), nil
    }

    precision := 2
    if p, ok := params["precision"].(float64); ok {
        precision = int(p)
    }

    vals := make([]float64, len(raw))
    for i, v := range raw {
        switch n := v.(type) {
        case float64:
            vals[i] = n
        default:
            return tools.ErrorResult(fmt.Errorf("element %d is not a number", i)), nil
        }
    }

    // Compute
    min, max := vals[0], vals[0]
    sum := 0.0
    for _, v := range vals {
        sum += v
        if v < min { min = v }
        if v > max { max = v }
    }
    mean := sum / float64(len(vals))
    variance := 0.0
    for _, v := range vals {
        d := v - mean
        variance += d * d
    }
    stddev := math.Sqrt(variance / float64(len(vals)))

    format := fmt.Sprintf("%%.%df", precision)
    result := fmt.Sprintf(
        "n=%d  min="+format+"  max="+format+"  mean="+format+"  stddev="+format,
        len(vals), min, max, mean, stddev,
    )

    return tools.Result{
        Content: []ai.ContentBlock{ai.TextContent{Type: "text", Text: result}},
        Details: map[string]any{
            "n": len(vals), "min": min, "max": max, "mean": mean, "stddev": stddev,
        },
    }, nil
}

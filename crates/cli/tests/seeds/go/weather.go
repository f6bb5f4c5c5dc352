package mytools

import (
    "context"
    "fmt"

    "github.com/nickcecere/agent/pkg/ai"
    "github.com/nickcecere/agent/pkg/tools"
)

// WeatherTool fetches current weather for a city.
type WeatherTool struct {
    apiKey string
}

func NewWeatherTool(apiKey string) *WeatherTool {
    return &WeatherTool{apiKey: apiKey}
}

func (t *WeatherTool) Definition() ai.ToolDefinition {
    return ai.ToolDefinition{
        Name:        "get_weather",
        Description: "Get the current weather for a city.",
        Parameters: tools.MustSchema(tools.SimpleSchema{
            Properties: map[string]tools.Property{
                "city": {
                    Type:        "string",
                    Description: "City name, e.g. 'San Francisco'",
                },
                "units": {
                    Type:        "string",
                    Description: "Temperature units: 'celsius' or 'fahrenheit'",
                    Enum:        []any{"celsius", "fahrenheit"},
                },
            },
            Required: []string{"city"},
        }),
    }
}

func (t *WeatherTool) Execute(
    ctx context.Context,
    callID string,
    params map[string]any,
    onUpdate tools.UpdateFn,
) (tools.Result, error) {
    city, _ := params["city"].(string)
    units, _ := params["units"].(string)
    if units == "" {
        units = "celsius"
    }

    // Stream a progress update while fetching
    if onUpdate != nil {
        onUpdate(tools.TextResult(fmt.Sprintf("Fetching weather for %s...", city)))
    }

    // Fetch weather (pseudocode)
    temp, condition, err := fetchWeather(ctx, t.apiKey, city, units)
    if err != nil {
        return tools.ErrorResult(err), nil
    }

    return tools.TextResult(fmt.Sprintf(
        "Weather in %s: %d°%s, %s",
        city, temp, unitSymbol(units), condition,
    )), nil
}

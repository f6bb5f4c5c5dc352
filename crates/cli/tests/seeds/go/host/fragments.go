package main

import (
	"context"
	"fmt"
	"os"

	"MODULE/pkg/ai"
	"MODULE/pkg/tools"
)

const base64Data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNoAAAAggCB2kUIOwAAAABJRU5ErkJggg=="
const combined = "fetched"

func fetch(_ context.Context, url string) (string, error) { return url, nil }

type MyTool struct{ apiKey string }

func (t *MyTool) Definition() ai.ToolDefinition {
	return ai.ToolDefinition{
		Name:        "my_tool",
		Description: "Fetches.",
		Parameters: tools.MustSchema(tools.SimpleSchema{
			Properties: map[string]tools.Property{"urls": {Type: "array"}},
		}),
	}
}

PROGRESS

type AnotherTool struct{}

func (t *AnotherTool) Definition() ai.ToolDefinition {
	return ai.ToolDefinition{
		Name:        "another_tool",
		Description: "Returns.",
		PARAMETERS
	}
}

func (t *AnotherTool) Execute(_ context.Context, _ string, params map[string]any, _ tools.UpdateFn) (tools.Result, error) {
	city := params["city"].(string)
	switch params["count"].(float64) {
	RETURNING
	}
	return tools.Result{}, nil
}

func main() {
	REGISTER
	reg.Register(&StatsTool{})
	reg.Serve()
}

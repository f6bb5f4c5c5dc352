package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"os"

	"MODULE/pkg/ai"
)

INTERFACE

type Result struct {
	Content []ai.ContentBlock
	Details map[string]any
	failed  bool
}

type Property struct {
	Type        string `json:"type"`
	Description string `json:"description,omitempty"`
	Enum        []any  `json:"enum,omitempty"`
}

type SimpleSchema struct {
	Properties map[string]Property
	Required   []string
}

func MustSchema(s SimpleSchema) json.RawMessage {
	schema := map[string]any{"type": "object", "properties": s.Properties}
	if len(s.Required) > 0 {
		schema["required"] = s.Required
	}
	text, err := json.Marshal(schema)
	if err != nil {
		panic(err)
	}
	return text
}

func TextResult(text string) Result {
	return Result{Content: []ai.ContentBlock{ai.TextContent{Type: "text", Text: text}}}
}

func ErrorResult(err error) Result {
	result := TextResult(err.Error())
	result.failed = true
	return result
}

type Registry struct{ tools []Tool }

func NewRegistry() *Registry { return &Registry{} }

func (r *Registry) Register(tool Tool) { r.tools = append(r.tools, tool) }

type message struct {
	Type   string         `json:"type"`
	Name   string         `json:"name"`
	CallID string         `json:"call_id"`
	Params map[string]any `json:"params"`
}

// Serve speaks the protocol of plugins for all tools, with updates and details.
func (r *Registry) Serve() {
	out := json.NewEncoder(os.Stdout)
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 0, 64*1024), 16*1024*1024)
	for in.Scan() {
		var got message
		if json.Unmarshal(in.Bytes(), &got) != nil {
			continue
		}
		switch got.Type {
		case "describe":
			var all []ai.ToolDefinition
			for _, tool := range r.tools {
				all = append(all, tool.Definition())
			}
			out.Encode(map[string]any{"protocol": 2, "tools": all})
		case "call":
			say := func(kind string, result Result) {
				out.Encode(map[string]any{
					"type": kind, "call_id": got.CallID, "content": result.Content,
					"error": result.failed, "details": result.Details,
				})
			}
			for _, tool := range r.tools {
				if tool.Definition().Name == got.Name {
					result, err := tool.Execute(context.Background(), got.CallID, got.Params,
						func(update Result) { say("update", update) })
					if err != nil {
						result = ErrorResult(err)
					}
					say("result", result)
				}
			}
		}
	}
}

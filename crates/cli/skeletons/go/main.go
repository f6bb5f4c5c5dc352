// {{name}}: a plugin for haft.
//
// It reads one JSON message per line from stdin and answers each with one line on
// stdout. Never print anything else to stdout: logs go to stderr.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

const name = "{{name}}"

// All that a model knows of the tool. Be specific.
var definition = map[string]any{
	"name":        name,
	"description": "Turn a text into upper case.",
	"parameters": map[string]any{
		"type": "object",
		"properties": map[string]any{
			"text": map[string]any{"type": "string", "description": "The text"},
		},
		"required": []string{"text"},
	},
}

// The tool itself. The model sees the error text.
func run(params map[string]any) (string, error) {
	text, ok := params["text"].(string)
	if !ok {
		return "", errors.New("text must be a string")
	}
	return strings.ToUpper(text), nil
}

func reply(text string, failed bool) map[string]any {
	return map[string]any{
		"content": []any{map[string]any{"type": "text", "text": text}},
		"error":   failed,
	}
}

func call(message map[string]any) map[string]any {
	if given, found := message["name"]; found && given != name {
		return reply(fmt.Sprint("unknown tool: ", given), true)
	}
	params, ok := message["params"].(map[string]any)
	if _, found := message["params"]; found && !ok {
		return reply("params must be an object", true)
	}
	text, err := run(params)
	if err != nil {
		return reply(err.Error(), true)
	}
	return reply(text, false)
}

func answer(line []byte) map[string]any {
	var value any
	if err := json.Unmarshal(line, &value); err != nil {
		return reply("malformed JSON: "+err.Error(), true)
	}
	message, ok := value.(map[string]any)
	if !ok {
		return reply("a message must be a JSON object", true)
	}
	var result map[string]any
	switch message["type"] {
	case "describe":
		return definition
	case "call":
		result = call(message)
	default:
		result = reply(fmt.Sprint("unknown message type: ", message["type"]), true)
	}
	if id, found := message["call_id"]; found {
		result["call_id"] = id
	}
	return result
}

func main() {
	input := bufio.NewReader(os.Stdin)
	output := json.NewEncoder(os.Stdout)
	for {
		line, err := input.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			if output.Encode(answer(line)) != nil {
				return
			}
		}
		if err != nil {
			return // stdin has ended, and so does the plugin
		}
	}
}

package main

import (
    "bufio"
    "encoding/json"
    "fmt"
    "os"
)

type inMsg struct {
    Type   string          `json:"type"`
    Tools  json.RawMessage `json:"tools,omitempty"`
    Name   string          `json:"name,omitempty"`
    CallID string          `json:"call_id,omitempty"`
    Params map[string]any  `json:"params,omitempty"`
}

type outMsg struct {
    Type    string `json:"type"`
    CallID  string `json:"call_id,omitempty"`
    Content []struct {
        Type string `json:"type"`
        Text string `json:"text"`
    } `json:"content,omitempty"`
    IsError bool             `json:"is_error,omitempty"`
    Tools   []map[string]any `json:"tools,omitempty"`
}

func main() {
    scanner := bufio.NewScanner(os.Stdin)
    enc := json.NewEncoder(os.Stdout)

    for scanner.Scan() {
        var msg inMsg
        if err := json.Unmarshal(scanner.Bytes(), &msg); err != nil {
            continue
        }
        switch msg.Type {
        case "init":
            enc.Encode(outMsg{
                Type: "init",
                Tools: []map[string]any{{
                    "name":        "my_plugin_tool",
                    "description": "Does something useful.",
                    "parameters": map[string]any{
                        "type": "object",
                        "properties": map[string]any{
                            "input": map[string]any{"type": "string"},
                        },
                        "required": []string{"input"},
                    },
                }},
            })
        case "call":
            input, _ := msg.Params["input"].(string)
            result := fmt.Sprintf("Processed: %s", input)
            enc.Encode(outMsg{
                Type:   "result",
                CallID: msg.CallID,
                Content: []struct {
                    Type string `json:"type"`
                    Text string `json:"text"`
                }{{Type: "text", Text: result}},
            })
        }
    }
}

// bash_plugin: runs a shell command with a time limit, as a plugin for haft.
//
// A plugin reads one JSON message per line from stdin and answers each with one
// line on stdout. Everything else goes to stderr.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	name           = "bash_plugin"
	defaultTimeout = 30.0
	mostTimeout    = 600.0
	mostOutput     = 50 * 1024
)

var definition = json.RawMessage(`{"name":"` + name + `",` +
	`"description":"Run a shell command with bash and return what it prints, stdout and stderr together. ` +
	`Ends the command, and everything it started, when its time is over.",` +
	`"parameters":{"type":"object","properties":{` +
	`"command":{"type":"string","description":"The command, as typed into a shell"},` +
	`"timeout":{"type":"number","description":"Seconds it may take, up to 600 (default 30)"}},` +
	`"required":["command"]}}`)

type message struct {
	Type   string          `json:"type"`
	Name   *string         `json:"name"`
	CallID json.RawMessage `json:"call_id"`
	Params json.RawMessage `json:"params"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type reply struct {
	Content []text          `json:"content"`
	Error   bool            `json:"error"`
	CallID  json.RawMessage `json:"call_id,omitempty"`
}

func success(words string) reply {
	return reply{Content: []text{{"text", words}}}
}

func failure(words string) reply {
	return reply{Content: []text{{"text", words}}, Error: true}
}

// The tool itself.
func bash(command string, timeout time.Duration) reply {
	reader, writer, err := os.Pipe()
	if err != nil {
		return failure(err.Error())
	}
	defer reader.Close()
	// Without a Stdin, a command reads from /dev/null. It must not get ours, because it
	// would consume the messages.
	cmd := exec.Command("bash", "-c", command)
	cmd.Stdout, cmd.Stderr = writer, writer
	// Its own process group, so that its children can be ended with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	writer.Close()
	if err != nil {
		return failure(err.Error())
	}
	endGroup := func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	timer := time.AfterFunc(timeout, endGroup)

	output := make(chan string)
	go func() { output <- readSome(reader) }()
	err = cmd.Wait()
	timedOut := !timer.Stop()
	// Background processes would hold the pipe open.
	endGroup()
	_ = reader.SetReadDeadline(time.Now().Add(time.Second))

	printed := strings.TrimRight(<-output, "\n")
	var exit *exec.ExitError
	switch {
	case timedOut:
		return failure(join(printed, fmt.Sprintf("timed out after %gs", timeout.Seconds())))
	case errors.As(err, &exit) && exit.Exited():
		return failure(join(printed, fmt.Sprintf("exit code: %d", exit.ExitCode())))
	case err != nil:
		return failure(join(printed, err.Error()))
	case printed == "":
		return success("(no output)")
	}
	return success(printed)
}

// readSome keeps the first mostOutput bytes and reads the rest, so that the command does
// not stall.
func readSome(reader io.Reader) string {
	var kept bytes.Buffer
	_, _ = io.CopyN(&kept, reader, mostOutput)
	left, _ := io.Copy(io.Discard, reader)
	if left > 0 {
		fmt.Fprintf(&kept, "\n[%d more bytes]", left)
	}
	return kept.String()
}

func join(printed, last string) string {
	if printed == "" {
		return last
	}
	return printed + "\n" + last
}

func call(m message) reply {
	if m.Name != nil && *m.Name != name {
		return failure("unknown tool: " + *m.Name)
	}
	params := map[string]any{}
	if m.Params != nil && json.Unmarshal(m.Params, &params) != nil {
		return failure("params must be an object")
	}
	command, ok := params["command"].(string)
	if !ok || strings.TrimSpace(command) == "" {
		return failure("command must be a non-empty string")
	}
	seconds := defaultTimeout
	if given, found := params["timeout"]; found {
		if seconds, ok = given.(float64); !ok || seconds <= 0 {
			return failure("timeout must be a number above 0")
		}
	}
	if seconds > mostTimeout {
		seconds = mostTimeout
	}
	return bash(command, time.Duration(seconds*float64(time.Second)))
}

func answer(line []byte) any {
	var object map[string]json.RawMessage
	var m message
	if !json.Valid(line) {
		return failure("malformed JSON")
	}
	if json.Unmarshal(line, &object) != nil || object == nil || json.Unmarshal(line, &m) != nil {
		return failure("a message must be a JSON object with a type")
	}
	var result reply
	switch m.Type {
	case "describe":
		return definition
	case "call":
		result = call(m)
	default:
		result = failure("unknown message type: " + m.Type)
	}
	result.CallID = m.CallID
	return result
}

func main() {
	// Not a Scanner, which gives up on a line of more than 64 KiB.
	reader := bufio.NewReader(os.Stdin)
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		line = bytes.TrimSpace(line) // also removes the CR of a CRLF
		if len(line) > 0 {
			if err := encoder.Encode(answer(line)); err != nil {
				fmt.Fprintln(os.Stderr, name+":", err)
				return
			}
		}
		if err != nil {
			return // the plugin ends with its input
		}
	}
}

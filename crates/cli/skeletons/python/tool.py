#!/usr/bin/env python3
"""{{name}}: a plugin for haft.

It reads one JSON message per line from stdin and answers each with one line on
stdout. Never print anything else to stdout: logs go to stderr.
"""

import json
import sys

# All that a model knows of the tool. Be specific.
DEFINITION = {
    "name": "{{name}}",
    "description": "Turn a text into upper case.",
    "parameters": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "The text"},
        },
        "required": ["text"],
    },
}


def run(params):
    """The tool itself. Whatever it raises is told to the model."""
    text = params.get("text")
    if not isinstance(text, str):
        raise ValueError("text must be a string")
    return text.upper()


def reply(text, error=False):
    return {"content": [{"type": "text", "text": text}], "error": error}


def call(message):
    if message.get("name", DEFINITION["name"]) != DEFINITION["name"]:
        return reply(f"unknown tool: {message['name']}", error=True)
    params = message.get("params", {})
    if not isinstance(params, dict):
        return reply("params must be an object", error=True)
    try:
        return reply(run(params))
    except Exception as problem:
        return reply(str(problem), error=True)


def answer(line):
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as problem:
        return reply(f"malformed JSON: {problem}", error=True)
    if not isinstance(message, dict):
        return reply("a message must be a JSON object", error=True)
    if message.get("type") == "describe":
        return DEFINITION
    if message.get("type") == "call":
        result = call(message)
    else:
        result = reply(f"unknown message type: {message.get('type')}", error=True)
    if "call_id" in message:
        result["call_id"] = message["call_id"]
    return result


# Whatever the locale says, the protocol is UTF-8.
sys.stdin.reconfigure(encoding="utf-8", errors="replace")
for line in sys.stdin:
    if line.strip():
        # The flush sends the answer now; haft waits for it.
        print(json.dumps(answer(line)), flush=True)

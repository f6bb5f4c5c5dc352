#!/usr/bin/env python3
"""countdown and clock: two tools in one plugin that speaks protocol 2 of haft.

Its definition says "protocol": 2. From then on haft may send the next call before
the last one is answered, so every line carries the call_id it belongs to; updates
may precede a result; and a call can be cancelled. A host that does not know protocol
2 sends one call at a time and finds "content" and "error" where it expects them.
"""

import json
import sys
import threading
from datetime import datetime, timezone

DEFINITION = {
    "protocol": 2,
    "tools": [
        {
            "name": "countdown",
            "description": "Count down to zero and report each step. Takes its time: "
            "other calls are answered meanwhile.",
            "parameters": {
                "type": "object",
                "properties": {
                    "from": {"type": "integer", "description": "Where to start, 1 to 1000"},
                    "seconds": {
                        "type": "number",
                        "description": "Time between two steps, 0 to 60 (default 1)",
                    },
                },
                "required": ["from"],
            },
        },
        {
            "name": "clock",
            "description": "Tell the date and time, in UTC.",
            "parameters": {"type": "object", "properties": {}},
        },
    ],
}


class Call:
    """One running call: reports updates and knows whether it was cancelled."""

    def __init__(self, call_id):
        self.call_id = call_id
        self.cancelled = threading.Event()

    def update(self, text):
        send({"type": "update", "call_id": self.call_id, "content": [block(text)]})


# The tools. Each returns its text and its details, which go to logs and not to the
# model, or raises ValueError with a message for the model.


def countdown(params, call):
    start, seconds = params.get("from"), params.get("seconds", 1)
    if type(start) is not int or not 1 <= start <= 1000:
        raise ValueError("from must be an integer from 1 to 1000")
    if type(seconds) not in (int, float) or not 0 <= seconds <= 60:
        raise ValueError("seconds must be a number from 0 to 60")
    for number in range(start, 0, -1):
        call.update(f"{number}…")
        # Waits for the event instead of sleeping, so that a cancelled call ends at once.
        if call.cancelled.wait(seconds):
            raise ValueError(f"cancelled at {number}")
    return "Lift-off!", {"steps": start}


def clock(_params, _call):
    now = datetime.now(timezone.utc)
    return now.isoformat(timespec="seconds"), {"unix": now.timestamp()}


TOOLS = {"countdown": countdown, "clock": clock}

# The protocol.

running = {}  # call_id → Call; changed only by the reader and at the end of a call
running_lock = threading.Lock()
output_lock = threading.Lock()


def send(message):
    # Without the lock, two threads could mix their lines.
    with output_lock:
        print(json.dumps(message), flush=True)


def block(text):
    return {"type": "text", "text": text}


def finish(call_id, text, error=False, details=None):
    message = {"type": "result", "call_id": call_id, "content": [block(text)], "error": error}
    if details is not None:
        message["details"] = details
    send(message)


def run(tool, params, call):
    try:
        text, details = tool(params, call)
        outcome = (text, False, details)
    except ValueError as problem:
        outcome = (str(problem), True)
    except Exception as problem:  # One bug must not end the plugin: the next call may be fine.
        print(f"{tool.__name__}: {problem!r}", file=sys.stderr)
        outcome = (f"{tool.__name__} failed: {problem}", True)
    with running_lock:
        del running[call.call_id]
    finish(call.call_id, *outcome)


def start(message):
    call_id, name = message.get("call_id"), message.get("name")
    params = message.get("params", {})
    if not isinstance(call_id, str):
        return finish(call_id, "call_id must be a string", error=True)
    if not isinstance(name, str) or name not in TOOLS:
        return finish(call_id, f"unknown tool: {name}", error=True)
    if not isinstance(params, dict):
        return finish(call_id, "params must be an object", error=True)
    call = Call(call_id)
    with running_lock:
        if running.setdefault(call_id, call) is not call:
            return finish(call_id, f"call_id is in use: {call_id}", error=True)
    threading.Thread(target=run, args=(TOOLS[name], params, call)).start()


def cancel(call_id):
    with running_lock:
        # The call may just have ended; its result is then on the way.
        call = running.get(call_id) if isinstance(call_id, str) else None
    if call:
        call.cancelled.set()


def take(line):
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as problem:
        return finish(None, f"malformed JSON: {problem}", error=True)
    if not isinstance(message, dict):
        return finish(None, "a message must be a JSON object", error=True)
    kind, call_id = message.get("type"), message.get("call_id")
    if kind == "describe":
        send(DEFINITION)
    elif kind == "call":
        start(message)
    elif kind == "cancel":
        cancel(call_id)
    else:
        finish(call_id, f"unknown message type: {kind}", error=True)


def main():
    # The protocol is UTF-8 in every locale.
    sys.stdin.reconfigure(encoding="utf-8", errors="replace")
    for line in sys.stdin:
        line = line.strip()  # also removes the CR of a CRLF
        if line:
            take(line)
    # The plugin ends with its input and cancels running calls.
    with running_lock:
        for call in running.values():
            call.cancelled.set()


if __name__ == "__main__":
    main()

"""The agent for editors: its start, its updates, and loading a long session.

The model's side is a recording, so that the time is haft's own.
"""
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

CALLS = 2_499
WORDS = 20_000


def measure(bench, folder, haft, runs):
    shutil.rmtree(folder, ignore_errors=True)
    times = []
    with Editor(haft, home(folder / "start", [answer(text="Hello")])) as editor:
        editor.session()
    for _ in range(max(runs, 20)):
        begun = time.perf_counter()
        with Editor(haft, folder / "start"):
            times.append(time.perf_counter() - begun)
    bench.fact("`haft acp`: start to `initialize` answered", f"{statistics.median(times) * 1000:.1f} ms", "≤ 15 ms")

    words = " ".join(f"word{number}" for number in range(WORDS))
    home(folder / "updates", [answer(text=words)])
    costs, count = [], 0
    for _ in range(max(3, runs // 4)):
        with Editor(haft, folder / "updates") as editor:
            session = editor.session()
            before = editor.seen
            begun = time.perf_counter()
            editor.prompt(session)
            count = editor.seen - before
            costs.append((time.perf_counter() - begun) / count)
    bench.fact(f"an answer of {count} updates, from the prompt to its end, per update", f"{statistics.median(costs) * 1e6:.1f} µs", "≤ 50 µs")

    script = [answer(call=number) for number in range(CALLS)] + [answer(text="Done.")]
    home(folder / "load", script)
    with Editor(haft, folder / "load") as editor:
        session = editor.session()
        editor.prompt(session)
    messages = 2 * CALLS + 2
    times = []
    for _ in range(max(5, runs // 2)):
        with Editor(haft, folder / "load") as editor:
            before = editor.seen
            begun = time.perf_counter()
            editor.request("session/load", editor.place(sessionId=session))
            times.append(time.perf_counter() - begun)
            if editor.seen - before < messages - 2:
                sys.exit(f"acp: only {editor.seen - before} updates for {messages} messages")
    bench.fact(f"loading a session of {messages} messages, half of them results of calls", f"{statistics.median(times) * 1000:.0f} ms", "≤ 500 ms")


def answer(text=None, call=None):
    """A recorded answer: a text, or a call that differs from the others."""
    if text is not None:
        return {"role": "assistant", "parts": [{"type": "text", "text": text}], "stop": "end", "model": "recorded"}
    arguments = {"path": "a.txt", "offset": call + 1, "limit": 3}
    parts = [{"type": "text", "text": f"I read line {call}."}, {"type": "call", "id": f"c{call}", "name": "read", "arguments": arguments}]
    return {"role": "assistant", "parts": parts, "stop": "calls", "model": "recorded"}


def home(folder, answers):
    """A home whose model replays these answers."""
    config = folder / ".config/haft"
    config.mkdir(parents=True)
    (folder / "work").mkdir()
    (folder / "work/a.txt").write_text("".join(f"line {number} of a file\n" for number in range(CALLS + 10)))
    first = {"role": "user", "content": [{"type": "text", "text": "Go."}], "origin": "prompt"}
    about = {"type": "session", "version": 1, "id": "bench", "kind": "agent", "work_dir": "/bench", "toolset": "standard", "provider": "replay", "model": "recorded", "created": "2026-01-01T00:00:00.000Z", "parent": None}
    lines = [about]
    for number, message in enumerate([first, *answers], 1):
        lines.append({"type": "message", "id": number, "parent": number - 1 or None, "time": "2026-01-01T00:00:00.000Z", "message": message})
    (folder / "recording.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = ["provider: replay", f"replay: {folder}/recording.jsonl", f"max_turns: {CALLS + 10}", "context_window: 100000000"]
    (config / "haft.yaml").write_text("\n".join(settings) + "\n")
    return folder


class Editor:
    """A minimal client that only counts the updates."""

    def __init__(self, haft, folder):
        self.folder, self.number, self.seen = folder, 0, 0
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
        self.child = subprocess.Popen([str(haft), "acp"], cwd=folder / "work", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})

    def request(self, method, params):
        self.number += 1
        message = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
        self.child.stdin.flush()
        for line in self.child.stdout:
            if b'"method":"session/update"' in line:
                self.seen += 1
            elif b'"id":%d' % self.number in line:
                found = json.loads(line)
                if "error" in found:
                    sys.exit(f"acp: {method}: {found['error']}")
                return found["result"]
        sys.exit("acp: the agent ended")

    def place(self, **more):
        return {"cwd": str(self.folder / "work"), "mcpServers": [], **more}

    def session(self):
        return self.request("session/new", self.place())["sessionId"]

    def prompt(self, session):
        ended = self.request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": "Go."}]})
        if ended["stopReason"] != "end_turn":
            sys.exit(f"acp: the prompt ended with {ended}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()

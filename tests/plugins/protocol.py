"""One plugin process, spoken to in the raw protocol: what haft does, without haft."""

import json
import os
import queue
import subprocess
import threading
import time

# What haft gives to a plugin, and the poorest locale there is.
ENVIRONMENT = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
ENVIRONMENT |= {"LC_ALL": "C", "DENO_NO_UPDATE_CHECK": "1"}


class Failed(Exception):
    """A plugin did not do what it should."""


def expect(condition, problem):
    if not condition:
        raise Failed(problem)


def shorten(value):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) < 400 else f"{text[:200]} … {text[-100:]}"


class Plugin:
    """A running plugin. Every line it prints must be a JSON object."""

    def __init__(self, command, folder):
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines = queue.Queue()
        self.log = []
        self.readers = [
            threading.Thread(target=self._read, daemon=True),
            threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True),
        ]
        for reader in self.readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def stderr(self):
        return shorten(b"".join(self.log).decode(errors="replace").strip())

    def write(self, data, end=b"\n"):
        """Sends one line. Bytes go as they are, everything else as JSON."""
        if not isinstance(data, bytes):
            # Nothing escaped that need not be, as haft does it.
            data = json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
        try:
            self.process.stdin.write(data + end)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"it has ended; stderr: {self.stderr()}") from None

    def read(self, seconds=20):
        try:
            line = self.lines.get(timeout=seconds)
        except queue.Empty:
            raise Failed(f"no answer in {seconds} s; stderr: {self.stderr()}") from None
        expect(line is not None, f"it ended instead of answering; stderr: {self.stderr()}")
        try:
            message = json.loads(line)
        except ValueError:
            raise Failed(f"a line that is not JSON: {shorten(line)}") from None
        expect(isinstance(message, dict), f"a line not a JSON object: {shorten(line)}")
        return message

    def result(self, seconds=20):
        """The next result, whatever updates come before it, checked for its shape."""
        message = self.read(seconds)
        while message.get("type") == "update":
            message = self.read(seconds)
        expect(
            isinstance(message.get("error"), bool)
            and isinstance(message.get("content"), list)
            and message["content"]
            and all(
                block.get("type") == "text" and isinstance(block.get("text"), str)
                for block in message["content"]
            ),
            f"not the shape of a result: {shorten(message)}",
        )
        return message

    def ask(self, data, end=b"\n"):
        self.write(data, end)
        return self.result()

    def call(self, name, params, call_id="c1"):
        message = self.ask({"type": "call", "name": name, "call_id": call_id, "params": params})
        expect(message.get("call_id") == call_id, f"call_id {call_id!r} came back as {message.get('call_id')!r}")
        return message

    def end(self):
        """Ends its stdin and expects it to follow, in order and in silence."""
        started = time.monotonic()
        self.process.stdin.close()
        try:
            code = self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            raise Failed("it runs on, 2 s after the end of its stdin") from None
        expect(code == 0, f"exit code {code} after the end of its stdin; stderr: {self.stderr()}")
        for reader in self.readers:
            reader.join(timeout=2)
        left = self.lines.get(timeout=2)
        expect(left is None, f"one line too many: {shorten(left)}")
        return time.monotonic() - started


def text(message):
    return "".join(block["text"] for block in message["content"])

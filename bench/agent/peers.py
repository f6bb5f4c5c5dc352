"""The agents that are measured, each in folders of its own and with a key that is none."""
import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path

from .model import Model

HERE = Path(__file__).resolve().parent
PROMPT = "Do what has to be done."
KEY = "sk-no-key-at-all-0123456789"


class Agent:
    """One agent, with a home and a work folder that last as long as it is measured."""

    def __init__(self, folder):
        self.folder = folder / self.name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.home, self.work = self.folder / "home", self.folder / "work"
        self.home.mkdir(parents=True)
        # A project of its own, so that no instructions of others are found above it.
        (self.work / ".git/refs").mkdir(parents=True)
        (self.work / ".git/objects").mkdir()
        (self.work / ".git/HEAD").write_text("ref: refs/heads/main\n")
        for name in ("a.txt", "b.txt"):
            (self.work / name).write_text((name[0] * 63 + "\n") * 64)
        self.env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8"}
        self.set_up()

    def set_up(self):
        pass

    def version(self):
        return json.loads((HERE / "node_modules" / self.package / "package.json").read_text())["version"]

    def run(self, turns, call, watch=False):
        """Lets it work on a prompt. `call` says what the model calls."""
        with Model(turns, call) as model:
            command = [str(part) for part in self.command(f"{model.url}/{self.name}")]
            with (self.folder / "said").open("w") as said:
                begun = time.monotonic_ns()
                child = subprocess.Popen(command, cwd=self.work, env=self.env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
                look = Peak(child.pid) if watch else None
                code = waited(child)
            seen = model.seen().get(self.name)
        if code or not seen or len(seen.came) != turns + 1:
            end = (self.folder / "said").read_text()[-2000:]
            raise RuntimeError(f"{self.name} ended with {code} after {len(seen.came) if seen else 0} of {turns + 1} requests: {end}")
        return Run((seen.came[0] - begun) / 1e9, seen, look.end() if look else None)


def waited(child):
    try:
        return child.wait(300)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


class Run:
    def __init__(self, start, seen, peak):
        self.start, self.seen, self.peak = start, seen, peak


class Peak:
    """The most memory of a process, looked at as it works."""

    def __init__(self, pid):
        self.pid, self.most = pid, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()

    def look(self):
        while not self.over.wait(0.005):
            try:
                self.most = max(self.most, int(Path(f"/proc/{self.pid}/status").read_text().split("VmHWM:")[1].split()[0]))
            except (OSError, IndexError):
                return

    def end(self):
        self.over.set()
        self.thread.join()
        return self.most / 1024


class Haft(Agent):
    name = "haft"
    protocol = "openai-completions"

    def __init__(self, folder, binary, protocol=None):
        self.binary = binary
        self.protocol = protocol or self.protocol
        super().__init__(folder)

    def command(self, url):
        config = {"provider": self.protocol, "model": "scripted", "base_url": url, "api_key": KEY, "max_turns": 10_000}
        (self.folder / "haft.yaml").write_text(json.dumps(config))
        return [self.binary, "run", "--config", self.folder / "haft.yaml", "--dir", self.work, PROMPT]

    def forget(self):
        """As on a machine that has not seen it before."""
        shutil.rmtree(self.home)
        self.home.mkdir()

    read = staticmethod(lambda number, tools: ("read", {"path": "ab"[number % 2] + ".txt"}))
    shell = staticmethod(lambda number, tools: ("bash", {"command": f"true # {number}"}))


class Pi(Agent):
    name = "pi"
    package = "@mariozechner/pi-coding-agent"

    def set_up(self):
        self.env |= {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0", "PI_CODING_AGENT_DIR": str(self.home / "agent")}
        (self.home / "agent").mkdir()

    def command(self, url):
        model = {"id": "scripted", "contextWindow": 1_000_000, "maxTokens": 8192}
        provider = {"baseUrl": url, "api": "openai-completions", "apiKey": KEY, "models": [model]}
        (self.home / "agent/models.json").write_text(json.dumps({"providers": {"scripted": provider}}))
        return ["node", HERE / "node_modules" / self.package / "dist/cli.js", "--print", "--no-context-files", "--provider", "scripted", "--model", "scripted", PROMPT]

    read, shell = staticmethod(Haft.read), staticmethod(Haft.shell)


class Codex(Agent):
    name = "codex"
    package = "@openai/codex"

    def set_up(self):
        self.env |= {"CODEX_HOME": str(self.home / "codex"), "SCRIPTED_KEY": KEY}
        (self.home / "codex").mkdir()

    def command(self, url):
        (self.home / "codex/config.toml").write_text(
            f"""
model = "gpt-5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "workspace-write"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{url}"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
"""
        )
        return [next(HERE.glob("node_modules/@openai/codex-linux-*/vendor/*/bin/codex")), "exec", "--skip-git-repo-check", PROMPT]

    @staticmethod
    def shell(number, tools):
        """The tool that runs commands has had several names."""
        if "exec_command" in tools:
            return "exec_command", {"cmd": f"true # {number}"}
        if "shell_command" in tools:
            return "shell_command", {"command": f"true # {number}"}
        return "shell", {"command": ["bash", "-c", f"true # {number}"]}

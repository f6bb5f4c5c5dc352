"""Who runs haft, and where."""

import itertools
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NOBODY = 65534
# haft needs all of these for the network of a session.
NAMESPACES = ["unshare", "-Urmpnif", "--mount-proc", "true"]
SYSTEM = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class User:
    name: str
    # User and group to switch to; None is whoever started the tests.
    identity: int | None = None

    def command(self, words):
        if self.identity is None:
            return [str(word) for word in words]
        switch = [f"--reuid={self.identity}", f"--regid={self.identity}", "--clear-groups"]
        return ["setpriv", *switch, *(str(word) for word in words)]

    def can(self, words):
        done = subprocess.run(self.command(words), capture_output=True, check=False)
        return done.returncode == 0


def users(haft):
    """Users at whom haft can build its full sandbox."""
    if os.geteuid() == 0:
        candidates = [User("root"), User("an ordinary user", NOBODY)]
    else:
        print("skipped as root: the tests were started by an ordinary user")
        candidates = [User("an ordinary user")]
    found = []
    for user in candidates:
        if not user.can([haft, "--version"]):
            print(f"skipped as {user.name}: haft cannot be started so")
        elif not user.can(NAMESPACES):
            print(f"skipped as {user.name}: there are no user namespaces")
        else:
            found.append(user)
    return found


def rust(scratch):
    """Folder of the real cargo: rustup's wrapper would look for its settings in the home.

    An ordinary user cannot look into root's home, where rustup puts the toolchain: links to
    its files are made here.
    """
    if not shutil.which("rustc"):
        return None
    asked = ["rustc", "--print", "sysroot"]
    root = Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
    copy = scratch / "rust"
    try:
        for part in ("bin", "lib"):
            # The sources of the standard library are many and not needed.
            ignored = shutil.ignore_patterns("src", "*.html")
            shutil.copytree(root / part, copy / part, True, ignored, os.link)
    except (OSError, shutil.Error):
        # On another file system.
        shutil.rmtree(copy, ignore_errors=True)
        return root / "bin"
    return copy / "bin"


class Bed:
    """One user with a home and a work folder for each case."""

    def __init__(self, haft, user, scratch, path):
        self.haft = haft
        self.user = user
        self.scratch = scratch
        self.numbers = itertools.count()
        self.path = path

    def finds(self, program):
        find = ["env", f"PATH={self.path}", "sh", "-c", f"command -v {program}"]
        return self.user.can(find)

    def call(self, files, command, flags=()):
        """Runs the command in a new work folder with these files; returns (whether it succeeded, text)."""
        place = self.scratch / f"{self.user.identity}-{next(self.numbers)}"
        work, home = place / "work", place / "home"
        for folder in (work, home):
            folder.mkdir(parents=True)
        for name, content in files.items():
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        if self.user.identity is not None:
            for path in [place, *place.rglob("*")]:
                os.chown(path, self.user.identity, self.user.identity)
        words = [self.haft, "call", "bash", "-", "--json", "--dir", work, *flags]
        done = subprocess.run(
            self.user.command(words),
            cwd=work,
            env={"HOME": str(home), "PATH": self.path, "LANG": "C.UTF-8"},
            input=json.dumps({"command": command, "timeout": 120}),
            capture_output=True,
            text=True,
            check=False,
        )
        try:
            reply = json.loads(done.stdout)
        except ValueError:
            return False, f"no reply: {done.stdout}{done.stderr}"
        text = "\n".join(block.get("text", "") for block in reply["content"])
        return reply["details"].get("exit_code") == 0, text

"""The READMEs: what they tell people to type does what they say."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import others
from checks import definition, outcome
from protocol import ENVIRONMENT, expect, shorten

ROOT = Path(__file__).resolve().parent.parent.parent
# These show a machine, a time or a size of somebody else.
VARIES = {"examples/tools/bash", "examples/tools/rust"}


def commands(program):
    page = program.page.read_text()
    skeleton = program.title.startswith("skeletons")
    expect(not skeleton or "{{name}}" not in page, "a placeholder is left in the README")
    folder = program.folder.parent if skeleton else ROOT
    files(page, folder, program)
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    shown = [text for kind, text in blocks if kind in ("json", "text")]
    printed = ""
    for kind, script in blocks:
        lines = [line for line in script.splitlines(True) if not re.match(r"\(cd |haft ", line)]
        # Steps that change a project, and scripts that are shown, not typed.
        if kind == "sh" and not re.search(r"^(mkdir|#!)", script, re.MULTILINE):
            printed += typed("".join(lines), folder, program)
    expect(printed, "the README has no command to try")
    for wanted in shown:
        if program.title not in VARIES:
            expect(wanted in printed, f"the README shows {shorten(wanted)}, the program prints {shorten(printed)}")
    if skeleton:
        expect(json.loads(printed.splitlines()[-1])["content"][0]["text"] == "HELLO", f"no HELLO: {shorten(printed)}")


# The first thing that people try, letter by letter, whatever becomes of the README.
BY_HAND = r"""
echo '{"type":"describe"}' | python3 examples/tools/python/tool.py
printf '{"type":"describe"}\n{"type":"call","call_id":"c1","params":{"numbers":[1,2,3,4,5]}}\n' \
  | python3 examples/tools/python/tool.py
"""


def by_hand(program):
    lines = [json.loads(line) for line in typed(BY_HAND, ROOT, program).splitlines()]
    expect(len(lines) == 3 and lines[0] == lines[1], f"not two definitions and a result: {shorten(lines)}")
    definition(lines[0], program.names)
    outcome(lines[2], program.sample[1])


# How the examples of the Go agent are started, letter by letter, and how they are registered.
QUICK_START = """
# Python (no deps)
python3 examples/tools/python/tool.py

# TypeScript (requires Deno — https://deno.com)
deno run examples/tools/typescript/tool.ts

# Rust (requires cargo)
cd examples/tools/rust && cargo build --release
./target/release/file_info

# Bash (any POSIX shell)
bash examples/tools/bash/tool.sh

# Ruby (no gems)
ruby examples/tools/ruby/tool.rb
"""
WIRED = ROOT / "crates/cli/tests/seeds/examples.yaml"
SAMPLES = {
    "stats": ({"numbers": [1, 2, 3, 4, 5]}, "n: 5\n"),
    "json_query": ({"json": '{"users":[{"name":"Ann"}]}', "path": "users.0.name"}, "Ann"),
    "file_info": ({"path": "haft.yaml"}, "haft.yaml: file, "),
    "sys_info": ({"section": "os"}, "os: "),
    "template": ({"template": "Dear {{name}}", "values": {"name": "Ann"}}, "Dear Ann"),
}


def quick_start(folder):
    """Each step starts an example, which ends with its input. Leaves them built in the folder."""
    shutil.copytree(ROOT / "examples" / "tools", folder / "examples" / "tools", ignore=shutil.ignore_patterns("target"))
    steps = QUICK_START.strip().split("\n\n")
    expect(len(steps) == 5, f"not five languages: {steps}")
    for step in steps:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step],
            cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
        )
        expect(done.returncode == 0, f"{step}:\n{shorten(done.stderr)}")


def wired(folder, haft):
    """The printed configuration, with haft: every example is there and answers."""
    (folder / "haft.yaml").write_text(WIRED.read_text())
    home = folder / "home"
    home.mkdir()
    environment = {"PATH": ENVIRONMENT["PATH"], "HOME": str(home)}

    def run(*arguments):
        done = subprocess.run(
            [haft, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=120,
        )
        expect(done.returncode == 0, f"haft {' '.join(arguments)}: {shorten(done.stdout)} {shorten(done.stderr)}")
        return done.stdout

    run("trust", "--yes")
    listed = [tool["name"] for tool in json.loads(run("tools", "--json"))]
    wanted = ["read", "bash", "edit", "write", *SAMPLES]
    expect(listed == wanted, f"wanted {wanted}, got {listed}")
    for name, (params, answer) in SAMPLES.items():
        said = run("call", name, json.dumps(params))
        expect(said.startswith(answer), f"{name}: wanted {answer}, got {shorten(said)}")


def index():
    """The list of the examples has them all, and registers what is there."""
    page = (ROOT / "examples/tools/README.md").read_text()
    folders = {folder.name for folder in (ROOT / "examples/tools").iterdir() if folder.is_dir()}
    listed = set(re.findall(r"^\| \[`(\w+)/`\]\(\1\) \|", page, re.MULTILINE))
    expect(folders == listed, f"not in the table, or not there: {folders ^ listed}")
    for named in re.findall(r"examples/tools/[\w./]+\.\w+", page):
        expect((ROOT / named).exists(), f"{named} is not there")


def typed(script, folder, program):
    for said, real in program.built.items():
        script = script.replace(said, real)
    # Debian's name, where nothing has the plain one.
    script = re.sub(r"\| lua -", f"| {others.LUA} -", script)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    expect(done.returncode == 0, f"the README's commands fail: {shorten(script)}\n{shorten(done.stderr)}")
    return done.stdout


def files(page, folder, program):
    """The files that the lines for haft.yaml name exist, or are built."""
    yaml = "".join(re.findall(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    for named in re.findall(r'\./[^\s",\]]+', yaml):
        known = named in program.built or named.removeprefix("./") in program.built
        expect(known or (folder / named).exists(), f"the README registers {named}, which is not there")

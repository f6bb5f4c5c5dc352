"""Who is tested: each example and each skeleton, how to start it, what it should say."""

import functools
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Optional

import checks
import others
import pages
from checks import Error
from protocol import Failed


@dataclass
class Program:
    title: str
    interpreter: str
    folder: Path  # where it runs
    page: Path  # its README
    command: list = field(default_factory=list)
    names: list = field(default_factory=list)
    cases: list = field(default_factory=list)  # (params, wanted) for the first of its names
    sample: tuple = ()  # a quick call that works
    large: tuple = ()  # a call with a megabyte of arguments
    simple: bool = True  # speaks the protocol without "protocol": 2
    prepare: Optional[Callable] = None
    built: dict = field(default_factory=dict)  # what its README calls the program → where it is
    checks: list = field(default_factory=lambda: [*checks.ALL, pages.commands])

    @property
    def name(self):
        return self.names[0]


def starts(text):
    return re.compile("^" + re.escape(text))


def run(*command, folder, silent=False, **environment):
    """A step of a build. `silent` ones must have nothing to say."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0 or (silent and done.stdout.strip()):
        raise Failed(f"{' '.join(map(str, command))}:\n{done.stdout}")


def builds(scratch):
    """One way to build or check per language: (sources, name, where the binary goes) → None."""

    def go(folder, _name, binary):
        # In a folder of ours, or the second run would not be faster; without cgo, which needs a C compiler.
        environment = {"GOCACHE": str(scratch / "go"), "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
        run("gofmt", "-l", ".", folder=folder, silent=True)
        run("go", "vet", ".", folder=folder, **environment)
        run("go", "build", "-o", binary, ".", folder=folder, **environment)

    def rust(folder, name, binary):
        # One target folder, so that dependencies are built once. Not `--release`: it takes longer
        # to build than to run.
        target = scratch / "rust"
        run("cargo", "fmt", "--check", folder=folder)
        locked = ["--locked"] if (folder / "Cargo.lock").exists() else []
        run("cargo", "build", "--quiet", *locked, "--target-dir", target, folder=folder, RUSTFLAGS="-D warnings")
        shutil.copy2(target / "debug" / name, binary)

    def typescript(folder, _name, _binary):
        run("deno", "check", "--quiet", "tool.ts", folder=folder)

    def ruby(folder, _name, _binary):
        run("ruby", "-wc", "tool.rb", folder=folder)

    def bash(folder, _name, _binary):
        run("bash", "-n", "tool.sh", folder=folder, silent=True)

    return {"go": go, "rust": rust, "typescript": typescript, "ruby": ruby, "bash": bash}


STATS = [
    ({"numbers": [1, 2, 3, 4, 5]}, "n: 5\nmin: 1.0000\nmax: 5.0000\nmean: 3.0000\nmedian: 3.0000\nstd_dev: 1.4142"),
    ({"numbers": [2, 1], "precision": 0}, "n: 2\nmin: 1\nmax: 2\nmean: 2\nmedian: 2\nstd_dev: 0"),
    ({"numbers": [7], "precision": 99}, re.compile(r"^n: 1\nmin: 7\.0{10}\n")),
    ({"numbers": [7], "precision": -1}, re.compile(r"\nstd_dev: 0$")),
    ({"numbers": [1, 2, 3, 4], "percentiles": [0, 50, 90, 99.9, 100], "precision": 2},
     re.compile(r"\np0: 1\.00\np50: 2\.50\np90: 3\.70\np99\.9: 4\.00\np100: 4\.00$")),
    ({"numbers": []}, Error("numbers must be a non-empty array")),
    ({}, Error("numbers must be a non-empty array")),
    ({"numbers": "1,2"}, Error("numbers must be a non-empty array")),
    ({"numbers": [1, "2"]}, Error("element 1 is not a number")),
    ({"numbers": [True]}, Error("element 0 is not a number")),
    ({"numbers": [1, None]}, Error("element 1 is not a number")),
    ({"numbers": [1], "precision": "x"}, Error("precision must be an integer")),
    ({"numbers": [1], "percentiles": [101]}, Error("percentiles must be an array of numbers from 0 to 100")),
    ({"numbers": [10**400]}, Error(starts("stats failed: "))),
    ({"numbers": [1e308, 1e308]}, Error(starts("stats failed: "))),
]

DOCUMENT = '{"users":[{"name":"Ann"},{"name":"Bob","tags":["x"]}],"a.b":{"é":null},"n":1.5}'


def query(path, **more):
    return {"json": DOCUMENT, "path": path, **more}


JSON_QUERY = [
    (query("users.0.name"), "Ann"),
    (query("users[1].name"), "Bob"),
    (query("users.-1.tags.0"), "x"),
    (query("$.users[-1]['x']"), Error(starts("path has no step at: "))),
    (query('["a.b"].é'), "null"),
    (query("n"), "1.5"),
    (query("users.1.tags"), '[\n  "x"\n]'),
    (query("users.1", compact=True), '{"name":"Bob","tags":["x"]}'),
    (query("", compact=True), DOCUMENT),
    (query("users.2"), Error("users has 2 elements: no index 2")),
    (query("users.first"), Error('users is an array: "first" is not an index')),
    (query("constructor"), Error('the root has no key "constructor"; its keys: users, a.b, n')),
    (query("n.x"), Error('n is a number: it has no "x"')),
    (query("users..0"), Error(starts("path has no step at: "))),
    ({"json": "{", "path": ""}, Error(starts("json is not valid: "))),
    ({"json": {}, "path": ""}, Error("json must be a string")),
    ({"json": "{}"}, Error("path must be a string")),
    (query("", compact="yes"), Error("compact must be a boolean")),
    ({"json": '"日本 😀\u2028é"', "path": "$"}, "日本 😀\u2028é"),
]

BASH_PLUGIN = [
    ({"command": "echo hello"}, "hello"),
    ({"command": "echo out; echo err >&2"}, "out\nerr"),
    ({"command": "true"}, "(no output)"),
    ({"command": "echo some; exit 3"}, Error("some\nexit code: 3")),
    ({"command": "kill -9 $$"}, Error("signal: killed")),
    ({"command": "cat"}, "(no output)"),
    ({"command": "printf 'é 日本 😀'"}, "é 日本 😀"),
    ({"command": r"printf 'a\377b'"}, "a\ufffdb"),
    ({"command": "echo a; sleep 20", "timeout": 0.3}, Error("a\ntimed out after 0.3s")),
    ({"command": "sleep 20 & echo left"}, "left"),
    ({"command": "head -c 60000 /dev/zero | tr '\\0' x"}, re.compile(r"^x{51200}\n\[8800 more bytes\]$")),
    ({"command": " "}, Error("command must be a non-empty string")),
    ({"command": 5}, Error("command must be a non-empty string")),
    ({"command": "true", "timeout": "1"}, Error("timeout must be a number above 0")),
    ({"command": "true", "timeout": 0}, Error("timeout must be a number above 0")),
    ({"command": "true", "timeout": 9999999}, "(no output)"),
]

FILE_INFO = [
    ({"path": "tree/three"}, re.compile(r"^tree/three: file, 15 B, lines: 3, changed \d+s ago$")),
    ({"path": "tree/zeros"}, re.compile(r"^tree/zeros: file, 3 B, binary, ")),
    ({"path": "tree/é 日本"}, re.compile(r"^tree/é 日本: file, 0 B, lines: 0, ")),
    ({"path": "tree"}, re.compile(
        r"^tree: directory, entries: 4\n  link: link, .*\n  three: file, .*\n  zeros: .*\n  é 日本: [^\n]*$")),
    ({"path": "tree", "max_entries": 1}, re.compile(r"^tree: directory, entries: 4\n  link: [^\n]*\n  \[3 more: raise max_entries\]$")),
    ({"path": "tree", "max_entries": -5}, re.compile(r"\n  \[3 more: raise max_entries\]$")),
    ({"path": "many"}, re.compile(r"\n  \[460 more: raise max_entries\]$")),
    ({"path": "many", "max_entries": 10**6}, re.compile(r"\n  \[10 more: raise max_entries\]$")),
    ({"path": "/dev/null"}, starts("/dev/null: special file")),
    ({"path": "none"}, Error(starts("none: No such file"))),
    ({"path": "three/below"}, Error(starts("three/below: "))),
    ({"path": ""}, Error("path must be a non-empty string")),
    ({"path": 1}, Error("path must be a non-empty string")),
    ({}, Error("path must be a non-empty string")),
    ({"path": "tree", "max_entries": "x"}, Error("max_entries must be an integer")),
]

SYS_INFO = [
    ({}, re.compile(r"^os: .+\nkernel: Linux .+\nprocessors: \d+\ndisk /.*: .+ free of .+ \(\d+% used\)\n(disk .*\n)?memory: [\d.]+ GiB free of [\d.]+ GiB$")),
    ({"section": "all"}, re.compile(r"^os: (.|\n)*\nmemory: ")),
    ({"section": "os"}, re.compile(r"^os: .+\nkernel: .+\nprocessors: \d+$")),
    ({"section": "disk"}, re.compile(r"^disk /")),
    ({"section": "memory"}, re.compile(r"^memory: [^\n]+$")),
    ({"section": "cpu"}, Error("section must be one of: all, os, disk, memory")),
    ({"section": "é \"\\ \n😀"}, Error(starts("section must be"))),
    ({"section": 1}, Error(starts("section must be"))),
    ({"section": None}, Error(starts("section must be"))),
    ({"": 1, "a b": [1, {"section": "x"}], "$(id)": {}, "@": -1.5e-3, "section": "os"}, starts("os: ")),
]

TEMPLATE = [
    ({"template": "Dear {{name}}, {{ n }}× {{name}}", "values": {"name": "Ann", "n": 2}}, "Dear Ann, 2× Ann"),
    ({"template": "{{user.name}} {{a.b}} {{none}} {{l}}", "values": {"user": {"name": "é 😀"}, "a.b": True, "none": None, "l": [1]}},
     "é 😀 true null [1]"),
    ({"template": "no placeholder {{ } }} {x}", "values": {}}, "no placeholder {{ } }} {x}"),
    # A value is a value: what it contains is not rendered again.
    ({"template": "{{a}}", "values": {"a": "{{b}} \\0 \\\\"}}, "{{b}} \\0 \\\\"),
    ({"template": "{{a}} {{b.c}} {{a}}", "values": {"b": 1}}, Error("missing values: a, b.c")),
    ({"template": "<{{a}}>", "values": {}, "missing": "keep"}, "<{{a}}>\n[missing values: a]"),
    ({"template": "<{{a}}>", "values": {}, "missing": "empty"}, "<>\n[missing values: a]"),
    ({"template": "x", "values": {}, "missing": "panic"}, Error("missing must be one of: error, keep, empty")),
    ({"template": 1, "values": {}}, Error("template must be a string")),
    ({"template": "x", "values": []}, Error("values must be an object")),
    ({"template": "x"}, Error("values must be an object")),
]

UPPER = [
    ({"text": "hello"}, "HELLO"),
    ({"text": ""}, ""),
    ({"text": "naïve café 日本語 😀\u2028end"}, "NAÏVE CAFÉ 日本語 😀\u2028END"),
    ({"text": 'a "quoted" \\ back\\\\slash / tab\t\nline\r\n\x01\x1f\x7f %s $x `y` \'z\''},
     'A "QUOTED" \\ BACK\\\\SLASH / TAB\t\nLINE\r\n\x01\x1f\x7f %S $X `Y` \'Z\''),
    ({"text": "ok", "more": [1, {"text": "no"}]}, "OK"),
    ({"text": 5}, Error("text must be a string")),
    ({"text": None}, Error("text must be a string")),
    ({"text": ["a"]}, Error("text must be a string")),
    ({}, Error("text must be a string")),
]
PIECE = 'a é"\\\n😀 '


def files(folder):
    """What the tools look at."""
    tree = folder / "tree"
    tree.mkdir()
    (tree / "three").write_bytes(b"one\ntwo\n\xff three")
    (tree / "zeros").write_bytes(b"\0\0\0")
    (tree / "é 日本").touch()
    (tree / "link").symlink_to("nowhere")
    many = folder / "many"
    many.mkdir()
    for number in range(510):
        (many / f"{number:03}").touch()


def examples(root, scratch):
    work = scratch / "work"
    files(work)
    building = builds(scratch)
    tools = root / "examples" / "tools"

    def example(language, interpreter, command, name, cases, sample, large, **more):
        folder = tools / language
        binary = scratch / "bin" / name
        step = building.get(language)
        if step:
            binary.parent.mkdir(exist_ok=True)
            more["prepare"] = lambda: step(folder, name, binary)
        return Program(
            f"examples/tools/{language}", interpreter, work, folder / "README.md",
            [str(word).replace("BINARY", str(binary)) for word in command], [name], cases, sample, large, **more,
        )

    megabyte = "x" * 1_000_000
    return [
        example("python", "python3", ["python3", tools / "python/tool.py"], "stats", STATS, STATS[0],
                ({"numbers": list(range(200_000))}, starts("n: 200000\n")),
                checks=[*checks.ALL, pages.by_hand, pages.commands]),
        example("typescript", "deno", ["deno", "run", tools / "typescript/tool.ts"], "json_query", JSON_QUERY, JSON_QUERY[0],
                ({"json": f'["{megabyte}",2]', "path": "[1]"}, "2")),
        example("go", "go", ["BINARY"], "bash_plugin", BASH_PLUGIN, BASH_PLUGIN[0],
                # More than a command line can hold.
                ({"command": f": {megabyte}"}, Error(re.compile("argument list too long"))),
                checks=[*checks.ALL, others.children_are_ended, pages.commands],
                built={"examples/tools/go/bash_plugin": str(scratch / "bin" / "bash_plugin")}),
        example("rust", "cargo", ["BINARY"], "file_info", FILE_INFO, FILE_INFO[0],
                ({"path": megabyte}, Error(re.compile("File name too long"))),
                built={"examples/tools/rust/target/release/file_info": str(scratch / "bin" / "file_info")}),
        example("bash", "bash", ["bash", tools / "bash/tool.sh"], "sys_info", SYS_INFO, SYS_INFO[2],
                ({"section": megabyte}, Error(starts("section must be")))),
        example("ruby", "ruby", ["ruby", tools / "ruby/tool.rb"], "template", TEMPLATE, TEMPLATE[0],
                ({"template": "é{{a}}" + megabyte, "values": {"a": megabyte}}, f"é{megabyte}{megabyte}")),
        Program("examples/tools/protocol2", "python3", work, tools / "protocol2/README.md",
                ["python3", str(tools / "protocol2/tool.py")], ["countdown", "clock"],
                [({"from": 3, "seconds": 0}, "Lift-off!"), *others.COUNTDOWN_ERRORS],
                ({"from": 1, "seconds": 0}, "Lift-off!"),
                ({"from": 1, "seconds": 0, "more": megabyte}, "Lift-off!"),
                simple=False, checks=[*checks.ALL, *others.PROTOCOL_2, pages.commands]),
        Program("examples/tools/executable", "python3", work, tools / "executable/README.md",
                [str(tools / "executable/word_count")], ["word_count"], checks=[*others.EXECUTABLE, pages.commands]),
        Program("examples/tools/lua", others.LUA, work, tools / "lua/README.md",
                [str(tools / "lua/slugify.lua")], ["slugify"], others.SLUGIFY, checks=[others.lua_module, pages.commands]),
    ]


def skeletons(root, scratch):
    work = scratch / "work"
    sources = root / "crates" / "cli" / "skeletons"
    building = builds(scratch)
    starters = {
        "python": ("python3", ["python3", "tool.py"]),
        "typescript": ("deno", ["deno", "run", "tool.ts"]),
        "go": ("go", []),
        "rust": ("cargo", []),
        "bash": ("bash", ["bash", "tool.sh"]),
        "ruby": ("ruby", ["ruby", "tool.rb"]),
        "lua": (others.LUA, []),
    }
    forgotten = {folder.name for folder in sources.iterdir() if folder.is_dir()} ^ set(starters)
    if forgotten:
        raise SystemExit(f"skeletons without a test, or tests without a skeleton: {forgotten}")
    for language, (interpreter, command) in starters.items():
        name = f"my_{language}_2"
        folder = work / name
        instantiate(sources / language, folder, name)
        program = Program(f"skeletons/{language}", interpreter, folder, folder / "README.md", command, [name],
                          UPPER, UPPER[0], ({"text": PIECE * 100_000 + "."}, PIECE.upper() * 100_000 + "."))
        if language == "lua":
            program.command = [str(folder / "tools" / f"{name}.lua")]
            program.cases = [UPPER[0], UPPER[1], *UPPER[4:], ({"text": "é a"}, "é A")]
            program.checks = [others.lua_module]
        elif not command:
            # Where the README has it built.
            binary = folder / (name if language == "go" else f"target/release/{name}")
            binary.parent.mkdir(parents=True, exist_ok=True)
            program.command = [str(binary)]
        if language in building:
            program.prepare = functools.partial(building[language], folder, name, Path(*program.command[:1]))
        yield program


def instantiate(source, folder, name):
    """What `haft plugin new` does."""
    for file in sorted(source.rglob("*")):
        if file.is_file():
            place = str(file.relative_to(source)).replace("{{name}}", name).removesuffix(".template")
            (folder / place).parent.mkdir(parents=True, exist_ok=True)
            (folder / place).write_text(file.read_text().replace("{{name}}", name))


def all_of_them(root, scratch):
    return [*examples(root, scratch), *skeletons(root, scratch)]

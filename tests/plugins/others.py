"""What only some can do: protocol 2, executables, Lua modules."""

import json
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from checks import Error, definition, outcome
from protocol import ENVIRONMENT, Plugin, expect, shorten, text

COUNTDOWN_ERRORS = [
    ({}, Error("from must be an integer from 1 to 1000")),
    ({"from": True}, Error("from must be an integer from 1 to 1000")),
    ({"from": 0}, Error("from must be an integer from 1 to 1000")),
    ({"from": 1, "seconds": "1"}, Error("seconds must be a number from 0 to 60")),
    ({"from": 1, "seconds": -1}, Error("seconds must be a number from 0 to 60")),
]


def countdown(call_id, start, seconds):
    params = {"from": start, "seconds": seconds}
    return {"type": "call", "name": "countdown", "call_id": call_id, "params": params}


def updates_and_details(program):
    with Plugin(program.command, program.folder) as plugin:
        plugin.write({"type": "describe", "protocol": 2})
        expect(plugin.read().get("protocol") == 2, "the definition does not say protocol 2")
        plugin.write(countdown("c", 3, 0.01))
        for number in "321":
            update = plugin.read()
            wanted = {"type": "update", "call_id": "c", "content": [{"type": "text", "text": f"{number}…"}]}
            expect(update == wanted, f"wanted {wanted}, got {update}")
        result = plugin.read()
        expect(result["type"] == "result" and result["details"] == {"steps": 3}, f"not the result: {result}")
        plugin.end()


def calls_at_the_same_time(program):
    with Plugin(program.command, program.folder) as plugin:
        plugin.write(countdown("slow", 2, 0.3))
        plugin.write({"type": "call", "name": "clock", "call_id": "quick", "params": {}})
        expect(plugin.result()["call_id"] == "quick", "a quick call waited for a slow one")
        taken = plugin.ask(countdown("slow", 1, 0))
        expect(taken["error"] and "in use" in taken["content"][0]["text"], f"a call_id in use: {taken}")
        expect(not plugin.result()["error"], "the slow call failed")
        started = time.monotonic()
        waiting = {f"call_{number}" for number in range(50)}
        for call_id in waiting:
            plugin.write(countdown(call_id, 2, 0.2))
        while waiting:
            result = plugin.result()
            expect(not result["error"], f"failed: {result}")
            waiting.remove(result["call_id"])
        took = time.monotonic() - started
        expect(took < 5, f"50 calls of 0.4 s took {took:.1f} s")
        plugin.end()
    return f"50 calls of 0.4 s in {took:.1f} s"


def cancelling(program):
    with Plugin(program.command, program.folder) as plugin:
        for call_id in ("a", "b"):
            plugin.write(countdown(call_id, 10, 60))
            expect(plugin.read()["type"] == "update", "no update")
        for unknown in ("nobody", None, ["x"]):
            plugin.write({"type": "cancel", "call_id": unknown})
        started = time.monotonic()
        plugin.write({"type": "cancel", "call_id": "a"})
        result = plugin.result()
        took = time.monotonic() - started
        expect(result["call_id"] == "a", f"another call was cancelled: {result}")
        outcome(result, Error("cancelled at 10"))
        expect(took < 1, f"cancelling took {took:.1f} s")
        # The end of stdin cancels what is left.
        plugin.process.stdin.close()
        outcome(plugin.result(2), Error("cancelled at 10"))
        plugin.end()


PROTOCOL_2 = [updates_and_details, calls_at_the_same_time, cancelling]


def children_are_ended(program):
    """With the command, and with its time: nothing is left that nobody waits for."""
    with Plugin(program.command, program.folder) as plugin:
        for command, timeout in (("sleep 33 & echo $!", 5), ("sleep 33 & echo $!; wait", 0.3)):
            child = text(plugin.call(program.name, {"command": command, "timeout": timeout})).split()[0]
            deadline = time.monotonic() + 5
            while alive(child):
                expect(time.monotonic() < deadline, f"{command}: its child {child} runs on")
                time.sleep(0.02)
        plugin.end()


def alive(process):
    try:
        # A dead one may wait to be collected by whoever inherited it.
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def execute(program, data, *arguments, **environment):
    return subprocess.run(
        [*program.command, *arguments],
        input=data if isinstance(data, bytes) else json.dumps(data, ensure_ascii=False).encode(),
        env=ENVIRONMENT | environment,
        cwd=program.folder,
        capture_output=True,
        timeout=20,
    )


def calls(program):
    words = "The cat and the dog.\nDon’t! é 日本 😀"
    wanted = "lines: 2\nwords: 8\ncharacters: 34\n  the: 2\n  and: 1\n"
    for environment in ({}, {"HAFT_ARG_TEXT": words, "HAFT_ARG_TOP": "2"}):
        done = execute(program, {"text": words, "top": 2}, **environment)
        expect((done.returncode, done.stdout.decode()) == (0, wanted), f"got {done}")
    large = execute(program, {"text": "word " * 300_000})
    expect(large.stdout.startswith(b"lines: 1\nwords: 300000\n"), f"got {shorten(large)}")


def wrong_calls(program):
    for data, problem in {
        b"": "the arguments are not JSON",
        b"[": "the arguments are not JSON",
        b"[1]": "text must be a string",
        b'{"text":1}': "text must be a string",
        b'{"text":"a","top":"x"}': "top must be an integer",
    }.items():
        done = execute(program, data)
        expect(done.returncode == 1 and problem in done.stderr.decode(), f"{data}: {done}")
        expect(not done.stdout, f"{data}: an error on stdout: {done}")


def page_of_the_tool(program):
    page = (program.page.parent / "word_count.md").read_text()
    front = re.fullmatch(r"---\ndescription: (.+)\nparameters:\n(  \{\n.*\n  \}\n)---\n\n(.+)", page, re.DOTALL)
    expect(front, "no front matter with description and parameters")
    tool = {"name": "word_count", "description": front[1], "parameters": json.loads(front[2])}
    definition(tool, ["word_count"])
    expect(len(front[3]) > 50, "no advice for the model")
    helped = execute(program, b"", "--help")
    expect(helped.returncode == 0 and b"Count" in helped.stdout, f"--help: {helped}")
    expect(os.access(program.command[0], os.X_OK), "not executable")


EXECUTABLE = [calls, wrong_calls, page_of_the_tool]

SLUGIFY = [
    ({"text": "Crème brûlée, again!"}, "creme-brulee-again"),
    ({"text": "  Don’t   PANIC 42 "}, "dont-panic-42"),
    ({"text": "ÄÖÜ ß Łódź Ÿ 😀 日本 x"}, "aeoeue-ss-lodz-y-x"),
    ({"text": "a b c", "separator": "_"}, "a_b_c"),
    ({"text": "alpha beta gamma", "max_length": 11}, "alpha-beta"),
    ({"text": "alphabet", "max_length": 4.0}, "alph"),
    ({"text": "alphabet", "max_length": -1}, "a"),
    ({"text": "日本"}, Error("text has no letters or digits that a slug can hold")),
    ({"text": 5}, Error("text must be a string")),
    ({}, Error("text must be a string")),
]

# Any that has the library utf8. The plain name last: it may be an older one.
LUA = next((name for name in ("lua5.4", "lua5.3", "lua") if shutil.which(name)), "lua5.4")

# Loads a module as haft does, with the pure libraries only, and prints each result in hex.
DRIVER = """
local pure = { string = string, table = table, math = math, utf8 = utf8 }
for _, name in ipairs({ "assert", "error", "ipairs", "next", "pairs", "pcall", "select", "tonumber", "tostring", "type" }) do
  pure[name] = _G[name]
end
local module = assert(loadfile(MODULE, "t", pure))()
assert(type(module.name) == "string" and type(module.description) == "string")
assert(type(module.input_schema) == "table" and module.input_schema.type == "object")
assert(type(module.system_prompt) == "string" and type(module.execute) == "function")
for name, about in pairs(module.input_schema.properties) do assert(about.type and about.description, name) end
for _, name in ipairs(module.input_schema.required) do assert(module.input_schema.properties[name], name) end
print(module.name)
for _, input in ipairs(assert(load("return {" .. io.read("a") .. "}"))()) do
  local result, failed = module.execute(input)
  print(tostring(failed) .. " " .. result:gsub(".", function(c) return ("%02x"):format(c:byte()) end))
end
"""


def lua(value):
    """A value of JSON as Lua writes it."""
    if isinstance(value, dict):
        return "{" + ",".join(f"[{lua(key)}]={lua(item)}" for key, item in value.items() if item is not None) + "}"
    if isinstance(value, list):
        return "{" + ",".join(map(lua, value)) + "}"
    if isinstance(value, str):
        return '"' + "".join(f"\\x{byte:02x}" for byte in value.encode()) + '"'
    return json.dumps(value)


def lua_module(program):
    large = ({"text": "word " * 250_000}, re.compile("(?i)^word.word"))
    cases = [*program.cases, large]
    inputs = ",".join(lua(params) for params, _ in cases)
    done = subprocess.run(
        [LUA, "-e", DRIVER.replace("MODULE", lua(program.command[0]))],
        input=inputs,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=20,
    )
    lines = done.stdout.splitlines()
    expect(done.returncode == 0 and len(lines) == len(cases) + 1, f"{shorten(done.stderr)} {shorten(done.stdout)}")
    expect(lines[0] == program.name, f"its name is {lines[0]}")
    for line, (params, wanted) in zip(lines[1:], cases):
        failed, _, data = line.partition(" ")
        message = {"content": [{"text": bytes.fromhex(data).decode()}], "error": failed == "true"}
        outcome(message, wanted)

"""What every plugin has to do, whatever its tool: the part of the protocol they share."""

import json
import re
import time

from protocol import Failed, Plugin, expect, shorten, text


def definition(message, names):
    tools = message.get("tools", [message])
    expect([tool.get("name") for tool in tools] == names, f"not the tools {names}: {shorten(message)}")
    for tool in tools:
        expect(len(tool.get("description", "")) > 15, f"{tool['name']} has no description")
        schema = tool.get("parameters", {})
        expect(schema.get("type") == "object", f"{tool['name']}: parameters are no object")
        properties = schema.get("properties", {})
        expect(set(schema.get("required", [])) <= set(properties), f"{tool['name']}: required, but not listed")
        for name, about in properties.items():
            expect(about.get("description") and about.get("type"), f"{tool['name']}: {name} is not described")


def outcome(message, wanted):
    """`wanted`: a text, a compiled pattern, or an Error of one of both."""
    error, wanted = (True, wanted.wanted) if isinstance(wanted, Error) else (False, wanted)
    found = text(message)
    matches = wanted.search(found) if isinstance(wanted, re.Pattern) else found == wanted
    expect(matches and message["error"] is error, f"wanted error={error} {shorten(wanted)}, got {shorten(message)}")


class Error:
    def __init__(self, wanted):
        self.wanted = wanted


def describe(program):
    with Plugin(program.command, program.folder) as plugin:
        for message in ({"type": "describe"}, {"type": "describe", "protocol": 2}):
            plugin.write(message)
            definition(plugin.read(), program.names)
        plugin.end()


def cases(program):
    with Plugin(program.command, program.folder) as plugin:
        for number, (params, wanted) in enumerate(program.cases):
            try:
                outcome(plugin.call(program.name, params, f"call_{number}"), wanted)
            except Failed as failed:
                raise Failed(f"{shorten(json.dumps(params))}: {failed}") from None
        plugin.end()


def alive(plugin, program):
    params, wanted = program.sample
    outcome(plugin.call(program.name, params, "alive"), wanted)


def strange_lines(program):
    """Blank lines are skipped; what makes no sense is answered once, and life goes on."""
    params, wanted = program.sample
    sample = {"type": "call", "name": program.name, "call_id": "x", "params": params}
    nested = b"[" * 100_000 + b"]" * 100_000
    wrong = {
        "malformed": b'{"type":"call","params":{"te',
        "no JSON": b"hello?",
        "two values": b'{"type":"describe"} {"type":"describe"}',
        "an array": b"[1, 2]",
        "a number": b"42",
        "null": b"null",
        "a string": b'"describe"',
        "deeply nested": nested,
        "not UTF-8": b'{"type":"\xff\xfe"}',
        "half a character": b'{"type":"call","call_id":"x","name":"\\ud800"}',
        "unknown type": b'{"type":"dance"}',
        "no type": b'{"call_id":"x"}',
        "type is a number": b'{"type":7}',
        "init": b'{"type":"init","tools":[]}',
        "unknown tool": b'{"type":"call","name":"no_such_tool","call_id":"x","params":{}}',
        "params is an array": sample | {"params": [1]},
        "params is a text": sample | {"params": "text"},
    }
    with Plugin(program.command, program.folder) as plugin:
        for blank in (b"", b"   ", b"\t", b"\r"):
            plugin.write(blank)
        plugin.write(b'{"type":"describe"}', end=b"\r\n")
        definition(plugin.read(), program.names)
        outcome(plugin.ask(sample, end=b"\r\n"), wanted)
        for title, line in wrong.items():
            try:
                outcome(plugin.ask(line), Error(re.compile(".")))
                alive(plugin, program)
            except Failed as failed:
                raise Failed(f"{title}: {failed}") from None
        plugin.ask(b'{"type":"call","name":"%s","call_id":"d","params":{"deep":%s}}' % (program.name.encode(), nested))
        alive(plugin, program)
        echoed = plugin.ask({"type": "dance", "call_id": 'a"\\ é\n'})
        expect(echoed.get("call_id") == 'a"\\ é\n', f"call_id came back as {echoed.get('call_id')!r}")
        if program.simple:  # Names and ids are optional in the simple protocol.
            outcome(plugin.ask({"type": "call", "params": params}), wanted)
        plugin.end()


def many_calls(program):
    params, wanted = program.sample
    with Plugin(program.command, program.folder) as plugin:
        started = time.monotonic()
        for number in range(200):
            outcome(plugin.call(program.name, params, f"call_{number}"), wanted)
        each = (time.monotonic() - started) / 200
        # All at once: whoever forgets to flush, or reads ahead and drops, stands out.
        waiting = {f"fast_{number}" for number in range(20)}
        for call_id in sorted(waiting):
            plugin.write({"type": "call", "name": program.name, "call_id": call_id, "params": params})
        while waiting:
            waiting.remove(plugin.result()["call_id"])
        plugin.end()
    return f"{each * 1000:.1f} ms each"


def large_argument(program):
    params, wanted = program.large
    size = len(json.dumps(params, ensure_ascii=False).encode())
    expect(size >= 1_000_000, f"the argument has {size} bytes only")
    with Plugin(program.command, program.folder) as plugin:
        started = time.monotonic()
        outcome(plugin.call(program.name, params), wanted)
        took = time.monotonic() - started
        alive(plugin, program)
        plugin.end()
    return f"{took:.2f} s"


def ending(program):
    """At once when nothing was asked, and after an answer to a last line without its end."""
    with Plugin(program.command, program.folder) as plugin:
        plugin.end()
    with Plugin(program.command, program.folder) as plugin:
        plugin.write(b'{"type":"describe"}', end=b"")
        plugin.process.stdin.close()
        definition(plugin.read(), program.names)
        return f"{plugin.end():.2f} s"


ALL = [describe, cases, strange_lines, many_calls, large_argument, ending]

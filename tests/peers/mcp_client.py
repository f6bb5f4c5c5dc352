"""Drives the built binary with the official Python client, over standard streams and
over HTTP, with a handshake and without: python tests/peers/mcp_client.py PATH_TO_HAFT"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

HAFT = str(Path(sys.argv[1] if len(sys.argv) > 1 else "target/debug/haft").resolve())
HOME = Path(tempfile.mkdtemp(prefix="haft-peer-"))
WORK = HOME / "work"
WORK.mkdir()
(WORK / "a.txt").write_text("one\ntwo\n")
(WORK / "haft.yaml").write_text("policy:\n  - { ask: write }\n")
ENV = {"PATH": os.environ["PATH"], "HOME": str(HOME)}
ARGS = ["mcp", "--dir", str(WORK), "--preset", "all"]
# Both life cycles: `initialize`, and none since 2026-07-28.
MODES = ["legacy", "2026-07-28"]


class Person:
    """Answers what is asked, and remembers it."""

    def __init__(self, decision):
        self.decision = decision
        self.asked = []

    async def __call__(self, context, params):
        self.asked.append(params.message)
        if self.decision is None:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"decision": self.decision})


def text(result):
    return "\n".join(getattr(block, "text", "") for block in result.content)


async def talk(where, mode, connect):
    person = Person("approve")
    async with Client(connect(), mode=mode, elicitation_callback=person) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names[:4] == ["read", "bash", "edit", "write"], names
        assert text(await client.call_tool("read", {"path": "a.txt"})) == "one\ntwo"

        heard = []

        async def progress(done, total, message):
            heard.append(message)

        script = "for i in 1 2 3; do echo line $i; sleep 0.3; done"
        result = await client.call_tool("bash", {"command": script}, progress_callback=progress)
        assert text(result) == "line 1\nline 2\nline 3\n", result
        assert any("line 1" in (message or "") for message in heard), heard

        missing = await client.call_tool("read", {"path": "absent.txt"})
        assert missing.is_error and "absent.txt" in text(missing), missing
        try:
            await client.call_tool("nothing", {})
            raise AssertionError("an unknown tool was called")
        except MCPError as error:
            assert "unknown tool: nothing" in str(error), error

        written = WORK / f"{where}-{mode}.txt"
        result = await client.call_tool("write", {"path": written.name, "content": "yes\n"})
        assert not result.is_error, text(result)
        assert written.read_text() == "yes\n"
        assert len(person.asked) == 1 and "write" in person.asked[0], person.asked

    for no in ["reject", None]:
        person = Person(no)
        async with Client(connect(), mode=mode, elicitation_callback=person) as client:
            result = await client.call_tool("write", {"path": "never.txt", "content": "no\n"})
            assert result.is_error and len(person.asked) == 1, (text(result), person.asked)
    async with Client(connect(), mode=mode) as client:
        result = await client.call_tool("write", {"path": "never.txt", "content": "no\n"})
        assert result.is_error, "nobody was there to be asked"
    assert not (WORK / "never.txt").exists()
    print(f"ok   {where}, {mode}")


async def main():
    for mode in MODES:
        await talk("stdio", mode, lambda: StdioServerParameters(command=HAFT, args=ARGS, env=ENV))
    server = subprocess.Popen(
        [HAFT, *ARGS, "--http", "127.0.0.1:0"], env=ENV, stdout=subprocess.PIPE, text=True
    )
    try:
        door = json.loads(server.stdout.readline())
        headers = {"Authorization": f"Bearer {door['token']}"}
        for mode in MODES:
            async with httpx2.AsyncClient(headers=headers) as http:
                await talk(
                    "http", mode, lambda: streamable_http_client(door["url"], http_client=http)
                )
    finally:
        server.terminate()
        assert server.wait(5) in (0, 143, -15), server.returncode


asyncio.run(main())

"""Drives the built binary with the Python client of the Agent Client Protocol.

python tests/peers/acp_client.py PATH_TO_HAFT
"""
import asyncio
import os
import shutil
import sys
import tempfile

import acp
from acp.schema import AllowedOutcome, RequestPermissionResponse

HERE = os.path.dirname(os.path.abspath(__file__))
HAFT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/debug/haft")


class Editor:
    """Keeps the updates and allows everything."""

    def __init__(self):
        self.updates = []
        self.questions = 0

    async def session_update(self, session_id, update, **_):
        self.updates.append(update)

    async def request_permission(self, session_id, tool_call, options, **_):
        self.questions += 1
        chosen = next(option for option in options if option.kind == "allow_once")
        outcome = AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return RequestPermissionResponse(outcome=outcome)

    def on_connect(self, conn):
        pass

    def text(self, kind):
        chunks = [update for update in self.updates if update.session_update == kind]
        return "".join(chunk.content.text for chunk in chunks)


async def main():
    target = os.path.join(HERE, "..", "..", "target")
    os.makedirs(target, exist_ok=True)
    home = tempfile.mkdtemp(prefix="acp-peer-", dir=os.path.abspath(target))
    work = os.path.join(home, "work")
    os.mkdir(work)
    config = os.path.join(home, ".config", "haft")
    os.makedirs(config)
    recording = os.path.join(home, "recording.jsonl")
    shutil.copy(os.path.join(HERE, "acp_recording.jsonl"), recording)
    with open(os.path.join(config, "haft.yaml"), "w") as file:
        file.write(f"provider: replay\nreplay: {recording}\npolicy: [ {{ ask: bash }} ]\n")
    with open(os.path.join(work, "greeting.txt"), "w") as file:
        file.write("hello\n")
    environment = {"PATH": os.environ["PATH"], "HOME": home}

    editor = Editor()
    async with acp.spawn_agent_process(editor, HAFT, "acp", env=environment, cwd=work) as (agent, _):
        started = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert started.protocol_version == 1, started
        session = (await agent.new_session(cwd=work, mcp_servers=[])).session_id
        ended = await agent.prompt(session_id=session, prompt=[acp.text_block("Change it.")])
        assert ended.stop_reason == "end_turn", ended
        assert editor.questions == 1, editor.questions
        with open(os.path.join(work, "greeting.txt")) as file:
            assert file.read() == "goodbye\n"
        await agent.set_session_mode(session_id=session, mode_id="auto")

    editor = Editor()
    async with acp.spawn_agent_process(editor, HAFT, "acp", env=environment, cwd=work) as (agent, _):
        await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        listed = await agent.list_sessions(cwd=work)
        assert [one.session_id for one in listed.sessions] == [session], listed
        await agent.load_session(cwd=work, session_id=session, mcp_servers=[])
        await asyncio.sleep(0)
        assert editor.text("user_message_chunk") == "Change it.", editor.updates
        assert "goodbye" in editor.text("agent_message_chunk")
    shutil.rmtree(home, ignore_errors=True)
    print("ok   the Python client")


asyncio.run(main())

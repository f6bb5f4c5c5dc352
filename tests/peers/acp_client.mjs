// Drives the built binary with the official client of the Agent Client Protocol, and checks
// every message of haft with its validators: node tests/peers/acp_client.mjs PATH_TO_HAFT
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as acp from "@agentclientprotocol/sdk/unstable";
import * as zod from "./node_modules/@agentclientprotocol/sdk/dist/v1/unstable/schema/zod.gen.js";
import { editor, remove, work } from "./acp_editor.mjs";
import { check, finish } from "./check.mjs";

// The validators for what haft sends: by method, and for answers by the method of the request.
const answers = {
  initialize: zod.zInitializeResponse,
  "session/new": zod.zNewSessionResponse,
  "session/load": zod.zLoadSessionResponse,
  "session/resume": zod.zResumeSessionResponse,
  "session/fork": zod.zForkSessionResponse,
  "session/list": zod.zListSessionsResponse,
  "session/close": zod.zCloseSessionResponse,
  "session/delete": zod.zDeleteSessionResponse,
  "session/prompt": zod.zPromptResponse,
  "session/set_config_option": zod.zSetSessionConfigOptionResponse,
};
const own = {
  "session/update": zod.zSessionNotification,
  "session/request_permission": zod.zRequestPermissionRequest,
};
const { connect, of, questions, state, text, updates, finished } = editor(acp, own, answers);
const place = (sessionId) => ({ sessionId, cwd: work, mcpServers: [] });

const first = connect();
let session;
await check("initialize", async () => {
  const answer = await first.client.request("initialize", {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
    clientInfo: { name: "peer", version: "1" },
  });
  assert.equal(answer.protocolVersion, 1);
  assert.equal(answer.agentInfo.name, "haft");
  assert.equal(answer.agentCapabilities.loadSession, true);
});
await check("a new session has modes and settings", async () => {
  const answer = await first.client.request("session/new", { cwd: work, mcpServers: [] });
  session = answer.sessionId;
  assert.equal(answer.modes.currentModeId, "ask");
  const ids = answer.configOptions.map((option) => option.id);
  for (const id of ["mode", "model", "sandbox", "network"]) assert.ok(ids.includes(id), id);
});
await check("a prompt streams text, calls and a question", async () => {
  const ended = await first.client.request("session/prompt", {
    sessionId: session,
    prompt: [{ type: "text", text: "Change it." }],
  });
  assert.equal(ended.stopReason, "end_turn");
  assert.match(text("agent_message_chunk"), /It says goodbye now/);
  assert.match(text("agent_thought_chunk"), /First I look/);
  assert.equal(questions.length, 1);
  assert.equal(readFileSync(join(work, "greeting.txt"), "utf8"), "goodbye\n");
  assert.ok(existsSync(join(work, "ran.txt")));
  const commands = of("available_commands_update")[0].availableCommands.map((command) => command.name);
  for (const name of ["undo", "compact", "tidy"]) assert.ok(commands.includes(name), name);
});
await check("modes and settings can be changed", async () => {
  await first.client.request("session/set_mode", { sessionId: session, modeId: "auto" });
  const set = { sessionId: session, configId: "sandbox", value: "strict" };
  const answer = await first.client.request("session/set_config_option", set);
  assert.equal(answer.configOptions.find((option) => option.id === "sandbox").currentValue, "strict");
});
await check("a rejected call lets the session go on", async () => {
  await first.client.request("session/set_mode", { sessionId: session, modeId: "ask" });
  state.choice = "reject";
  const ended = await first.client.request("session/prompt", {
    sessionId: session,
    prompt: [
      { type: "text", text: "Again, with " },
      { type: "resource_link", name: "greeting.txt", uri: `file://${work}/greeting.txt` },
    ],
  });
  assert.equal(ended.stopReason, "end_turn");
});
await check("fork, list and close", async () => {
  const fork = await first.client.request("session/fork", place(session));
  assert.notEqual(fork.sessionId, session);
  const listed = await first.client.request("session/list", { cwd: work });
  assert.equal(listed.sessions.length, 2);
  await first.client.request("session/close", { sessionId: fork.sessionId });
  await first.client.request("session/delete", { sessionId: fork.sessionId });
});
await check("the end of the input ends the agent", async () => {
  const ended = new Promise((done) => first.agent.once("exit", (code) => done(code)));
  first.agent.stdin.end();
  assert.equal(await ended, 0);
});
const second = connect();
await check("another process loads the session with its history", async () => {
  updates.length = 0;
  await second.client.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
  await second.client.request("session/load", place(session));
  assert.match(text("user_message_chunk"), /^Change it\./);
  assert.match(text("agent_message_chunk"), /It says goodbye now/);
  const diff = of("tool_call").flatMap((call) => call.content ?? []).find((content) => content.type === "diff");
  assert.equal(diff.newText, "goodbye");
  await second.client.request("session/resume", place(session));
});
await check("an unknown method is refused", async () => {
  await assert.rejects(second.client.request("no/such/method", {}), (error) => error.code === -32601);
});
const { checked, invalid } = finished();
await check(`every message is valid (${checked} checked)`, () => assert.deepEqual(invalid, []));
second.agent.kill();
remove();
finish();

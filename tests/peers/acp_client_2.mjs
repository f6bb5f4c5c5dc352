// Like acp_client.mjs, in version 2 of the protocol, a draft:
// node tests/peers/acp_client_2.mjs PATH_TO_HAFT
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as acp from "@agentclientprotocol/sdk/experimental/v2/unstable";
import * as zod from "./node_modules/@agentclientprotocol/sdk/dist/v2/unstable/schema/zod.gen.js";
import { editor, remove, work } from "./acp_editor.mjs";
import { check, finish } from "./check.mjs";

const answers = {
  initialize: zod.zInitializeResponse,
  "auth/login": zod.zLoginAuthResponse,
  "session/new": zod.zNewSessionResponse,
  "session/resume": zod.zResumeSessionResponse,
  "session/fork": zod.zForkSessionResponse,
  "session/list": zod.zListSessionsResponse,
  "session/close": zod.zCloseSessionResponse,
  "session/delete": zod.zDeleteSessionResponse,
  "session/prompt": zod.zPromptResponse,
  "session/set_config_option": zod.zSetSessionConfigOptionResponse,
};
const own = {
  "session/update": zod.zUpdateSessionNotification,
  "session/request_permission": zod.zRequestPermissionRequest,
};
const { connect, of, questions, state, text, updates, finished } = editor(acp, own, answers);
const place = (sessionId) => ({ sessionId, cwd: work, mcpServers: [] });
const introduction = {
  protocolVersion: 2,
  info: { name: "peer", version: "1" },
  capabilities: {},
};
async function prompt(client, sessionId, words) {
  const before = of("state_update").length;
  const answer = await client.request("session/prompt", { sessionId, prompt: [{ type: "text", text: words }] });
  const idle = () => of("state_update").slice(before).find((update) => update.state === "idle");
  for (let left = 300; left > 0 && !idle(); left -= 1) await new Promise((done) => setTimeout(done, 100));
  return { ...idle(), messageId: answer.messageId };
}

const first = connect();
let session;
await check("initialize", async () => {
  const answer = await first.client.request("initialize", introduction);
  assert.equal(answer.protocolVersion, 2);
  assert.equal(answer.info.name, "haft");
  await first.client.request("auth/login", { methodId: answer.authMethods[0].methodId });
});
await check("a new session has settings and commands", async () => {
  const answer = await first.client.request("session/new", { cwd: work, mcpServers: [] });
  session = answer.sessionId;
  const ids = answer.configOptions.map((option) => option.configId);
  for (const id of ["mode", "model", "sandbox", "network"]) assert.ok(ids.includes(id), id);
  const commands = answer.availableCommands.map((command) => command.name);
  for (const name of ["undo", "compact", "tidy"]) assert.ok(commands.includes(name), name);
});
await check("a prompt streams text, calls and a question", async () => {
  const ended = await prompt(first.client, session, "Change it.");
  assert.equal(ended.stopReason, "end_turn");
  assert.match(text("agent_message_chunk"), /It says goodbye now/);
  assert.match(text("agent_thought_chunk"), /First I look/);
  assert.equal(questions.length, 1);
  assert.equal(questions[0].subject.type, "tool_call");
  assert.equal(readFileSync(join(work, "greeting.txt"), "utf8"), "goodbye\n");
  assert.ok(existsSync(join(work, "ran.txt")));
  assert.equal(of("user_message")[0].messageId, ended.messageId);
});
await check("settings can be changed", async () => {
  const set = { sessionId: session, configId: "mode", type: "id", value: "auto" };
  const answer = await first.client.request("session/set_config_option", set);
  assert.equal(answer.configOptions.find((option) => option.configId === "mode").currentValue, "auto");
});
await check("a run that fails is told, and the session goes on", async () => {
  state.choice = "reject";
  const ended = await prompt(first.client, session, "More than the recording has.");
  assert.equal(ended.stopReason, "error");
  const answered = await prompt(first.client, session, "/changes");
  assert.equal(answered.stopReason, "end_turn");
});
await check("fork, list, close and delete", async () => {
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
await check("another process resumes the session with its history", async () => {
  updates.length = 0;
  await second.client.request("initialize", introduction);
  await second.client.request("session/resume", { ...place(session), replayFrom: { type: "start" } });
  assert.match(text("user_message_chunk"), /^Change it\./);
  assert.match(text("agent_message_chunk"), /It says goodbye now/);
  const contents = of("tool_call_update").flatMap((call) => call.content ?? []);
  assert.match(contents.find((content) => content.type === "diff").patch.text, /^\+goodbye/m);
  assert.equal(of("state_update").at(-1).state, "idle");
});
await check("what version 2 removed is refused", async () => {
  await assert.rejects(second.client.request("session/load", place(session)), (error) => error.code === -32601);
});
const { checked, invalid } = finished();
await check(`every message is valid (${checked} checked)`, () => assert.deepEqual(invalid, []));
second.agent.kill();
remove();
finish();

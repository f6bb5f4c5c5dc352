// Drives the built binary with the official MCP client over HTTP, and asks a person:
// node tests/peers/http_client.mjs PATH_TO_HAFT
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { check, finish } from "./check.mjs";

const haft = resolve(process.argv[2] ?? "target/debug/haft");
const home = mkdtempSync(join(tmpdir(), "haft-peer-"));
const work = join(home, "work");
mkdirSync(work);
mkdirSync(join(home, ".config/haft"), { recursive: true });
writeFileSync(join(home, ".config/haft/haft.yaml"), "policy:\n  - ask: write\n");
writeFileSync(join(work, "a.txt"), "hello\n");

const server = spawn(haft, ["mcp", "--http", "0", "--dir", work, "--preset", "all"], {
  env: { PATH: process.env.PATH, HOME: home },
  stdio: ["ignore", "pipe", "inherit"],
});
const [line] = await once(createInterface({ input: server.stdout }), "line");
const { url, token } = JSON.parse(line);
const text = (result) => result.content.map((block) => block.text ?? "").join("\n");
const transport = (bearer) =>
  new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { Authorization: `Bearer ${bearer}` } } });

await check("without the token nobody connects", async () => {
  await assert.rejects(new Client({ name: "peer", version: "1" }).connect(transport("wrong")));
});

const asked = [];
let decision = "approve";
const client = new Client({ name: "peer", version: "1" }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, (request) => {
  asked.push(request.params.message);
  return { action: "accept", content: { decision } };
});
const own = transport(token);
await client.connect(own);

await check("the tools are listed and called", async () => {
  const names = (await client.listTools()).tools.map((tool) => tool.name);
  assert.deepEqual(names, ["read", "bash", "edit", "write", "grep", "find", "ls", "web_search", "web_fetch"]);
  assert.equal(text(await client.callTool({ name: "read", arguments: { path: "a.txt" } })).trim(), "hello");
});
await check("a person is asked, and their word counts", async () => {
  const write = (path) => client.callTool({ name: "write", arguments: { path, content: "x" } });
  assert.ok(!(await write("yes.txt")).isError);
  assert.ok(existsSync(join(work, "yes.txt")));
  assert.match(asked[0], /Allow write to run\?/);
  decision = "reject";
  assert.ok((await write("no.txt")).isError);
  assert.ok(!existsSync(join(work, "no.txt")));
});
await check("calls at the same time are answered each", async () => {
  const calls = Array.from({ length: 50 }, () => client.callTool({ name: "ls", arguments: {} }));
  for (const result of await Promise.all(calls)) assert.match(text(result), /a\.txt/);
});
await check("each client has a session of its own", async () => {
  const other = new Client({ name: "peer", version: "1" });
  const second = transport(token);
  await other.connect(second);
  assert.notEqual(second.sessionId, own.sessionId);
  assert.ok((await other.callTool({ name: "write", arguments: { path: "b.txt", content: "x" } })).isError);
  await second.terminateSession();
  await other.close();
});
await check("a session ends when it is told to", async () => {
  await own.terminateSession();
  await client.close();
});

server.kill("SIGTERM");
await once(server, "exit");
rmSync(home, { recursive: true, force: true });
finish();

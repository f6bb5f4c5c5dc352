// Drives the built binary with the official MCP client, the way an editor or
// another agent would: node tests/peers/mcp_client.mjs PATH_TO_HAFT
import assert from "node:assert/strict";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { check, finish } from "./check.mjs";

const haft = resolve(process.argv[2] ?? "target/debug/haft");
const home = mkdtempSync(join(tmpdir(), "haft-peer-"));
const work = join(home, "work");
mkdirSync(work);

// One pixel, so that an image block has something to show.
const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
writeFileSync(join(work, "pixel.dat"), png);
writeFileSync(join(work, "main.go"), 'func main() {\n\tprintln("hello")\n}\n');

const transport = new StdioClientTransport({
  command: haft,
  args: ["mcp", "--dir", work, "--preset", "all"],
  env: { PATH: process.env.PATH, HOME: home },
  stderr: "inherit",
});
const client = new Client({ name: "peer", version: "1" });
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const text = (result) => result.content.map((block) => block.text ?? "").join("\n");

await client.connect(transport);

await check("the server says who it is", () => {
  assert.equal(client.getServerVersion().name, "haft");
  assert.ok(client.getServerCapabilities().tools);
});
await check("the tools are listed in the same order every time", async () => {
  const names = async () => (await client.listTools()).tools.map((tool) => tool.name);
  const first = await names();
  assert.deepEqual(first, ["read", "bash", "edit", "write", "grep", "find", "ls", "web_search", "web_fetch"]);
  assert.deepEqual(await names(), first);
});
await check("every schema is an object with described parameters", async () => {
  for (const tool of (await client.listTools()).tools) {
    assert.equal(tool.inputSchema.type, "object");
    for (const property of Object.values(tool.inputSchema.properties)) assert.ok(property.description);
  }
});
await check("write, read, edit", async () => {
  assert.equal(text(await call("write", { path: "a/b.txt", content: "one\ntwo\n" })), "Successfully wrote 8 bytes to a/b.txt");
  assert.equal(text(await call("read", { path: "a/b.txt" })), "one\ntwo");
  await call("edit", { path: "a/b.txt", old_text: "two", new_text: "2" });
  assert.equal(readFileSync(join(work, "a/b.txt"), "utf8"), "one\n2\n");
});
await check("grep, find, ls", async () => {
  assert.equal(text(await call("grep", { pattern: "println" })), 'main.go:2:\tprintln("hello")\n\n[1 match; searched 2 files, skipped 1: 1 binary]');
  assert.equal(text(await call("find", { pattern: "*.txt" })), "a/b.txt");
  assert.match(text(await call("ls", {})), /^a\/ {2}- {2}\d{4}-/);
});
await check("an image is an image block", async () => {
  const result = await call("read", { path: "pixel.dat" });
  const image = result.content.find((block) => block.type === "image");
  assert.equal(image.mimeType, "image/png");
  assert.deepEqual(Buffer.from(image.data, "base64"), png);
});
await check("a failing tool is a result with isError, and teaches", async () => {
  const result = await call("edit", { path: "main.go", old_text: '    println("hello")', new_text: "x" });
  assert.equal(result.isError, true);
  assert.match(text(result), /4 spaces wanted, 1 tab found/);
});
await check("invalid arguments are a result with isError", async () => {
  const result = await call("read", {});
  assert.equal(result.isError, true);
  assert.equal(text(result), 'validation error: missing required parameter "path"');
});
await check("an unknown tool is a protocol error", async () => {
  await assert.rejects(call("raed", {}), /read/);
});
await check("outside the folder nothing is written", async () => {
  const result = await call("write", { path: "/usr/escape.txt", content: "x" });
  assert.equal(result.isError, true);
  assert.match(text(result), /^path not allowed: \/usr\/escape\.txt/);
});
await check("a command runs, tells how it goes, and cannot write elsewhere", async () => {
  const told = [];
  const result = await call(
    "bash",
    { command: "echo begun; sleep 0.5; touch /usr/escape.txt; exit 3" },
    { onprogress: (progress) => told.push(progress.message) },
  );
  assert.match(text(result), /^begun\n[^]*refused by the sandbox[^]*\nExit code: 3$/);
  assert.deepEqual(told, ["begun"]);
});
await check("a hundred calls at once are all answered", async () => {
  const calls = Array.from({ length: 100 }, (_, at) => call("read", { path: "a/b.txt", limit: 1 + (at % 2) }));
  const replies = (await Promise.all(calls)).map(text);
  replies.forEach((reply, at) => assert.ok(reply.startsWith(at % 2 ? "one\n2" : "one\n\n[Showing")));
});
await check("a long search reports progress and can be cancelled", async () => {
  const abort = new AbortController();
  let seen = 0;
  const search = call("grep", { pattern: "zzzz[a-q]{3}never", path: "/usr" }, {
    signal: abort.signal,
    onprogress: () => {
      seen += 1;
      abort.abort("enough");
    },
  });
  await search.catch((error) => assert.match(String(error), /enough|abort/i));
  assert.ok(seen >= 1, "no progress was reported");
  assert.equal(text(await call("read", { path: "a/b.txt" })), "one\n2", "the connection lives on");
});

const pid = transport.pid;
await client.close();
await check("the server ends when the client goes", async () => {
  for (let at = 0; at < 100; at += 1) {
    try {
      process.kill(pid, 0);
    } catch {
      return;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail(`process ${pid} still runs`);
});

rmSync(home, { recursive: true, force: true });
finish();

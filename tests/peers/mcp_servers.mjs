// Drives the built binary as a client of the official MCP servers, over each of their
// transports: node tests/peers/mcp_servers.mjs PATH_TO_HAFT
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { check, finish } from "./check.mjs";

const haft = resolve(process.argv[2] ?? "target/debug/haft");
const peers = dirname(fileURLToPath(import.meta.url));
const modules = join(peers, "node_modules", "@modelcontextprotocol");
// An old version of the Python SDK; ./test installs it.
const oldPython = join(peers, "..", "..", "target", "peers-old", "bin", "python");
const everything = join(modules, "server-everything", "dist", "index.js");
const filesystem = join(modules, "server-filesystem", "dist", "index.js");
const home = mkdtempSync(join(tmpdir(), "haft-servers-"));
const work = join(home, "work");
mkdirSync(work);
writeFileSync(join(work, "hello.txt"), "hello\n");


const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
// Waits until the server says that it listens.
async function listening(mode) {
  const port = await freePort();
  const child = spawn(process.execPath, [everything, mode], {
    env: { PATH: process.env.PATH, PORT: String(port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  await new Promise((done, fail) => {
    const hear = (bytes) => /listening|running on port/i.test(String(bytes)) && done();
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("exit", () => fail(new Error(`${mode} ended`)));
  });
  return { port, child };
}

const http = await listening("streamableHttp");
const sse = await listening("sse");
const config = join(home, "haft.yaml");
writeFileSync(
  config,
  JSON.stringify({
    tools: {
      mcp: {
        stdio: { command: process.execPath, args: [everything] },
        http: { url: `http://127.0.0.1:${http.port}/mcp` },
        sse: { uri: `http://127.0.0.1:${sse.port}/sse` },
        files: { command: process.execPath, args: [filesystem, work] },
        old: { command: oldPython, args: [join(peers, "old_server.py")] },
      },
    },
  }),
);
const flags = ["--config", config, "--dir", work];
const env = { PATH: process.env.PATH, HOME: home };
const run = (...args) => promisify(execFile)(haft, [...flags, ...args], { env });

for (const name of ["stdio", "http", "sse"]) {
  await check(`${name}: haft mcp test finds it good`, async () => {
    const { stdout } = await run("mcp", "test", name, "--json");
    const report = JSON.parse(stdout);
    assert.equal(report.good, true);
    assert.ok(report.tools.length >= 10, stdout);
  });
}

const transport = new StdioClientTransport({ command: haft, args: [...flags, "mcp"], env, stderr: "inherit" });
const client = new Client({ name: "peer", version: "1" });
await client.connect(transport);
const call = (name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const text = (result) => result.content.map((block) => block.text ?? "").join("\n");

for (const name of ["stdio", "http", "sse"]) {
  await check(`${name}: a call and its answer`, async () => {
    assert.equal(text(await call(`${name}_echo`, { message: "é\n" })), "Echo: é\n");
  });
  await check(`${name}: numbers, structured content, pictures, links`, async () => {
    assert.match(text(await call(`${name}_get-sum`, { a: 2, b: 40 })), /42/);
    assert.match(text(await call(`${name}_get-structured-content`, { location: "Chicago" })), /temperature/);
    const picture = await call(`${name}_get-tiny-image`, {});
    assert.ok(picture.content.some((block) => block.type === "image" && block.mimeType === "image/png"));
    assert.match(text(await call(`${name}_get-resource-links`, { count: 2 })), /demo:\/\/resource/);
  });
  await check(`${name}: progress comes through`, async () => {
    const seen = [];
    const result = await call(`${name}_trigger-long-running-operation`, { duration: 1, steps: 4 }, { onprogress: (p) => seen.push(p) });
    assert.match(text(result), /completed/);
    assert.ok(seen.length >= 2, JSON.stringify(seen));
  });
  await check(`${name}: what it asks of a person is declined where nobody is`, async () => {
    assert.match(text(await call(`${name}_trigger-elicitation-request`, {})), /declined/);
  });
}
await check("old: a server that ends at an unknown request is used", async () => {
  assert.equal(text(await call("old_add", { a: 2, b: 3 })), "5");
});
await check("stdio: it sees no more of the environment than it should", async () => {
  const seen = JSON.parse(text(await call("stdio_get-env", {})));
  const usual = ["PATH", "HOME", "USER", "SHELL", "LANG", "TZ", "TERM", "TMPDIR"];
  for (const variable of Object.keys(seen)) assert.ok(usual.includes(variable) || variable.startsWith("LC_"), variable);
});
await check("files: the filesystem server works in the work folder, and nowhere else", async () => {
  assert.match(text(await call("files_read_text_file", { path: join(work, "hello.txt") })), /hello/);
  await call("files_write_file", { path: join(work, "new.txt"), content: "new" });
  assert.equal(readFileSync(join(work, "new.txt"), "utf8"), "new");
  assert.equal((await call("files_write_file", { path: join(home, "no.txt"), content: "no" })).isError, true);
});

await client.close();
http.child.removeAllListeners("exit").kill();
sse.child.removeAllListeners("exit").kill();
rmSync(home, { recursive: true, force: true });
finish();

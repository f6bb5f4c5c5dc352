// Drives the built binary with acpx, a client of the Agent Client Protocol without an editor,
// on the Node that it needs: node tests/peers/acp_acpx.mjs PATH_TO_HAFT
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { check, finish } from "./check.mjs";
import { scriptedModel } from "./scripted_model.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const haft = resolve(process.argv[2] ?? "target/debug/haft");
const node = join(here, `acpx/node_modules/node-linux-${process.arch}/bin/node`);
const acpx = join(here, "acpx/node_modules/acpx/dist/cli.js");
mkdirSync(join(here, "../../target"), { recursive: true });
const home = mkdtempSync(join(here, "../../target/acpx-peer-"));
const work = join(home, "work");
mkdirSync(join(home, ".config/haft"), { recursive: true });
mkdirSync(work);

const model = await scriptedModel((messages) => {
  const last = messages.at(-1);
  if (last.role === "tool") return `The tool said: ${JSON.stringify(last.content).slice(0, 200)}`;
  const prompt = JSON.stringify(last.content);
  if (prompt.includes("touch")) return { command: "echo touched > touched.txt" };
  if (prompt.includes("wait")) return { command: "echo $$ > waiting.txt; sleep 300" };
  return `This is answer ${messages.filter((message) => message.role === "user").length}.`;
});
writeFileSync(
  join(home, ".config/haft/haft.yaml"),
  `provider: openai-completions\nmodel: scripted\nbase_url: "${model.url}"\napi_key: none\npolicy: [ { ask: bash } ]\n`,
);

function run(...words) {
  const fixed = [acpx, "--cwd", work, "--agent", `${haft} acp`, "--format", "json", "--ttl", "5"];
  return new Promise((done) => {
    const options = { cwd: work, env: { PATH: process.env.PATH, HOME: home }, timeout: 60_000 };
    execFile(node, [...fixed, ...words], options, (error, stdout, stderr) => {
      const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
      done({ code: error?.code ?? 0, messages: lines.map((line) => JSON.parse(line)), stderr });
    });
  });
}
const updates = ({ messages }, kind) =>
  messages.map((message) => message.params?.update).filter((update) => update?.sessionUpdate === kind);
const text = (ran) => updates(ran, "agent_message_chunk").map((update) => update.content.text).join("");
const reason = ({ messages }) => messages.findLast((message) => message.result?.stopReason)?.result.stopReason;
async function until(what, holds) {
  for (let left = 200; left > 0; left -= 1) {
    if (holds()) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  assert.fail(`${what} did not happen`);
}
// Processes of this test whose command line starts with these words.
const running = (...words) =>
  readdirSync("/proc").filter((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
      const isIt = words.every((word, at) => line[at] === word);
      return isIt && readFileSync(`/proc/${pid}/environ`, "utf8").includes(home);
    } catch {
      return false;
    }
  });

await check("a session is created, and a prompt is answered", async () => {
  const created = await run("sessions", "new");
  assert.equal(created.code, 0, created.stderr);
  const ran = await run("prompt", "Hello.");
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(reason(ran), "end_turn");
  assert.equal(text(ran), "This is answer 1.");
});
await check("a rejected call does not run, and the session goes on", async () => {
  const ran = await run("--deny-all", "prompt", "Please touch it.");
  assert.equal(reason(ran), "end_turn");
  assert.ok(ran.messages.some((message) => message.method === "session/request_permission"));
  assert.ok(!existsSync(join(work, "touched.txt")));
  assert.equal(text(await run("prompt", "And now?")), "This is answer 3.");
});
await check("an approved call runs", async () => {
  const ran = await run("--approve-all", "prompt", "Now touch it.");
  assert.equal(reason(ran), "end_turn");
  assert.equal(readFileSync(join(work, "touched.txt"), "utf8"), "touched\n");
});
await check("cancel ends the command, and the session goes on", async () => {
  const waiting = run("--approve-all", "prompt", "Please wait.");
  await until("the command", () => existsSync(join(work, "waiting.txt")) && running("sleep", "300").length === 1);
  const cancelled = await run("cancel");
  assert.equal(cancelled.code, 0, cancelled.stderr);
  assert.equal(reason(await waiting), "cancelled");
  await until("the end of the command", () => running("sleep", "300").length === 0);
  assert.equal(reason(await run("prompt", "Still there?")), "end_turn");
});
await check("the session is listed, and is there after a restart of the agent", async () => {
  const listed = await run("sessions", "list");
  assert.equal(listed.messages[0].sessions.length, 1);
  assert.equal(listed.messages[0].sessions[0].title, "Hello.");
  // The agent ends with its owner, which waits five seconds for another prompt.
  await until("the end of the agent", () => running(haft, "acp").length === 0);
  const ran = await run("prompt", "Do you remember?");
  assert.equal(reason(ran), "end_turn");
  assert.equal(text(ran), "This is answer 7.");
  assert.equal((await run("sessions", "list")).messages[0].sessions.length, 1);
});
await check("settings can be changed", async () => {
  const ran = await run("set-mode", "auto");
  assert.equal(ran.code, 0, ran.stderr);
  rmSync(join(work, "touched.txt"));
  const touched = await run("--deny-all", "prompt", "Please touch it.");
  assert.ok(!touched.messages.some((message) => message.method === "session/request_permission"));
  assert.ok(existsSync(join(work, "touched.txt")));
});
await check("the session can be closed", async () => {
  assert.equal((await run("sessions", "close")).code, 0);
});
model.close();
rmSync(home, { recursive: true, force: true });
finish();

// Sends messages to servers that others wrote: a real mail server with a real
// parser of mails, and Node's HTTP server in place of the chat services.
//   node tests/peers/messages.mjs PATH_TO_HAFT
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import PostalMime from "postal-mime";
import { SMTPServer } from "smtp-server";
import { check, finish } from "./check.mjs";

const haft = resolve(process.argv[2] ?? "target/debug/haft");
const home = mkdtempSync(join(tmpdir(), "haft-messages-"));
const work = join(home, "work");
mkdirSync(work);
const config = join(home, "haft.yaml");
const secret = "hunter2-secret";

const mails = [];
const mailServer = new SMTPServer({
  hideSTARTTLS: true,
  allowInsecureAuth: true,
  onAuth(auth, _session, done) {
    const known = auth.username === "ann" && auth.password === secret;
    done(known ? null : new Error("who are you"), known ? { user: "ann" } : undefined);
  },
  onRcptTo(address, _session, done) {
    const refused = address.address.startsWith("nobody@");
    done(refused ? Object.assign(new Error("no such user"), { responseCode: 550 }) : null);
  },
  onData(stream, session, done) {
    const chunks = [];
    stream.on("data", (chunk) => chunks.push(chunk));
    stream.on("end", async () => {
      const mail = await PostalMime.parse(Buffer.concat(chunks));
      mails.push({ mail, to: session.envelope.rcptTo.map((to) => to.address) });
      done(null, "queued");
    });
  },
});

const requests = [];
const httpServer = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    requests.push({ method: request.method, url: request.url, headers: request.headers, body: JSON.parse(body) });
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ ok: true, id: "1" }));
  });
});

const listen = (server) =>
  new Promise((ready) => server.listen(0, "127.0.0.1", () => ready((server.server ?? server).address().port)));

const mailPort = await listen(mailServer);
const httpPort = await listen(httpServer);
const base_url = `http://127.0.0.1:${httpPort}`;
const mail = { kind: "email", host: "127.0.0.1", port: mailPort, username: "ann", password: secret, from: "Haft <haft@example.org>" };
// JSON is YAML.
writeFileSync(
  config,
  JSON.stringify({
    tools: {
      channels: {
        mail,
        stranger: { ...mail, password: "hunter2-wrong" },
        telegram: { kind: "telegram", token: secret, base_url },
        slack: { kind: "slack", token: secret, base_url },
        discord: { kind: "discord", token: secret, base_url },
        hook: { kind: "webhook", url: `${base_url}/hook/${secret}` },
        screen: { kind: "console" },
      },
    },
  }),
);

/** Calls the tool; what it printed, and whether it failed. */
function message(chanId, chatId, content) {
  const call = JSON.stringify({ chanId, chatId, content });
  const args = ["--toolset", "workspace", "--dir", work, "--config", config, "--approve", "auto", "call", "message", call];
  const env = { PATH: process.env.PATH, HOME: home };
  return new Promise((done) => {
    execFile(haft, args, { env }, (error, stdout, stderr) => {
      assert.ok(!`${stdout}${stderr}`.includes("hunter2"), `a secret is out: ${stdout}${stderr}`);
      done({ code: error?.code ?? 0, reply: stdout ? JSON.parse(stdout) : undefined, stderr });
    });
  });
}


await check("a mail arrives as it was written", async () => {
  const content = `Größe 😀 stimmt\n\n.a line with a dot\n${"lang ".repeat(400)}\nFrom here\n`;
  const { code, reply } = await message("mail", "bob@example.org", content);
  assert.equal(code, 0);
  const { content: echoed, ...rest } = reply;
  assert.deepEqual(rest, { success: true, chanId: "mail", chatId: "bob@example.org" });
  assert.equal(echoed.trim(), content.trim());
  assert.equal(mails.length, 1);
  const [{ mail, to }] = mails;
  assert.deepEqual(to, ["bob@example.org"]);
  assert.equal(mail.subject, "Größe 😀 stimmt");
  assert.deepEqual([mail.from.name, mail.from.address], ["Haft", "haft@example.org"]);
  assert.deepEqual(mail.to.map((to) => to.address), ["bob@example.org"]);
  assert.equal(mail.text.trimEnd(), content.trimEnd());
  assert.ok(mail.messageId.endsWith("@example.org>"));
});

await check("what the mail server refuses is told", async () => {
  const nobody = await message("mail", "nobody@example.org", "hi");
  assert.equal(nobody.code, 1);
  assert.match(nobody.reply.error, /^failed to send message: 127\.0\.0\.1:\d+ answered 550: no such user/);
  const stranger = await message("stranger", "bob@example.org", "hi");
  assert.match(stranger.reply.error, /: the user name or password was refused$/);
  const forged = await message("mail", "bob@example.org\r\nBcc: eve@example.org", "hi");
  assert.match(forged.reply.error, /^failed to send message: /);
  assert.equal(mails.length, 1);
});

await check("chat services get what they want", async () => {
  for (const channel of ["telegram", "slack", "discord", "hook"]) {
    assert.equal((await message(channel, "42", "hi ü")).code, 0, channel);
  }
  const seen = requests.map(({ method, url, body }) => [method, url, body]);
  assert.deepEqual(seen, [
    ["POST", `/bot${secret}/sendMessage`, { chat_id: "42", text: "hi ü" }],
    ["POST", "/api/chat.postMessage", { channel: "42", text: "hi ü" }],
    ["POST", "/api/v10/channels/42/messages", { content: "hi ü", allowed_mentions: { parse: ["users"] } }],
    ["POST", `/hook/${secret}`, { channel: "hook", chat_id: "42", content: "hi ü" }],
  ]);
  assert.equal(requests[1].headers.authorization, `Bearer ${secret}`);
  assert.equal(requests[2].headers.authorization, `Bot ${secret}`);
});

await check("a console is the terminal", async () => {
  const { code, stderr } = await message("screen", "me", "hi\u001b[2J");
  assert.equal(code, 0);
  assert.ok(stderr.includes("[screen → me] hi\\x1b[2J"), stderr);
});

await check("an unknown channel is named with the known ones", async () => {
  const { code, reply } = await message("pager", "me", "hi");
  assert.equal(code, 1);
  assert.equal(reply.error, "channel not found: pager");
  assert.ok(JSON.stringify(reply).includes("telegram"), JSON.stringify(reply));
});

mailServer.close();
httpServer.close();
rmSync(home, { recursive: true, force: true });
finish();

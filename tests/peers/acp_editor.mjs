// An editor with the official client of the Agent Client Protocol, in any version of it. Every
// message of haft is checked with the validators of the client.
import { spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
export const haft = resolve(process.argv[2] ?? "target/debug/haft");
mkdirSync(join(here, "../../target"), { recursive: true });
const home = mkdtempSync(join(here, "../../target/acp-peer-"));
export const work = join(home, "work");
mkdirSync(work);
mkdirSync(join(home, ".config/haft/commands"), { recursive: true });
const recording = join(home, "recording.jsonl");
copyFileSync(join(here, "acp_recording.jsonl"), recording);
const settings = `provider: replay\nreplay: ${recording}\npolicy: [ { ask: bash } ]\n`;
writeFileSync(join(home, ".config/haft/haft.yaml"), settings);
writeFileSync(join(home, ".config/haft/commands/tidy.md"), "Tidy up $ARGUMENTS");
writeFileSync(join(work, "greeting.txt"), "hello\n");

// `sdk` is the client library; `own` has the validators by method, `answers` those for answers
// by the method of the request.
export function editor(sdk, own, answers) {
  const state = { choice: "allow" };
  const invalid = [];
  let checked = 0;
  // Fields that haft sends and the schema does not know are mistakes too: a validator drops them.
  function dropped(sent, parsed, path = "") {
    if (sent === null || typeof sent !== "object") return [];
    return Object.keys(sent).flatMap((key) =>
      parsed && typeof parsed === "object" && key in parsed
        ? dropped(sent[key], parsed[key], `${path}.${key}`)
        : [`${path}.${key}`],
    );
  }
  function validate(validator, value, name) {
    checked += 1;
    const result = validator.safeParse(value);
    if (!result.success) return invalid.push(`${name}: ${result.error.message} in ${JSON.stringify(value)}`);
    const unknown = dropped(value, result.data);
    if (unknown.length > 0) invalid.push(`${name}: unknown fields ${unknown.join(", ")}`);
  }

  const asked = new Map();
  const updates = [];
  const questions = [];
  function connect() {
    const agent = spawn(haft, ["acp"], {
      cwd: work,
      env: { PATH: process.env.PATH, HOME: home },
      stdio: ["pipe", "pipe", "inherit"],
    });
    const stream = sdk.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
    // Everything passes here on its way.
    const outgoing = new TransformStream({
      transform(message, controller) {
        if (message.method && "id" in message) asked.set(message.id, message.method);
        controller.enqueue(message);
      },
    });
    const incoming = new TransformStream({
      transform(message, controller) {
        if (message.method && own[message.method]) validate(own[message.method], message.params, message.method);
        else if (message.method) invalid.push(`unexpected method ${message.method}`);
        else if (message.result !== undefined) {
          const method = asked.get(message.id);
          if (answers[method]) validate(answers[method], message.result, method);
        }
        controller.enqueue(message);
      },
    });
    outgoing.readable.pipeTo(stream.writable).catch(() => {});
    stream.readable.pipeTo(incoming.writable).catch(() => {});
    const app = sdk
      .client({ name: "peer" })
      .onNotification("session/update", ({ params }) => void updates.push(params.update))
      .onRequest("session/request_permission", ({ params }) => {
        questions.push(params);
        return { outcome: { outcome: "selected", optionId: state.choice } };
      });
    const connection = app.connect({ readable: incoming.readable, writable: outgoing.writable });
    return { agent, connection, client: connection.agent };
  }
  const of = (kind) => updates.filter((update) => update.sessionUpdate === kind);
  const text = (kind) => of(kind).map((update) => update.content.text).join("");
  const finished = () => ({ checked, invalid });
  return { connect, of, questions, state, text, updates, finished };
}

export const remove = () => rmSync(home, { recursive: true, force: true });

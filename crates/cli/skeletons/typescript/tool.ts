#!/usr/bin/env -S deno run
// {{name}}: a plugin for haft.
//
// It reads one JSON message per line from stdin and answers each with one line on
// stdout. Never print anything else to stdout: logs go to stderr (console.error).

type Fields = Record<string, unknown>;

// All that a model knows of the tool. Be specific.
const definition = {
  name: "{{name}}",
  description: "Turn a text into upper case.",
  parameters: {
    type: "object",
    properties: {
      text: { type: "string", description: "The text" },
    },
    required: ["text"],
  },
};

/** The tool itself. Whatever it throws is told to the model. */
function run(params: Fields): string {
  const { text } = params;
  if (typeof text !== "string") throw new Error("text must be a string");
  return text.toUpperCase();
}

function reply(text: string, error = false): Fields {
  return { content: [{ type: "text", text }], error };
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function call({ name = definition.name, params = {} }: Fields): Fields {
  if (name !== definition.name) return reply(`unknown tool: ${name}`, true);
  if (!isObject(params)) return reply("params must be an object", true);
  try {
    return reply(run(params));
  } catch (problem) {
    return reply((problem as Error).message, true);
  }
}

function answer(line: string): Fields {
  let message: unknown;
  try {
    message = JSON.parse(line);
  } catch (problem) {
    return reply(`malformed JSON: ${(problem as Error).message}`, true);
  }
  if (!isObject(message)) return reply("a message must be a JSON object", true);
  if (message.type === "describe") return definition;
  const result = message.type === "call"
    ? call(message)
    : reply(`unknown message type: ${message.type}`, true);
  if ("call_id" in message) result.call_id = message.call_id;
  return result;
}

function take(line: string) {
  if (line.trim() !== "") console.log(JSON.stringify(answer(line)));
}

let rest = ""; // the start of a line whose end has not come yet
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = chunk.split("\n");
  lines[0] = rest + lines[0];
  rest = lines.pop()!;
  lines.forEach(take);
}
take(rest);

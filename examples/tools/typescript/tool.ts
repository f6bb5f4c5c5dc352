#!/usr/bin/env -S deno run
// json_query: extracts a value from a JSON text by its path, as a plugin for haft.
//
// A plugin reads one JSON message per line from stdin and answers each with one
// line on stdout. Everything else goes to stderr (console.error).

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Params = { [key: string]: Json };
type Reply = {
  content: { type: "text"; text: string }[];
  error: boolean;
  call_id?: Json;
};

const definition = {
  name: "json_query",
  description:
    "Extract a value from a JSON text by a dot path such as users.0.name. " +
    "Strings come back as they are, everything else as JSON.",
  parameters: {
    type: "object",
    properties: {
      json: { type: "string", description: "The JSON text to look into" },
      path: {
        type: "string",
        description:
          'Keys and array indexes: users.0.name or users[0].name; -1 is the last element; ["a.b"] is a key with a dot; empty = everything',
      },
      compact: {
        type: "boolean",
        description: "One line of JSON instead of indented JSON (default false)",
      },
    },
    required: ["json", "path"],
  },
};

/** A problem that the model can solve. */
class Problem extends Error {}

/** Splits `a.b[0]["c.d"]` into its steps. */
function steps(path: string): string[] {
  const found: string[] = [];
  // jq and JSONPath start with a dot or "$".
  let rest = path.trim().replace(/^\$/, "").replace(/^\.(?!\.)/, "");
  while (rest !== "") {
    const step = /^(?:\[(-?\d+)\]|\[("(?:[^"\\]|\\.)*")\]|([^.[\]]+))(?:\.(?=[^.])|(?=\[)|$)/.exec(rest);
    if (!step) throw new Problem(`path has no step at: ${rest}`);
    found.push(step[1] ?? (step[2] ? JSON.parse(step[2]) : step[3]));
    rest = rest.slice(step[0].length);
  }
  return found;
}

function pick(value: Json, step: string, seen: string): Json {
  if (Array.isArray(value)) {
    if (!/^-?\d+$/.test(step)) throw new Problem(`${seen} is an array: "${step}" is not an index`);
    const item = value.at(Number(step));
    if (item === undefined) throw new Problem(`${seen} has ${value.length} elements: no index ${step}`);
    return item;
  }
  if (value === null || typeof value !== "object") {
    throw new Problem(`${seen} is ${value === null ? "null" : `a ${typeof value}`}: it has no "${step}"`);
  }
  // Not `step in value`: every object inherits "constructor".
  if (!Object.hasOwn(value, step)) {
    const keys = Object.keys(value).slice(0, 20).join(", ") || "none";
    throw new Problem(`${seen} has no key "${step}"; its keys: ${keys}`);
  }
  return value[step];
}

/** The tool itself: returns its text, or throws a Problem with words for the model. */
function jsonQuery(params: Params): string {
  const { json, path, compact = false } = params;
  if (typeof json !== "string") throw new Problem("json must be a string");
  if (typeof path !== "string") throw new Problem("path must be a string");
  if (typeof compact !== "boolean") throw new Problem("compact must be a boolean");
  let value: Json;
  try {
    value = JSON.parse(json);
  } catch (problem) {
    throw new Problem(`json is not valid: ${(problem as Error).message}`);
  }
  let seen = "the root";
  for (const step of steps(path)) {
    value = pick(value, step, seen);
    seen = seen === "the root" ? step : `${seen}.${step}`;
  }
  return typeof value === "string" ? value : JSON.stringify(value, null, compact ? 0 : 2);
}

function reply(text: string, error = false): Reply {
  return { content: [{ type: "text", text }], error };
}

function isObject(value: unknown): value is Params {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function call(message: Params): Reply {
  const { name = definition.name, params = {} } = message;
  if (name !== definition.name) return reply(`unknown tool: ${name}`, true);
  if (!isObject(params)) return reply("params must be an object", true);
  try {
    return reply(jsonQuery(params));
  } catch (problem) {
    // One bug must not end the plugin: the next call may be fine.
    if (!(problem instanceof Problem)) console.error("json_query:", problem);
    return reply(problem instanceof Error ? problem.message : String(problem), true);
  }
}

function answer(line: string): Reply | typeof definition {
  let message: Json;
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
  if (message.call_id !== undefined) result.call_id = message.call_id;
  return result;
}

// Messages end only at a line feed: a string may contain U+2028, which other line
// readers treat as the end of a line.
let rest = "";
for await (const chunk of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = chunk.split("\n");
  lines[0] = rest + lines[0];
  rest = lines.pop()!;
  for (const line of lines) take(line);
}
take(rest);

function take(line: string) {
  // trim() also removes the CR of a CRLF.
  if (line.trim() !== "") console.log(JSON.stringify(answer(line.trim())));
}

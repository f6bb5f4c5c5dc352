// A model server that speaks OpenAI's Chat Completions and answers from a script: a function
// that gets the messages of a request and returns a text, or { command } to run one.
import { createServer } from "node:http";

export async function scriptedModel(script) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const said = script(JSON.parse(body).messages);
    const call = (command) => ({
      tool_calls: [
        { index: 0, id: `c${Date.now()}`, type: "function", function: { name: "bash", arguments: JSON.stringify({ command }) } },
      ],
    });
    const delta = typeof said === "string" ? { content: said } : call(said.command);
    const reason = typeof said === "string" ? "stop" : "tool_calls";
    const chunk = (fields) => `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", model: "scripted", choices: [{ index: 0, ...fields }] })}\n\n`;
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.end(`${chunk({ delta, finish_reason: null })}${chunk({ delta: {}, finish_reason: reason })}data: [DONE]\n\n`);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

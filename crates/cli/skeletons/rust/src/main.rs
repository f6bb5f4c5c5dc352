//! {{name}}: a plugin for haft.
//!
//! It reads one JSON message per line from stdin and answers each with one line on
//! stdout. Never print anything else to stdout: logs go to stderr.

use serde_json::{Map, Value, json};
use std::io::{self, BufRead, Write};

const NAME: &str = "{{name}}";

/// All that a model knows of the tool. Be specific.
fn definition() -> Value {
    json!({
        "name": NAME,
        "description": "Turn a text into upper case.",
        "parameters": {
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "The text" }
            },
            "required": ["text"]
        }
    })
}

/// The tool itself. The model sees the error text.
fn run(params: &Map<String, Value>) -> Result<String, String> {
    let text = params.get("text").and_then(Value::as_str);
    Ok(text.ok_or("text must be a string")?.to_uppercase())
}

fn reply(text: String, error: bool) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "error": error })
}

fn call(message: &Map<String, Value>) -> Value {
    if let Some(name) = message.get("name").filter(|name| *name != NAME) {
        return reply(format!("unknown tool: {name}"), true);
    }
    let result = match message.get("params") {
        Some(Value::Object(params)) => run(params),
        Some(_) => Err("params must be an object".into()),
        None => run(&Map::new()),
    };
    match result {
        Ok(text) => reply(text, false),
        Err(problem) => reply(problem, true),
    }
}

fn answer(line: &str) -> Value {
    let message = match serde_json::from_str(line) {
        Ok(Value::Object(message)) => message,
        Ok(_) => return reply("a message must be a JSON object".into(), true),
        Err(problem) => return reply(format!("malformed JSON: {problem}"), true),
    };
    let mut result = match message.get("type").and_then(Value::as_str) {
        Some("describe") => return definition(),
        Some("call") => call(&message),
        kind => reply(format!("unknown message type: {kind:?}"), true),
    };
    if let Some(call_id) = message.get("call_id") {
        result["call_id"] = call_id.clone();
    }
    result
}

fn main() -> io::Result<()> {
    // By bytes, because a line that is not UTF-8 must not end the plugin.
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if !line.trim().is_empty() {
            let mut stdout = io::stdout().lock();
            writeln!(stdout, "{}", answer(&line))?;
            stdout.flush()?;
        }
    }
    Ok(())
}

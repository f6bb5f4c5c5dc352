//! `haft mcp`: a server for each section.

use super::route::PATIENCE;
use super::{Answer, Haft, Place, Route, Session};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::path::PathBuf;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

/// Calls by the protocol, over the standard streams of `haft mcp`.
#[derive(Debug)]
pub struct Mcp(
    /// The command.
    pub Haft,
);

#[async_trait]
impl Route for Mcp {
    fn keeps_session(&self) -> bool {
        true
    }

    async fn open(&self, place: &Place) -> Result<Box<dyn Session>, String> {
        let log = place.beside("mcp.log");
        let said = File::create(&log).map_err(|error| error.to_string())?;
        let mut command = self.0.at(place).command();
        // A page shows every tool of its toolset, not only what a model sees of it
        // if nothing is said.
        command.args(["--preset", "all", "mcp"]).stderr(said);
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot be run: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server has no streams".to_owned());
        };
        let mut server = Server {
            child,
            input,
            lines: BufReader::new(output).lines(),
            log,
            last: 0,
        };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "transcripts", "version": "1" },
        });
        server.ask("initialize", hello).await?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        server.send(&ready).await?;
        Ok(Box::new(server))
    }
}

struct Server {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    log: PathBuf,
    last: u64,
}

#[async_trait]
impl Session for Server {
    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, String> {
        let request = json!({ "name": tool, "arguments": arguments });
        answer(&self.ask("tools/call", request).await?)
    }

    async fn close(self: Box<Self>) -> Result<(), String> {
        let Self {
            mut child,
            input,
            lines,
            log,
            ..
        } = *self;
        drop(input);
        let ended = timeout(PATIENCE, child.wait()).await;
        drop(lines);
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("the server ended with {status}{}", said(&log))),
            Ok(Err(error)) => Err(format!("the server cannot be waited for: {error}")),
            Err(_) => Err(format!("the server did not end within {PATIENCE:?}")),
        }
    }
}

impl Server {
    async fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.last += 1;
        let id = self.last;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters });
        self.send(&request).await?;
        let answered = timeout(PATIENCE, self.answer_to(id)).await;
        answered.map_err(|_| format!("no answer after {PATIENCE:?}{}", said(&self.log)))?
    }

    async fn send(&mut self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let sent = self.input.write_all(line.as_bytes()).await;
        sent.map_err(|error| format!("the server is gone: {error}{}", said(&self.log)))
    }

    /// What the server says besides is not asked for here.
    async fn answer_to(&mut self, id: u64) -> Result<Value, String> {
        loop {
            let line = self
                .lines
                .next_line()
                .await
                .map_err(|error| format!("the server cannot be read: {error}"))?
                .ok_or_else(|| format!("the server ended{}", said(&self.log)))?;
            let mut message: Value = serde_json::from_str(&line)
                .map_err(|error| format!("{line:?} is no message: {error}"))?;
            if message["id"] != id || message.get("method").is_some() {
                continue;
            }
            return match message.get("error") {
                Some(error) => Err(format!("the server refused: {error}")),
                None => Ok(message["result"].take()),
            };
        }
    }
}

fn said(log: &PathBuf) -> String {
    let said = std::fs::read_to_string(log).unwrap_or_default();
    format!(", stderr:\n{said}")
}

/// The reply in the result of a call. A reply that is a JSON object is there a
/// second time, as one; any other is not.
fn answer(result: &Value) -> Result<Answer, String> {
    let is_error = match result.get("isError") {
        None => false,
        Some(is_error) => is_error
            .as_bool()
            .ok_or_else(|| format!("isError is {is_error}"))?,
    };
    let answer = Answer::of(&result["content"], is_error)?;
    let object = serde_json::from_str::<Map<String, Value>>(&answer.text);
    // A picture beside it is no part of an object, so that the whole is none.
    let blocks = result["content"].as_array().map(Vec::as_slice);
    let is_text = blocks.is_some_and(|blocks| blocks.iter().all(|block| block["type"] == "text"));
    let object = object.ok().filter(|_| is_text).map(Value::Object);
    if result.get("structuredContent") != object.as_ref() {
        return Err(format!(
            "structuredContent is not the text as an object: {result}"
        ));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str, structured: Option<Value>) -> Result<Answer, String> {
        let mut result = json!({ "content": [{ "type": "text", "text": text }] });
        if let Some(structured) = structured {
            result["structuredContent"] = structured;
        }
        answer(&result)
    }

    #[test]
    fn an_object_is_there_as_an_object_too() {
        assert!(result(r#"{"a":1}"#, Some(json!({ "a": 1 }))).is_ok());
        assert!(result("{a}", None).is_ok());
        assert!(result("[1]", None).is_ok());
        assert!(result(r#"{"a":1}"#, None).is_err());
        assert!(result(r#"{"a":1}"#, Some(json!({ "a": 2 }))).is_err());
        assert!(result("[1]", Some(json!([1]))).is_err());
    }

    #[test]
    fn a_failure_is_one_only_if_it_is_marked() {
        let marked = |mark: Value| answer(&json!({ "content": [], "isError": mark }));
        assert!(marked(json!(true)).unwrap().is_error);
        assert!(!marked(json!(false)).unwrap().is_error);
        assert!(marked(json!("yes")).is_err());
        assert!(!answer(&json!({ "content": [] })).unwrap().is_error);
        assert!(answer(&json!({})).is_err());
    }
}

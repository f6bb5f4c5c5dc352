//! The route through `haft mcp`: one server per section.

use super::route::TIMEOUT;
use super::{Haft, Route, SectionFolders, Session, ToolReply};
use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::fs::File;
use std::path::PathBuf;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::time::timeout;

/// Makes calls over stdio to `haft mcp`.
#[derive(Debug)]
pub struct Mcp(
    /// The built command.
    pub Haft,
);

#[async_trait]
impl Route for Mcp {
    fn keeps_session(&self) -> bool {
        true
    }

    async fn open(&self, folders: &SectionFolders) -> Result<Box<dyn Session>, String> {
        let log = folders.beside("mcp.log");
        let stderr = File::create(&log).map_err(|error| error.to_string())?;
        let mut command = self.0.launch(folders).command();
        // A page shows every tool of its toolset, not only the default preset.
        command.args(["--preset", "all", "mcp"]).stderr(stderr);
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot be started: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("cannot open the server's streams".to_owned());
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
    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<ToolReply, String> {
        let request = json!({ "name": tool, "arguments": arguments });
        reply(&self.ask("tools/call", request).await?)
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
        let ended = timeout(TIMEOUT, child.wait()).await;
        drop(lines);
        match ended {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("the server ended with {status}{}", stderr(&log))),
            Ok(Err(error)) => Err(format!("cannot wait for the server: {error}")),
            Err(_) => Err(format!("the server did not end within {TIMEOUT:?}")),
        }
    }
}

impl Server {
    async fn ask(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.last += 1;
        let id = self.last;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters });
        self.send(&request).await?;
        let response = timeout(TIMEOUT, self.answer_to(id)).await;
        response.map_err(|_| format!("no response after {TIMEOUT:?}{}", stderr(&self.log)))?
    }

    async fn send(&mut self, message: &Value) -> Result<(), String> {
        let line = format!("{message}\n");
        let sent = self.input.write_all(line.as_bytes()).await;
        sent.map_err(|error| format!("the server is gone: {error}{}", stderr(&self.log)))
    }

    /// Waits for the response, ignoring other messages from the server.
    async fn answer_to(&mut self, id: u64) -> Result<Value, String> {
        loop {
            let line = self
                .lines
                .next_line()
                .await
                .map_err(|error| format!("cannot read from the server: {error}"))?
                .ok_or_else(|| format!("the server ended{}", stderr(&self.log)))?;
            let mut message: Value = serde_json::from_str(&line)
                .map_err(|error| format!("{line:?} is not a message: {error}"))?;
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

fn stderr(log: &PathBuf) -> String {
    let stderr = std::fs::read_to_string(log).unwrap_or_default();
    format!(", stderr:\n{stderr}")
}

/// Extracts the reply from the result of a call. A reply that is a JSON object must also be in
/// `structuredContent`; other replies must not.
fn reply(result: &Value) -> Result<ToolReply, String> {
    let is_error = match result.get("isError") {
        None => false,
        Some(is_error) => is_error
            .as_bool()
            .ok_or_else(|| format!("isError is {is_error}"))?,
    };
    let reply = ToolReply::of(&result["content"], is_error)?;
    let object = serde_json::from_str::<Map<String, Value>>(&reply.text);
    // With an image beside it, the reply as a whole is not an object.
    let blocks = result["content"].as_array().map(Vec::as_slice);
    let is_text = blocks.is_some_and(|blocks| blocks.iter().all(|block| block["type"] == "text"));
    let object = object.ok().filter(|_| is_text).map(Value::Object);
    if result.get("structuredContent") != object.as_ref() {
        return Err(format!(
            "structuredContent does not match the text: {result}"
        ));
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str, structured: Option<Value>) -> Result<ToolReply, String> {
        let mut result = json!({ "content": [{ "type": "text", "text": text }] });
        if let Some(structured) = structured {
            result["structuredContent"] = structured;
        }
        reply(&result)
    }

    #[test]
    fn an_object_is_also_in_structured_content() {
        assert!(result(r#"{"a":1}"#, Some(json!({ "a": 1 }))).is_ok());
        assert!(result("{a}", None).is_ok());
        assert!(result("[1]", None).is_ok());
        assert!(result(r#"{"a":1}"#, None).is_err());
        assert!(result(r#"{"a":1}"#, Some(json!({ "a": 2 }))).is_err());
        assert!(result("[1]", Some(json!([1]))).is_err());
    }

    #[test]
    fn only_is_error_marks_a_failure() {
        let marked = |mark: Value| reply(&json!({ "content": [], "isError": mark }));
        assert!(marked(json!(true)).unwrap().is_error);
        assert!(!marked(json!(false)).unwrap().is_error);
        assert!(marked(json!("yes")).is_err());
        assert!(!reply(&json!({ "content": [] })).unwrap().is_error);
        assert!(reply(&json!({})).is_err());
    }
}

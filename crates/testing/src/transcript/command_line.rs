//! The route through `haft call`: one process per call.

use super::route::{Launch, TIMEOUT};
use super::{Haft, Route, SectionFolders, Session, ToolReply};
use async_trait::async_trait;
use serde_json::Value;
use std::io;
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// The system allows 128 KiB per argument; longer ones go through stdin.
const MAX_ARGUMENT: usize = 100 << 10;

/// Makes calls with `haft call`.
#[derive(Debug)]
pub struct CommandLine(
    /// The built command.
    pub Haft,
);

#[async_trait]
impl Route for CommandLine {
    fn keeps_session(&self) -> bool {
        false
    }

    async fn open(&self, folders: &SectionFolders) -> Result<Box<dyn Session>, String> {
        Ok(Box::new(Calls(self.0.launch(folders))))
    }
}

/// Starts a new process for every call; nothing lasts between calls.
struct Calls(Launch);

#[async_trait]
impl Session for Calls {
    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<ToolReply, String> {
        let arguments = arguments.to_string();
        let (argument, input) = if arguments.len() > MAX_ARGUMENT {
            ("-", arguments.as_str())
        } else {
            (arguments.as_str(), "")
        };
        let ended = timeout(TIMEOUT, self.run(&[tool, argument, "--json"], input)).await;
        let output = ended
            .map_err(|_| format!("still running after {TIMEOUT:?}"))?
            .map_err(|error| format!("cannot be started: {error}"))?;
        reply(&output)
    }

    async fn close(self: Box<Self>) -> Result<(), String> {
        Ok(())
    }
}

impl Calls {
    async fn run(&self, arguments: &[&str], input: &str) -> io::Result<Output> {
        let mut command = self.0.command();
        command.arg("call").args(arguments).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A process that does not read its input reports the reason when it exits.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait_with_output().await
    }
}

/// Parses the printed reply. Ignores notes on stderr, and checks that the exit code matches the
/// reply.
fn reply(output: &Output) -> Result<ToolReply, String> {
    let printed = String::from_utf8_lossy(&output.stdout);
    let code = output.status.code();
    let reply: Value = serde_json::from_str(&printed).map_err(|error| {
        let stderr = String::from_utf8_lossy(&output.stderr);
        format!("exit code {code:?}, stdout {printed:?} is not JSON ({error}), stderr:\n{stderr}")
    })?;
    let is_error = reply["is_error"]
        .as_bool()
        .ok_or_else(|| format!("no is_error in {reply}"))?;
    if code != Some(i32::from(is_error)) {
        return Err(format!("exit code {code:?} with is_error {is_error}"));
    }
    ToolReply::of(&reply["content"], is_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn ended(code: i32, stdout: &str) -> Result<ToolReply, String> {
        reply(&Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: b"a note".into(),
        })
    }

    #[test]
    fn the_exit_code_must_match_the_reply() {
        let fine = r#"{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}],"is_error":false}"#;
        let reply = ended(0, fine).unwrap();
        assert_eq!((reply.text.as_str(), reply.is_error), ("a\nb", false));
        let failed = r#"{"content":[],"is_error":true}"#;
        assert!(ended(1, failed).unwrap().is_error);
        for (code, stdout) in [(1, fine), (0, failed), (2, failed), (2, "")] {
            let problem = ended(code, stdout).unwrap_err();
            assert!(
                problem.contains(&format!("exit code Some({code})")),
                "{problem}"
            );
        }
        assert!(ended(2, "").unwrap_err().contains("a note"));
    }
}

//! `haft call`: a process for each call.

use super::route::{Launch, PATIENCE};
use super::{Answer, Haft, Place, Route, Session};
use async_trait::async_trait;
use serde_json::Value;
use std::io;
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// The system takes 128 KiB for one argument; longer ones go by stdin.
const LONGEST: usize = 100 << 10;

/// Calls by `haft call`.
#[derive(Debug)]
pub struct CommandLine(
    /// The command.
    pub Haft,
);

#[async_trait]
impl Route for CommandLine {
    fn keeps_session(&self) -> bool {
        false
    }

    async fn open(&self, place: &Place) -> Result<Box<dyn Session>, String> {
        Ok(Box::new(Calls(self.0.at(place))))
    }
}

/// Nothing goes on between calls but how a process is started.
struct Calls(Launch);

#[async_trait]
impl Session for Calls {
    async fn call(&mut self, tool: &str, arguments: &Value) -> Result<Answer, String> {
        let arguments = arguments.to_string();
        let (argument, input) = if arguments.len() > LONGEST {
            ("-", arguments.as_str())
        } else {
            (arguments.as_str(), "")
        };
        let ended = timeout(PATIENCE, self.run(&[tool, argument, "--json"], input)).await;
        let output = ended
            .map_err(|_| format!("no end after {PATIENCE:?}"))?
            .map_err(|error| format!("cannot be run: {error}"))?;
        answer(&output)
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
            // A process that does not want it says why when it ends.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        child.wait_with_output().await
    }
}

/// What was printed. Notes on stderr are for people; the exit code is for scripts
/// and says the same as the reply.
fn answer(output: &Output) -> Result<Answer, String> {
    let printed = String::from_utf8_lossy(&output.stdout);
    let code = output.status.code();
    let reply: Value = serde_json::from_str(&printed).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("exit code {code:?}, stdout {printed:?} is no JSON ({error}), stderr:\n{said}")
    })?;
    let is_error = reply["is_error"]
        .as_bool()
        .ok_or_else(|| format!("no is_error in {reply}"))?;
    if code != Some(i32::from(is_error)) {
        return Err(format!("exit code {code:?} with is_error {is_error}"));
    }
    Answer::of(&reply["content"], is_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn ended(code: i32, stdout: &str) -> Result<Answer, String> {
        answer(&Output {
            status: ExitStatus::from_raw(code << 8),
            stdout: stdout.into(),
            stderr: b"a note".into(),
        })
    }

    #[test]
    fn the_exit_code_says_what_the_reply_says() {
        let fine = r#"{"content":[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}],"is_error":false}"#;
        let answer = ended(0, fine).unwrap();
        assert_eq!((answer.text.as_str(), answer.is_error), ("a\nb", false));
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

//! Builds replies: one JSON object with `status`, and images beside it.

use crate::host::Host;
use crate::modules;
use crate::run::{End, Limits, RunResult};
use crate::tree::Saved;
use haft::Reply;
use haft::ops::text::decode::{lossy, prefix, suffix};
use haft::ops::text::sniff::{image_type, is_binary, kind_name};
use haft::truncate::format_size;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::path::PathBuf;

/// Maximum number of bytes of each stream in a reply.
const MAX_STREAM: usize = 40_000;

/// Maximum number of images and maximum size of each.
const MAX_IMAGES: usize = 4;
const MAX_IMAGE: usize = 4 << 20;

/// Maximum number of paths that a reply lists.
const MAX_PATHS: usize = 100;

/// Everything that a reply is built from.
pub(crate) struct ReplyParts {
    pub(crate) run: RunResult,
    pub(crate) result: Option<String>,
    pub(crate) saved: Saved,
    pub(crate) images: Vec<(PathBuf, Vec<u8>)>,
    pub(crate) limits: Limits,
}

impl ReplyParts {
    /// Builds the reply.
    pub(crate) async fn reply(self, host: &dyn Host) -> Reply {
        let Self {
            run,
            result,
            saved,
            images,
            limits,
        } = self;
        let (mut message, mut hints) = (Vec::new(), Vec::new());
        let code = match &run.end {
            End::Exited(code) => *code,
            End::TimedOut => {
                message.push(format!("timed out after {:.1}s", limits.time.as_secs_f64()));
                -1
            }
            End::LimitReached(bound) => {
                message.push(format!("stopped: {bound}"));
                -1
            }
            End::NotStarted(problem) => {
                message.push(problem.clone());
                2
            }
        };
        if !run.truncations.is_empty() {
            message.push(format!(
                "the output is incomplete: {}",
                run.truncations.join("; ")
            ));
            let hint = "commands here have their own limits; use execute_python for more output";
            hints.push(Cow::Borrowed(hint));
        }
        message.extend(saved.failed.iter().cloned());
        let stderr = lossy(&run.stderr);
        hints.extend(hint_for(code, &stderr));

        let mut answer = Map::new();
        let stdout = self::stream(&run.stdout, "stdout", host, &mut answer).await;
        let stderr = self::stream(&run.stderr, "stderr", host, &mut answer).await;
        let is_error = code != 0 || !message.is_empty();
        let is_truncated = run.is_truncated || stdout.1 || stderr.1;
        let mut fields = json!({
            "status": if is_error { "error" } else { "success" },
            "stdout": stdout.0, "stderr": stderr.0, "exit_code": code,
        });
        if let Value::Object(fields) = &mut fields {
            let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
            if let Some(result) = result {
                add("result", result.into());
            }
            add("truncated", is_truncated.into());
            fields.extend(answer);
            if !message.is_empty() {
                fields.insert("message".to_owned(), message.join("\n").into());
            }
            paths(fields, "files_written", &saved.written);
            paths(fields, "files_removed", &saved.removed);
            let shown = images.len().min(MAX_IMAGES);
            let mut remarks = saved.remarks;
            if images.len() > shown {
                remarks.push(format!("{shown} of {} images are shown", images.len()));
            }
            remarks.extend(hints.into_iter().map(Cow::into_owned));
            if !remarks.is_empty() {
                fields.insert("hint".to_owned(), remarks.join("\n").into());
            }
        }
        let mut reply = Reply::json(fields);
        for (_, bytes) in images.iter().take(MAX_IMAGES) {
            match image_type(bytes) {
                Some(kind) if bytes.len() <= MAX_IMAGE => reply = reply.and_image(bytes, kind),
                _ => {}
            }
        }
        with_error_flag(reply, is_error)
    }
}

/// Returns the text of one stream for a model, and whether it is truncated.
async fn stream(
    bytes: &[u8],
    name: &str,
    host: &dyn Host,
    answer: &mut Map<String, Value>,
) -> (String, bool) {
    let sample = bytes.get(..8192).unwrap_or(bytes);
    if is_binary(sample) {
        let kind = kind_name(sample).map(|kind| format!(", {kind}"));
        let size = format_size(bytes.len() as u64);
        let text = format!("(binary output, {size}{})", kind.unwrap_or_default());
        return (text, false);
    }
    let text = lossy(bytes);
    if text.len() <= MAX_STREAM {
        return (text.into_owned(), false);
    }
    let (head, tail) = (prefix(&text, MAX_STREAM / 2), suffix(&text, MAX_STREAM / 2));
    let omitted = text.len() - head.len() - tail.len();
    let shown = format!(
        "{head}\n[... {omitted} of {} bytes omitted ...]\n{tail}",
        text.len()
    );
    if let Some(path) = host.keep(name, bytes).await {
        answer.insert(format!("{name}_path"), path.into());
    }
    (shown, true)
}

/// Returns a hint for common failures.
fn hint_for(code: i32, stderr: &str) -> Option<Cow<'static, str>> {
    let contains_any = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if let Some(module) = modules::missing_module(stderr) {
        return Some(modules::missing_module_hint(module).into());
    }
    if contains_any(&["pip: command not found", "pip3: command not found"]) {
        return Some("use install_packages instead of pip".into());
    }
    if code == 127 || contains_any(&["command not found"]) {
        return Some(
            "this Bash has only built-in commands, not the machine's programs; use execute_python for Python"
                .into(),
        );
    }
    if contains_any(&["MemoryError"]) {
        return Some("process the data in smaller pieces: the memory of a call is limited".into());
    }
    if contains_any(&["can't start new thread", "does not support processes"]) {
        return Some("threads and processes are not available here".into());
    }
    None
}

fn paths(fields: &mut Map<String, Value>, name: &str, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    let mut shown: Vec<String> = paths.iter().take(MAX_PATHS).cloned().collect();
    if paths.len() > shown.len() {
        shown.push(format!("... ({} in all)", paths.len()));
    }
    fields.insert(name.to_owned(), shown.into());
}

/// Builds the reply to `install_packages`.
pub(crate) fn installed(installed: &[crate::packages::Installed]) -> Reply {
    let all: Vec<Value> = installed
        .iter()
        .map(|one| json!({ "name": one.name, "version": one.version, "files": one.files }))
        .collect();
    Reply::json(json!({ "status": "success", "installed": all }))
}

/// Builds an error reply.
pub(crate) fn failure(message: &str, hint: Option<&str>) -> Reply {
    let mut answer = json!({ "status": "error", "message": message });
    if let (Value::Object(fields), Some(hint)) = (&mut answer, hint) {
        fields.insert("hint".to_owned(), hint.into());
    }
    with_error_flag(Reply::json(answer), true)
}

fn with_error_flag(reply: Reply, is_error: bool) -> Reply {
    if is_error { reply.as_error() } else { reply }
}

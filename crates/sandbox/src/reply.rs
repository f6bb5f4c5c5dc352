//! What the tools answer: one JSON object with `status`, and pictures beside it.

use crate::host::Host;
use crate::modules;
use crate::run::{Ended, Limits, Ran};
use crate::tree::Settled;
use haft::Reply;
use haft::ops::text::decode::{lossy, prefix, suffix};
use haft::ops::text::sniff::{image_type, is_binary, kind_name};
use haft::truncate::format_size;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::path::PathBuf;

/// How much of each stream a reply holds.
const MOST: usize = 40_000;

/// How many pictures, and how large.
const MOST_IMAGES: usize = 4;
const LARGEST_IMAGE: usize = 4 << 20;

/// How many paths are named.
const MOST_PATHS: usize = 100;

/// Everything that there is to say about a run.
pub(crate) struct Said {
    pub(crate) ran: Ran,
    pub(crate) result: Option<String>,
    pub(crate) settled: Settled,
    pub(crate) images: Vec<(PathBuf, Vec<u8>)>,
    pub(crate) limits: Limits,
}

impl Said {
    /// The reply.
    pub(crate) async fn reply(self, host: &dyn Host) -> Reply {
        let Self {
            ran,
            result,
            settled,
            images,
            limits,
        } = self;
        let (mut message, mut hints) = (Vec::new(), Vec::new());
        let code = match &ran.ended {
            Ended::Itself(code) => *code,
            Ended::TimedOut => {
                message.push(format!("timed out after {:.1}s", limits.time.as_secs_f64()));
                -1
            }
            Ended::Bound(bound) => {
                message.push(format!("stopped: {bound}"));
                -1
            }
            Ended::Refused(problem) => {
                message.push(problem.clone());
                2
            }
        };
        if !ran.wrong.is_empty() {
            message.push(format!(
                "the answer is not complete: {}",
                ran.wrong.join("; ")
            ));
            let hint = "commands here have bounds of their own; use execute_python for as much";
            hints.push(Cow::Borrowed(hint));
        }
        message.extend(settled.lost.iter().cloned());
        let stderr = lossy(&ran.stderr);
        hints.extend(advice(code, &stderr));

        let mut answer = Map::new();
        let stdout = self::stream(&ran.stdout, "stdout", host, &mut answer).await;
        let stderr = self::stream(&ran.stderr, "stderr", host, &mut answer).await;
        let is_error = code != 0 || !message.is_empty();
        let is_cut = ran.is_cut || stdout.1 || stderr.1;
        let mut fields = json!({
            "status": if is_error { "error" } else { "success" },
            "stdout": stdout.0, "stderr": stderr.0, "exit_code": code,
        });
        if let Value::Object(fields) = &mut fields {
            let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
            if let Some(result) = result {
                add("result", result.into());
            }
            add("truncated", is_cut.into());
            fields.extend(answer);
            if !message.is_empty() {
                fields.insert("message".to_owned(), message.join("\n").into());
            }
            paths(fields, "files_written", &settled.written);
            paths(fields, "files_removed", &settled.removed);
            let shown = images.len().min(MOST_IMAGES);
            let mut remarks = settled.remarks;
            if images.len() > shown {
                remarks.push(format!("{shown} of {} pictures are shown", images.len()));
            }
            remarks.extend(hints.into_iter().map(Cow::into_owned));
            if !remarks.is_empty() {
                fields.insert("hint".to_owned(), remarks.join("\n").into());
            }
        }
        let mut reply = Reply::json(&fields);
        for (_, bytes) in images.iter().take(MOST_IMAGES) {
            match image_type(bytes) {
                Some(kind) if bytes.len() <= LARGEST_IMAGE => reply = reply.and_image(bytes, kind),
                _ => {}
            }
        }
        erroneous(reply, is_error)
    }
}

/// One stream for a model, and whether it was cut.
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
        let said = format!("(binary output, {size}{})", kind.unwrap_or_default());
        return (said, false);
    }
    let text = lossy(bytes);
    if text.len() <= MOST {
        return (text.into_owned(), false);
    }
    let (head, tail) = (prefix(&text, MOST / 2), suffix(&text, MOST / 2));
    let left_out = text.len() - head.len() - tail.len();
    let shown = format!(
        "{head}\n[... {left_out} of {} bytes left out ...]\n{tail}",
        text.len()
    );
    if let Some(path) = host.keep(name, bytes).await {
        answer.insert(format!("{name}_path"), path.into());
    }
    (shown, true)
}

/// What helps with a failure that many have.
fn advice(code: i32, stderr: &str) -> Option<Cow<'static, str>> {
    let says = |words: &[&str]| words.iter().any(|word| stderr.contains(word));
    if let Some(module) = modules::named(stderr) {
        return Some(modules::missing(module).into());
    }
    if says(&["pip: command not found", "pip3: command not found"]) {
        return Some("install_packages takes the place of pip".into());
    }
    if code == 127 || says(&["command not found"]) {
        return Some(
            "this Bash has its own commands and none of the machine's; Python is there: execute_python"
                .into(),
        );
    }
    if says(&["MemoryError"]) {
        return Some("work on the data piece by piece: the memory of a call is bounded".into());
    }
    if says(&["can't start new thread", "does not support processes"]) {
        return Some("there are no threads and no processes here".into());
    }
    None
}

fn paths(fields: &mut Map<String, Value>, name: &str, paths: &[String]) {
    if paths.is_empty() {
        return;
    }
    let mut shown: Vec<String> = paths.iter().take(MOST_PATHS).cloned().collect();
    if paths.len() > shown.len() {
        shown.push(format!("... ({} in all)", paths.len()));
    }
    fields.insert(name.to_owned(), shown.into());
}

/// What was installed.
pub(crate) fn installed(installed: &[crate::packages::Installed]) -> Reply {
    let all: Vec<Value> = installed
        .iter()
        .map(|one| json!({ "name": one.name, "version": one.version, "files": one.files }))
        .collect();
    Reply::json(&json!({ "status": "success", "installed": all }))
}

/// A failure.
pub(crate) fn failure(message: &str, hint: Option<&str>) -> Reply {
    let mut answer = json!({ "status": "error", "message": message });
    if let (Value::Object(fields), Some(hint)) = (&mut answer, hint) {
        fields.insert("hint".to_owned(), hint.into());
    }
    erroneous(Reply::json(&answer), true)
}

fn erroneous(reply: Reply, is_error: bool) -> Reply {
    if is_error { reply.as_error() } else { reply }
}

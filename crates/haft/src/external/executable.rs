//! A program as a tool: started for each call, with its arguments as JSON on standard input
//! and as environment variables, or as words on its command line.

use crate::commands;
use crate::external::installer::Installer;
use crate::external::plugin::{Check, Programs, Recheck, clean, closed, worded as as_failure};
use crate::external::printed;
use crate::external::time::TimeLimit;
use crate::tool::{PreparedCall, prepared};
use crate::{AnyTool, Content, Context, Definition, Effect, Error, Reply, schema};
use haft_ops::exec::{self, Done, Exec, ExecContext};
use haft_ops::executor::{
    Ended, Exit, Input, Keep, MAX_MEMORY, Program, Prompts, Streams, clean_path,
};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time limit for printing its help.
const HELP: Duration = Duration::from_secs(2);

/// Maximum size of an argument that is also passed as a variable, in bytes.
const MAX_VARIABLE: usize = 100 << 10;

/// A program that is a tool.
#[derive(Clone)]
pub struct Executable {
    /// Definition for the model.
    pub definition: Definition,
    /// Path of the program.
    pub program: PathBuf,
    /// Form in which it gets its arguments.
    pub takes: Takes,
    /// The complete environment, without the arguments.
    pub environment: Vec<(OsString, OsString)>,
    /// Time limit of a call, within that of the session. `None` for the session's limit, or
    /// 120 seconds.
    pub timeout: Option<Duration>,
    /// Place where the limit can be set, for messages.
    pub timeout_set_in: String,
    /// Check before each call: the program must be the one that was trusted.
    pub check: Option<Check>,
    /// Origin of the program (user or project), which decides how it is sandboxed.
    pub installer: Installer,
    /// The files that it consists of and that describe it. The tool is not loaded if a rule
    /// keeps one of them out of prompts.
    pub files: Vec<PathBuf>,
}

/// Form in which a program gets its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// As JSON on standard input, and each as variable `HAFT_ARG_NAME`.
    Json,
    /// As words on its command line, from the single parameter `args`.
    Words,
}

impl Executable {
    /// Creates the tool.
    ///
    /// # Errors
    /// When its schema is invalid or too complex.
    pub fn tool(mut self) -> Result<Arc<dyn AnyTool>, Error> {
        closed(&mut self.definition.parameters);
        schema::check(&self.definition.name, &self.definition.parameters)?;
        Ok(Arc::new(self))
    }

    /// Returns the schema of a program without one: words for its command line.
    #[must_use]
    pub fn words() -> Value {
        serde_json::json!({
            "type": "object",
            "properties": {
                "args": { "type": "string", "description": "Command-line arguments, quoted as for a shell." },
            },
            "additionalProperties": false,
        })
    }

    /// Adds a description if it is missing: asks the program for its help once, in the
    /// sandbox of its calls and with a short time limit.
    pub(crate) async fn described(mut self, programs: Option<&Programs>, dir: &Path) -> Self {
        let run = programs.map(|programs| programs.around(self.installer, &self.apart()));
        if !self.definition.description.is_empty() {
            return self;
        }
        if let Some(programs) = programs {
            let avoid = programs.writable(self.installer);
            clean_path(&mut self.environment, &avoid);
        }
        if let (Some(run), Ok(recheck)) = (run, self.checked()) {
            let help = self.help(&run, dir).await;
            if recheck.is_none_or(|recheck| recheck().is_ok()) {
                self.definition.description = help;
            }
        }
        if self.definition.description.is_empty() {
            self.definition.description = format!("Command-line tool: {}", self.definition.name);
        }
        self
    }

    /// Returns the unique name that identifies its private folders.
    fn apart(&self) -> String {
        format!("tool {}", self.definition.name)
    }

    fn time(&self) -> TimeLimit {
        TimeLimit {
            by_user: None,
            own: self.timeout,
            set_in: self.timeout_set_in.clone(),
        }
    }

    /// Runs the check and returns how to repeat it.
    fn checked(&self) -> Result<Option<Recheck>, Error> {
        match &self.check {
            Some(check) => check().map(Some).map_err(Error::failed),
            None => Ok(None),
        }
    }

    /// Returns the first line of the program's help.
    async fn help(&self, run: &ExecContext, dir: &Path) -> String {
        let words = [self.program.clone().into_os_string(), "--help".into()];
        let request = Exec {
            program: Program::Direct(words.into()),
            dir: dir.to_owned(),
            streams: Streams::Merged,
            limit: Some(HELP),
            keep: Keep {
                head: 4096,
                tail: 0,
                disk: None,
            },
            prompts: Prompts::End,
            input: Input::Nothing,
        };
        let run = ExecContext {
            environment: self.environment.clone(),
            remote_folder: None,
            ..run.clone()
        };
        let done = exec::run(&run, request, &|_, _| (), &CancellationToken::new()).await;
        let said = done.map(|done| done.finished.output.head);
        let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
        let line = said.lines().map(str::trim).find(|line| !line.is_empty());
        clean(line.unwrap_or_default()).chars().take(200).collect()
    }

    fn request(
        &self,
        arguments: &Value,
        cx: &Context,
    ) -> Result<(Exec, Vec<(OsString, OsString)>), Error> {
        let mut words = vec![self.program.clone().into_os_string()];
        let mut environment = self.environment.clone();
        let mut input = Input::Nothing;
        match self.takes {
            Takes::Words => {
                let line = arguments
                    .get("args")
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                let split = shlex::split(line)
                    .ok_or_else(|| Error::invalid("parameter \"args\" has an unclosed quote"))?;
                words.extend(split.into_iter().map(OsString::from));
            }
            Takes::Json => {
                for (name, value) in arguments.as_object().into_iter().flatten() {
                    let text = match value {
                        Value::String(text) => text.clone(),
                        Value::Null => continue,
                        other => other.to_string(),
                    };
                    if text.contains('\0') {
                        return Err(Error::invalid(format!(
                            "parameter \"{name}\" contains a NUL character"
                        )));
                    }
                    // The system does not allow longer variables, and everything is on
                    // standard input.
                    if text.len() <= MAX_VARIABLE {
                        environment.push((variable(name), text.into()));
                    }
                }
                let mut line = arguments.to_string();
                line.push('\n');
                input = Input::Given(line.into_bytes().into());
            }
        }
        if words
            .iter()
            .any(|word| word.as_encoded_bytes().contains(&0))
        {
            return Err(Error::invalid(
                "parameter \"args\" contains a NUL character",
            ));
        }
        let request = Exec {
            program: Program::Direct(words),
            dir: cx.scope().work_dir().to_owned(),
            streams: Streams::Merged,
            limit: Some(cx.time_left(cx.limit().unwrap_or_else(|| self.time().without_session()))),
            keep: keep(cx),
            prompts: Prompts::End,
            input,
        };
        Ok((request, environment))
    }
}

/// Keeps as much output as the toolset shows, and all of it if possible, because it may be
/// an image.
fn keep(cx: &Context) -> Keep {
    let shown = cx.keep(&cx.program_limit());
    Keep {
        head: MAX_MEMORY.saturating_sub(shown.tail),
        ..shown
    }
}

/// Returns the variable of a parameter: `HAFT_ARG_MAX_DEPTH` for `max-depth`.
fn variable(name: &str) -> OsString {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_uppercase()
        } else {
            '_'
        }
    };
    format!("HAFT_ARG_{}", name.chars().map(plain).collect::<String>()).into()
}

impl AnyTool for Executable {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        Effect::Execute
    }

    fn prepare(self: Arc<Self>, arguments: Arc<Value>) -> Result<Box<dyn PreparedCall>, Error> {
        Ok(prepared(Vec::new(), move |cx| async move {
            self.call(&arguments, &cx).await
        }))
    }

    fn timeout(&self) -> Option<Duration> {
        Some(self.time().without_session())
    }

    fn limit(&self, session: Option<Duration>) -> Option<Duration> {
        Some(self.time().within(session))
    }

    fn installer(&self) -> Option<Installer> {
        Some(self.installer)
    }

    fn is_reviewable(&self) -> bool {
        true
    }
}

impl Executable {
    async fn call(&self, arguments: &Value, cx: &Context) -> Result<Reply, Error> {
        let (request, environment) = self.request(arguments, cx)?;
        let recheck = self.checked()?;
        let whose = (self.installer, self.apart());
        let done = cx.run_program(whose, request, environment).await?;
        // If another program ran in its place, its output is withheld.
        if let Some(Err(reason)) = recheck.map(|recheck| recheck()) {
            return Err(Error::failed(format!(
                "its output is withheld, but it has run: {reason}"
            )));
        }
        Ok(reply(&done, &self.time(), self.installer, cx))
    }
}

/// Note for an image that was printed in a form that cannot be shown.
const NOT_SHOWN: &str = "[a picture was printed but cannot be shown: the whole output must be one JSON value of at most 2 MB, with nothing on standard error; scale the picture down, or keep other output away]";

fn reply(done: &Done, time: &TimeLimit, installer: Installer, cx: &Context) -> Reply {
    let mut below = commands::notes_within(done, cx, cx.programs_request(installer));
    let end = end(done, time, cx);
    if let Some(printed) = printed::outcome(&done.finished.output) {
        below.extend(end.lines);
        let mut reply = as_failure(printed.into(), cx).limited(cx.program_limit());
        reply.is_error |= end.is_error;
        if !below.is_empty() {
            let text = below.join("\n");
            reply.content.push(Content::Text { text });
        }
        return commands::details(reply, done);
    }
    let most = cx.program_limit();
    let said = cx.shown_output(&done.finished.output, &most);
    let is_cut = said.note.is_some();
    // Even if the program continued after that and succeeded.
    let programs = cx.session.programs.as_ref();
    let programs = programs.filter(|_| commands::looks_refused(done).is_some());
    let advice = programs.and_then(|programs| programs.advice(installer, &said.text));
    below.extend(advice.map(|advice| format!("[{advice}]")));
    below.extend(said.note);
    below.extend(end.lines);
    let mut text = said.text;
    if let Some(rest) = printed::without_data(&done.finished.output, &text) {
        text = rest;
        below.insert(0, NOT_SHOWN.to_owned());
    }
    if text.is_empty() && below.is_empty() {
        text = "(no output)".to_owned();
    }
    if !below.is_empty() {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&below.join("\n"));
    }
    let mut reply = Reply::from(text).limited(most).already_cut();
    reply.is_error = end.is_error;
    if let Some(path) = said.path {
        reply = reply.detail("output_path", path);
    }
    commands::details(reply, done).detail("truncated", is_cut)
}

/// The end of a program, if it is worth mentioning.
struct End {
    lines: Vec<String>,
    is_error: bool,
}

fn end(done: &Done, time: &TimeLimit, cx: &Context) -> End {
    let limit = cx.limit().unwrap_or_else(|| time.without_session());
    let line = match (done.finished.ended, done.finished.status) {
        (Ended::TimedOut, _) => Some(worded(
            format!("timed out after {}", haft_ops::text::seconds(limit)),
            format!(
                "timed out after {}",
                haft_ops::text::short(commands::up_to_tenths(limit))
            ),
            cx,
        )),
        (Ended::Cancelled, _) => Some(worded("cancelled", "cancelled", cx)),
        (Ended::Waiting, _) => {
            let words = "stopped: it waits for input";
            Some(worded(words, words, cx))
        }
        (Ended::Itself, Exit::Code(0)) => None,
        (Ended::Itself, Exit::Code(code)) => Some(format!("exit code: {code}")),
        (Ended::Itself, Exit::Signal(signal)) => Some(format!("exit code: {}", 128 + signal)),
        (Ended::Itself, Exit::Unknown) => Some("exit code: unknown".to_owned()),
    };
    let is_error = line.is_some();
    let remedy = (done.finished.ended == Ended::TimedOut).then(|| time.remedy(limit));
    let remedy = remedy.map(|remedy| format!("[{remedy}]"));
    End {
        lines: remedy.into_iter().chain(line).collect(),
        is_error,
    }
}

/// Returns how the program ended, in the toolset's wording for commands if its failures are
/// plain lines.
fn worded(
    without_session: impl Into<String>,
    of_a_command: impl AsRef<str>,
    cx: &Context,
) -> String {
    match cx.failure_prefix() {
        "" => without_session.into(),
        start => format!("{start}command {}", of_a_command.as_ref()),
    }
}

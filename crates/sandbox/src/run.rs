//! Runs a script in the interpreter, and returns its output and how it ended.

use crate::builtins::{COMMANDS, Isolated, Tee, Yes, exceeds_seq_limit};
use crate::tree::Tree;
use bashkit::hooks::{HookAction, ToolEvent};
use bashkit::{
    Bash, BashBuilder, CPythonLimits, Error, ExecOptions, ExecutionLimits, LimitExceeded,
    MemoryLimits,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time after the limit that a run has to end on its own before it is abandoned.
const END_TIMEOUT: Duration = Duration::from_millis(60);

/// Maximum number of bytes kept of each output stream.
const MAX_STREAM: usize = 4 << 20;

/// Maximum number of bytes that a command passes to the next.
const MAX_PIPE: usize = 256 << 20;

/// Builtins that do not behave like the commands of the same name: this `zip` uses an
/// incompatible format, and this `bc` replaces large numbers by the largest one it
/// supports.
const DISABLED: [&str; 3] = ["bc", "unzip", "zip"];

/// Limits of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    /// Memory limit for Python in bytes.
    pub(crate) memory: usize,
}

/// End of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// It exited with this code.
    Exited(i32),
    /// It reached the time limit.
    TimedOut,
    /// It reached another limit, described here.
    LimitReached(String),
    /// It did not start, for this reason.
    NotStarted(String),
}

/// Result of a run.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) end: End,
    /// Whether the output is truncated.
    pub(crate) is_truncated: bool,
    /// Truncations by builtins that the script did not notice.
    pub(crate) truncations: Vec<String>,
}

#[derive(Default)]
struct Output {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    truncations: Vec<String>,
}

/// Runs a script. Dropping the future ends it.
pub(crate) async fn run(
    tree: Arc<Tree>,
    script: String,
    input: Vec<u8>,
    limits: Limits,
) -> RunResult {
    let output = Arc::new(Mutex::new(Output::default()));
    let mut bash = interpreter(&tree, limits, &output);
    let cancelled = bash.cancellation_token();
    let streamed = Arc::clone(&output);
    let options = ExecOptions::new()
        .stdin(input)
        .streaming(Box::new(move |stdout, stderr| {
            let mut output = lock(&streamed);
            append_limited(&mut output.stdout, stdout.as_bytes());
            append_limited(&mut output.stderr, stderr.as_bytes());
        }));
    // In a separate task, because a builtin that computes without yielding must not delay
    // the timeout.
    let mut task = Abort(tokio::spawn(async move {
        bash.exec_with_options(&script, options).await
    }));
    let outcome = tokio::time::timeout(limits.time + END_TIMEOUT, &mut task.0).await;
    cancelled.store(true, Ordering::SeqCst);
    let mut output = std::mem::take(&mut *lock(&output));
    let mut result = match outcome {
        Err(_) => partial_result(&mut output, End::TimedOut),
        Ok(Err(error)) => {
            let problem = format!("the interpreter failed: {error}");
            partial_result(&mut output, End::LimitReached(problem))
        }
        Ok(Ok(Err(error))) => {
            let end = end_of(&error);
            partial_result(&mut output, end)
        }
        Ok(Ok(Ok(done))) => RunResult {
            is_truncated: done.stdout_truncated || done.stderr_truncated,
            stdout: done.stdout.into_bytes(),
            stderr: done.stderr.into_bytes(),
            end: End::Exited(done.exit_code),
            truncations: output.truncations,
        },
    };
    if result.end == End::Exited(124) && ends_with(&result.stderr, "python3: execution timed out") {
        result.end = End::TimedOut;
    }
    for line in String::from_utf8_lossy(&result.stderr).lines() {
        if is_truncation_note(line) && !result.truncations.iter().any(|known| known == line) {
            result.truncations.push(line.to_owned());
        }
    }
    result
}

fn interpreter(tree: &Arc<Tree>, limits: Limits, output: &Arc<Mutex<Output>>) -> Bash {
    let noted = Arc::clone(output);
    // Scripts are limited by time and memory; the other limits are as high as the stack
    // allows.
    let execution = ExecutionLimits::new()
        .timeout(limits.time)
        .max_work_units(u64::MAX / 2)
        .max_aggregate_input_bytes(4 << 30)
        .max_live_intermediate_bytes(MAX_PIPE as u64)
        .max_commands(50_000_000)
        .max_loop_iterations(50_000_000)
        .max_total_loop_iterations(100_000_000)
        .max_stdout_bytes(MAX_STREAM)
        .max_stderr_bytes(MAX_STREAM);
    let python = CPythonLimits::default()
        .max_duration(limits.time)
        .max_memory(limits.memory)
        .max_output(MAX_STREAM);
    let between = execution
        .clone()
        .max_stdout_bytes(MAX_PIPE)
        .max_stderr_bytes(MAX_STREAM);
    let bash = Bash::builder()
        .fs(Arc::clone(tree) as Arc<dyn bashkit::FileSystem>)
        .rootfs(false)
        .cwd("/")
        .username("agent")
        .hostname("sandbox")
        .env("HOME", "/tmp")
        .env("TMPDIR", "/tmp")
        .env("LANG", "C.UTF-8")
        .limits(execution)
        .session_limits(bashkit::SessionLimits::unlimited())
        .memory_limits(MemoryLimits::new().max_total_variable_bytes(64 << 20))
        .builtin_filter(|name| !DISABLED.contains(&name))
        .cpython_with_limits(python)
        .command("yes", Yes)
        .builtin("tee", Box::new(Tee))
        // Before the command, because a hook after it would convert its output to text.
        .before_tool(Box::new(move |event: ToolEvent| {
            if event.name == "seq" && exceeds_seq_limit(&event.args) {
                let note = "seq: counts to 100000 at most; output truncated";
                lock(&noted).truncations.push(note.to_owned());
            }
            HookAction::Continue(event)
        }));
    let isolated = |bash: BashBuilder, name: &&'static str| {
        bash.builtin(*name, Box::new(Isolated::new(name, between.clone())))
    };
    COMMANDS.iter().fold(bash, isolated).build()
}

/// Aborts a task when dropped.
struct Abort<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Abort<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn partial_result(output: &mut Output, end: End) -> RunResult {
    RunResult {
        stdout: std::mem::take(&mut output.stdout),
        stderr: std::mem::take(&mut output.stderr),
        end,
        is_truncated: false,
        truncations: std::mem::take(&mut output.truncations),
    }
}

fn end_of(error: &Error) -> End {
    use bashkit::ExecutionBudgetExceeded as Budget;
    match error {
        Error::ResourceLimit(
            LimitExceeded::Timeout(_) | LimitExceeded::ExecutionBudget(Budget::Deadline { .. }),
        ) => End::TimedOut,
        Error::ResourceLimit(limit) => End::LimitReached(limit.to_string()),
        Error::Parse { .. } => End::NotStarted(error.to_string()),
        other => End::LimitReached(other.to_string()),
    }
}

/// Whether a builtin reports that it truncated its output.
fn is_truncation_note(line: &str) -> bool {
    line.contains("output truncated")
        || line.contains("output may be truncated")
        || line.contains("limit (") && line.contains("exceeded")
}

fn ends_with(stderr: &[u8], line: &str) -> bool {
    let stderr = String::from_utf8_lossy(stderr);
    let last = stderr.lines().last();
    last.is_some_and(|last| last.starts_with(line))
}

fn append_limited(stream: &mut Vec<u8>, more: &[u8]) {
    let room = MAX_STREAM.saturating_sub(stream.len());
    stream.extend(more.iter().take(room));
}

fn lock(output: &Mutex<Output>) -> std::sync::MutexGuard<'_, Output> {
    output.lock().unwrap_or_else(PoisonError::into_inner)
}

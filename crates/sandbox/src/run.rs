//! One run of the interpreter: a script in, what it said and how it ended out.

use crate::builtins::{Apart, COMMANDS, Tee, Yes, counts_too_far};
use crate::tree::Tree;
use bashkit::hooks::{HookAction, ToolEvent};
use bashkit::{
    Bash, BashBuilder, CPythonLimits, Error, ExecOptions, ExecutionLimits, LimitExceeded,
    MemoryLimits,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long after its limit a run may take to end by itself, before nobody waits for
/// it any more.
const GRACE: Duration = Duration::from_millis(60);

/// The most that is taken of each stream, in bytes.
const STREAM: usize = 4 << 20;

/// The most that one command hands to the next, in bytes.
const BETWEEN: usize = 256 << 20;

/// Commands that are called like others and do something else: this `zip` writes and
/// reads a format that nobody else knows, and this `bc` takes the largest number that it
/// has for every larger one.
const MISLEADING: [&str; 3] = ["bc", "unzip", "zip"];

/// What a run may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    /// Bytes of memory, for Python.
    pub(crate) memory: usize,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with this code.
    Itself(i32),
    /// By its time limit.
    TimedOut,
    /// By another bound, in words.
    Bound(String),
    /// It did not begin: in words.
    Refused(String),
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    pub(crate) ended: Ended,
    /// Whether there was more than is here.
    pub(crate) is_cut: bool,
    /// What a builtin left out without the script knowing.
    pub(crate) wrong: Vec<String>,
}

#[derive(Default)]
struct Heard {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    wrong: Vec<String>,
}

/// Runs a script. Whoever drops this ends it.
pub(crate) async fn run(tree: Arc<Tree>, script: String, input: Vec<u8>, limits: Limits) -> Ran {
    let heard = Arc::new(Mutex::new(Heard::default()));
    let mut bash = interpreter(&tree, limits, &heard);
    let cancelled = bash.cancellation_token();
    let listening = Arc::clone(&heard);
    let options = ExecOptions::new()
        .stdin(input)
        .streaming(Box::new(move |stdout, stderr| {
            let mut heard = lock(&listening);
            keep(&mut heard.stdout, stdout.as_bytes());
            keep(&mut heard.stderr, stderr.as_bytes());
        }));
    // In a task of its own: a builtin that computes without a pause must not keep
    // whoever waits for the time to be over.
    let mut task = Abort(tokio::spawn(async move {
        bash.exec_with_options(&script, options).await
    }));
    let outcome = tokio::time::timeout(limits.time + GRACE, &mut task.0).await;
    cancelled.store(true, Ordering::SeqCst);
    let mut heard = std::mem::take(&mut *lock(&heard));
    let mut ran = match outcome {
        Err(_) => so_far(&mut heard, Ended::TimedOut),
        Ok(Err(error)) => {
            let problem = format!("the interpreter failed: {error}");
            so_far(&mut heard, Ended::Bound(problem))
        }
        Ok(Ok(Err(error))) => {
            let ended = ended_by(&error);
            so_far(&mut heard, ended)
        }
        Ok(Ok(Ok(result))) => Ran {
            is_cut: result.stdout_truncated || result.stderr_truncated,
            stdout: result.stdout.into_bytes(),
            stderr: result.stderr.into_bytes(),
            ended: Ended::Itself(result.exit_code),
            wrong: heard.wrong,
        },
    };
    if ran.ended == Ended::Itself(124) && ends_with(&ran.stderr, "python3: execution timed out") {
        ran.ended = Ended::TimedOut;
    }
    for line in String::from_utf8_lossy(&ran.stderr).lines() {
        if is_a_cap(line) && !ran.wrong.iter().any(|known| known == line) {
            ran.wrong.push(line.to_owned());
        }
    }
    ran
}

fn interpreter(tree: &Arc<Tree>, limits: Limits, heard: &Arc<Mutex<Heard>>) -> Bash {
    let noticing = Arc::clone(heard);
    // What bounds a script is its time and the memory it may use; the other bounds are
    // as far away as the stack allows.
    let execution = ExecutionLimits::new()
        .timeout(limits.time)
        .max_work_units(u64::MAX / 2)
        .max_aggregate_input_bytes(4 << 30)
        .max_live_intermediate_bytes(BETWEEN as u64)
        .max_commands(50_000_000)
        .max_loop_iterations(50_000_000)
        .max_total_loop_iterations(100_000_000)
        .max_stdout_bytes(STREAM)
        .max_stderr_bytes(STREAM);
    let python = CPythonLimits::default()
        .max_duration(limits.time)
        .max_memory(limits.memory)
        .max_output(STREAM);
    let between = execution
        .clone()
        .max_stdout_bytes(BETWEEN)
        .max_stderr_bytes(STREAM);
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
        .builtin_filter(|name| !MISLEADING.contains(&name))
        .cpython_with_limits(python)
        .command("yes", Yes)
        .builtin("tee", Box::new(Tee))
        // Not after it: that would make text of what may be none.
        .before_tool(Box::new(move |event: ToolEvent| {
            if event.name == "seq" && counts_too_far(&event.args) {
                let note = "seq: it counts to 100000 at most; output truncated";
                lock(&noticing).wrong.push(note.to_owned());
            }
            HookAction::Continue(event)
        }));
    let apart = |bash: BashBuilder, name: &&'static str| {
        bash.builtin(*name, Box::new(Apart::new(name, between.clone())))
    };
    COMMANDS.iter().fold(bash, apart).build()
}

/// Ends a task that nobody waits for.
struct Abort<T>(tokio::task::JoinHandle<T>);

impl<T> Drop for Abort<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn so_far(heard: &mut Heard, ended: Ended) -> Ran {
    Ran {
        stdout: std::mem::take(&mut heard.stdout),
        stderr: std::mem::take(&mut heard.stderr),
        ended,
        is_cut: false,
        wrong: std::mem::take(&mut heard.wrong),
    }
}

fn ended_by(error: &Error) -> Ended {
    use bashkit::ExecutionBudgetExceeded as Budget;
    match error {
        Error::ResourceLimit(
            LimitExceeded::Timeout(_) | LimitExceeded::ExecutionBudget(Budget::Deadline { .. }),
        ) => Ended::TimedOut,
        Error::ResourceLimit(limit) => Ended::Bound(limit.to_string()),
        Error::Parse { .. } => Ended::Refused(error.to_string()),
        other => Ended::Bound(other.to_string()),
    }
}

/// Whether a builtin says that it left something out.
fn is_a_cap(line: &str) -> bool {
    line.contains("output truncated")
        || line.contains("output may be truncated")
        || line.contains("limit (") && line.contains("exceeded")
}

fn ends_with(stderr: &[u8], line: &str) -> bool {
    let stderr = String::from_utf8_lossy(stderr);
    let last = stderr.lines().last();
    last.is_some_and(|last| last.starts_with(line))
}

fn keep(stream: &mut Vec<u8>, more: &[u8]) {
    let room = STREAM.saturating_sub(stream.len());
    stream.extend(more.iter().take(room));
}

fn lock(heard: &Mutex<Heard>) -> std::sync::MutexGuard<'_, Heard> {
    heard.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Commands that run in a separate interpreter. A file error in one of these aborts its
//! interpreter, which must not be the one that runs the script.

use crate::tree::describe;
use async_trait::async_trait;
use bashkit::{
    Bash, Builtin, BuiltinContext, Error, ExecOptions, ExecResult, ExecutionLimits, FileSystem,
    InMemoryFs, MountableFs, Result, SessionLimits,
};
use std::path::Path;
use std::sync::Arc;

/// Builtins that do not handle file errors themselves. They are programs on other systems,
/// so they only need the shell's environment and working directory.
pub(crate) const COMMANDS: [&str; 13] = [
    "bunzip2", "bzcat", "bzip2", "du", "file", "gunzip", "gzip", "join", "less", "patch", "rmdir",
    "split", "tar",
];

/// One of [`COMMANDS`].
pub(crate) struct Isolated {
    name: &'static str,
    limits: ExecutionLimits,
}

impl Isolated {
    pub(crate) fn new(name: &'static str, limits: ExecutionLimits) -> Self {
        Self { name, limits }
    }
}

#[async_trait]
impl Builtin for Isolated {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> Result<ExecResult> {
        let (fs, pipes) = Pipes::copy_in(&ctx).await?;
        let mut shell = Bash::builder()
            .fs(fs)
            .rootfs(false)
            .cwd(&*ctx.cwd)
            .limits(self.limits.clone())
            .session_limits(SessionLimits::unlimited());
        for (name, value) in ctx.env {
            shell = shell.env(name, value);
        }
        let mut options = ExecOptions::new().positional(ctx.args.iter().map(|arg| inner(arg)));
        if let Some(input) = ctx.stdin {
            options = options.stdin(input.clone());
        }
        let script = format!("{} \"$@\"", self.name);
        let mut shell = shell.build();
        let result = Box::pin(shell.exec_with_options(&script, options)).await;
        pipes.copy_out(&ctx).await?;
        match result {
            Ok(result) => Ok(ExecResult {
                stdout: result.stdout,
                stderr: result.stderr,
                exit_code: result.exit_code,
                stdout_truncated: result.stdout_truncated,
                stderr_truncated: result.stderr_truncated,
                ..ExecResult::default()
            }),
            Err(Error::Io(error)) => {
                let problem = format!("{}: {}\n", self.name, describe(&error));
                Ok(ExecResult::err(problem, code(self.name)))
            }
            Err(other) => Err(other),
        }
    }
}

/// Returns the exit code of a command that failed.
fn code(name: &str) -> i32 {
    match name {
        "patch" | "tar" => 2,
        _ => 1,
    }
}

/// Folders of the pipes of `<(…)` and `>(…)`: the script's, and the copies for an isolated
/// command, whose interpreter hides the former behind its own.
const OUTER: &str = "/dev/fd/";
const INNER: &str = "/dev/haft/fd/";

/// Translates an argument for an isolated command.
fn inner(arg: &str) -> String {
    match arg.strip_prefix(OUTER) {
        Some(number) => format!("{INNER}{number}"),
        None => arg.to_owned(),
    }
}

/// The pipes among the arguments of a command, with their content.
struct Pipes {
    copies: Arc<InMemoryFs>,
    contents: Vec<(String, Vec<u8>)>,
}

impl Pipes {
    /// Copies the pipes to where an isolated command sees them.
    async fn copy_in(ctx: &BuiltinContext<'_>) -> Result<(Arc<dyn FileSystem>, Self)> {
        let mut pipes = Self {
            copies: Arc::new(InMemoryFs::new()),
            contents: Vec::new(),
        };
        for number in ctx.args.iter().filter_map(|arg| arg.strip_prefix(OUTER)) {
            let path = format!("{OUTER}{number}");
            if let Ok(bytes) = ctx.fs.read_file(Path::new(&path)).await {
                pipes.copies.add_file(format!("/{number}"), &bytes, 0o644);
                pipes.contents.push((number.to_owned(), bytes));
            }
        }
        if pipes.contents.is_empty() {
            return Ok((Arc::clone(&ctx.fs), pipes));
        }
        let mounts = MountableFs::new(Arc::clone(&ctx.fs));
        mounts.mount(INNER, Arc::clone(&pipes.copies) as Arc<dyn FileSystem>)?;
        Ok((Arc::new(mounts), pipes))
    }

    /// Copies the output of the command back to the pipes of the script.
    async fn copy_out(self, ctx: &BuiltinContext<'_>) -> Result<()> {
        for (number, before) in self.contents {
            let copy = format!("/{number}");
            let after = self.copies.read_file(Path::new(&copy)).await?;
            if after != before {
                let path = format!("{OUTER}{number}");
                ctx.fs.write_file(Path::new(&path), &after).await?;
            }
        }
        Ok(())
    }
}

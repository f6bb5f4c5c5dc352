//! The three tools that a model sees.

use crate::host::{Host, LocalHost};
use crate::sandbox::Sandbox;
use haft::guest::Guest;
use haft::prelude::*;
use haft::{AnyTool, erase};
use std::sync::Arc;
use std::time::Duration;

/// Longer than any run: haft-sandbox has its own time limit.
const NO_TIMEOUT: Duration = Duration::from_secs(3600);

/// Execute Python code (CPython 3.14 in WebAssembly) with no access to the machine and no
/// network, and return its stdout, stderr, exit code and the value of its last expression.
/// Each call starts a new interpreter. Files are those of the workspace: use absolute
/// paths; written files are available to the other tools after the call. Most of the
/// standard library is available; unittest, ssl, native packages (numpy, pandas), threads
/// and subprocesses are not. A picture saved in /tmp/images is shown in the reply.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct PythonArgs {
    /// Python code to execute.
    pub(crate) code: String,
}

/// Execute a Bash script with built-in commands (coreutils, grep, sed, awk, jq, find, tar,
/// python3 and more, but none of the machine's programs, and no network) and return its
/// stdout, stderr and exit code. Files are those of the workspace: use absolute paths;
/// written files are available to the other tools after the call.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct BashArgs {
    /// Bash script to execute.
    pub(crate) command: String,
}

/// Install Python packages and their dependencies for execute_python. Only pure Python
/// packages can be installed; packages with native code (numpy, pandas) cannot.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct InstallArgs {
    /// Names of packages, with versions if they matter: `six`, `rich>=13`.
    pub(crate) packages: Vec<String>,
}

pub(crate) struct ExecutePython(pub(crate) Arc<Sandbox>, pub(crate) Guest);
pub(crate) struct ExecuteBash(pub(crate) Arc<Sandbox>, pub(crate) Guest);
pub(crate) struct InstallPackages(pub(crate) Arc<Sandbox>, pub(crate) Guest);

fn host(cx: &Context, guest: &Guest) -> Arc<dyn Host> {
    Arc::new(LocalHost {
        cx: cx.clone(),
        guest: guest.clone(),
    })
}

impl Tool for ExecutePython {
    const NAME: &'static str = "execute_python";
    const EFFECT: Effect = Effect::Execute;
    type Args = PythonArgs;

    fn timeout(&self) -> Option<Duration> {
        Some(NO_TIMEOUT)
    }

    async fn call(&self, args: PythonArgs, cx: &Context) -> Result<Reply, Error> {
        Ok(self.0.python(host(cx, &self.1), args.code).await)
    }
}

impl Tool for ExecuteBash {
    const NAME: &'static str = "execute_bash";
    const EFFECT: Effect = Effect::Execute;
    type Args = BashArgs;

    fn timeout(&self) -> Option<Duration> {
        Some(NO_TIMEOUT)
    }

    async fn call(&self, args: BashArgs, cx: &Context) -> Result<Reply, Error> {
        Ok(self.0.bash(host(cx, &self.1), args.command).await)
    }
}

impl Tool for InstallPackages {
    const NAME: &'static str = "install_packages";
    const EFFECT: Effect = Effect::Network;
    type Args = InstallArgs;

    fn timeout(&self) -> Option<Duration> {
        Some(NO_TIMEOUT)
    }

    async fn call(&self, args: InstallArgs, cx: &Context) -> Result<Reply, Error> {
        Ok(self.0.install(host(cx, &self.1), args.packages).await)
    }
}

/// Returns all three tools.
pub(crate) fn all(sandbox: &Arc<Sandbox>, guest: &Guest) -> Vec<Arc<dyn AnyTool>> {
    let (sandbox, guest) = (|| Arc::clone(sandbox), || guest.clone());
    vec![
        erase(ExecutePython(sandbox(), guest())),
        erase(ExecuteBash(sandbox(), guest())),
        erase(InstallPackages(sandbox(), guest())),
    ]
}

//! The state that the tools share.

use crate::host::Host;
use crate::packages;
use crate::reply;
use crate::run::{Limits, RunResult};
use crate::tree::Tree;
use bashkit::{FileSystem, FsLimits, InMemoryFs};
use haft::Reply;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Maximum number of concurrent runs; others wait.
const MAX_RUNS: usize = 8;

/// Maximum number of bytes of temporary files and packages.
const MAX_OWN_BYTES: u64 = 128 << 20;

/// Python code that runs the code of `execute_python`.
const DRIVER: &str = include_str!("driver.py");

/// Limits, packages and temporary files of haft-sandbox. There is one for a session.
pub(crate) struct Sandbox {
    limits: Limits,
    /// Address of the package index.
    index: String,
    own: Arc<dyn FileSystem>,
    slots: Semaphore,
}

impl Sandbox {
    pub(crate) fn new(limits: Limits, index: String) -> Self {
        let own = InMemoryFs::with_limits(
            FsLimits::new()
                .max_total_bytes(MAX_OWN_BYTES)
                .max_file_size(32 << 20)
                .max_file_count(20_000),
        );
        Self {
            limits,
            index,
            own: Arc::new(own),
            slots: Semaphore::new(MAX_RUNS),
        }
    }

    /// Runs Python code.
    pub(crate) async fn python(&self, host: Arc<dyn Host>, code: String) -> Reply {
        let tree = Arc::new(Tree::new(Arc::clone(&host), Arc::clone(&self.own)));
        tree.hand("/dev/haft/driver.py", DRIVER.as_bytes());
        let script = "python3 /dev/haft/driver.py".to_owned();
        let run = self.run(&tree, script, code.into_bytes()).await;
        let result = tree.handed("/dev/haft/result").await;
        let result = result.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        self.build_reply(&tree, &host, run, result).await
    }

    /// Runs a Bash script.
    pub(crate) async fn bash(&self, host: Arc<dyn Host>, command: String) -> Reply {
        let tree = Arc::new(Tree::new(Arc::clone(&host), Arc::clone(&self.own)));
        let run = self.run(&tree, command, Vec::new()).await;
        self.build_reply(&tree, &host, run, None).await
    }

    async fn run(&self, tree: &Arc<Tree>, script: String, input: Vec<u8>) -> RunResult {
        let _slot = self.slots.acquire().await;
        // The folder for images must exist before code writes to it.
        let images = Path::new(crate::tree::IMAGES);
        let _ = self.own.mkdir(images, true).await;
        crate::run::run(Arc::clone(tree), script, input, self.limits).await
    }

    async fn build_reply(
        &self,
        tree: &Tree,
        host: &Arc<dyn Host>,
        run: RunResult,
        result: Option<String>,
    ) -> Reply {
        let saved = tree.save().await;
        let images = tree.images().await;
        let parts = reply::ReplyParts {
            run,
            result,
            saved,
            images,
            limits: self.limits,
        };
        parts.reply(&**host).await
    }

    /// Installs packages where Python finds them.
    pub(crate) async fn install(&self, host: Arc<dyn Host>, requested: Vec<String>) -> Reply {
        match packages::install(&*host, &self.index, &self.own, requested).await {
            Ok(installed) => reply::installed(&installed),
            Err(problem) => reply::failure(&problem.message, problem.hint.as_deref()),
        }
    }
}

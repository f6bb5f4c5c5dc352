//! The sandbox: what its tools share.

use crate::host::Host;
use crate::packages;
use crate::reply;
use crate::run::{self, Limits, Ran};
use crate::tree::Tree;
use bashkit::{FileSystem, FsLimits, InMemoryFs};
use haft::Reply;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// How many runs there are at a time; others wait.
const AT_ONCE: usize = 8;

/// How much the sandbox keeps of its own: temporary files and packages.
const OWN: u64 = 128 << 20;

/// What runs the code of `execute_python`.
const DRIVER: &str = include_str!("driver.py");

/// The sandbox. One for a session, for as long as that lasts.
pub(crate) struct Sandbox {
    limits: Limits,
    /// Where the package index is.
    index: String,
    own: Arc<dyn FileSystem>,
    places: Semaphore,
}

impl Sandbox {
    pub(crate) fn new(limits: Limits, index: String) -> Self {
        let own = InMemoryFs::with_limits(
            FsLimits::new()
                .max_total_bytes(OWN)
                .max_file_size(32 << 20)
                .max_file_count(20_000),
        );
        Self {
            limits,
            index,
            own: Arc::new(own),
            places: Semaphore::new(AT_ONCE),
        }
    }

    /// Runs Python.
    pub(crate) async fn python(&self, host: Arc<dyn Host>, code: String) -> Reply {
        let tree = Arc::new(Tree::new(Arc::clone(&host), Arc::clone(&self.own)));
        tree.hand("/dev/haft/driver.py", DRIVER.as_bytes());
        let script = "python3 /dev/haft/driver.py".to_owned();
        let ran = self.ran(&tree, script, code.into_bytes()).await;
        let result = tree.handed("/dev/haft/result").await;
        let result = result.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        self.replied(&tree, &host, ran, result).await
    }

    /// Runs a script of Bash.
    pub(crate) async fn bash(&self, host: Arc<dyn Host>, command: String) -> Reply {
        let tree = Arc::new(Tree::new(Arc::clone(&host), Arc::clone(&self.own)));
        let ran = self.ran(&tree, command, Vec::new()).await;
        self.replied(&tree, &host, ran, None).await
    }

    async fn ran(&self, tree: &Arc<Tree>, script: String, input: Vec<u8>) -> Ran {
        let _place = self.places.acquire().await;
        // Where pictures go is there before anybody puts one.
        let images = Path::new(crate::tree::IMAGES);
        let _ = self.own.mkdir(images, true).await;
        run::run(Arc::clone(tree), script, input, self.limits).await
    }

    async fn replied(
        &self,
        tree: &Tree,
        host: &Arc<dyn Host>,
        ran: Ran,
        result: Option<String>,
    ) -> Reply {
        let settled = tree.settle().await;
        let images = tree.images().await;
        let said = reply::Said {
            ran,
            result,
            settled,
            images,
            limits: self.limits,
        };
        said.reply(&**host).await
    }

    /// Puts packages where Python finds them.
    pub(crate) async fn install(&self, host: Arc<dyn Host>, wanted: Vec<String>) -> Reply {
        match packages::install(&*host, &self.index, &self.own, wanted).await {
            Ok(installed) => reply::installed(&installed),
            Err(problem) => reply::failure(&problem.message, problem.hint.as_deref()),
        }
    }
}

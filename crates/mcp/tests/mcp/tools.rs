//! Tools that a test can control and observe.

use haft::{Builder, Context, Effect, Error, FromSchema, Reply, Runtime};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tokio::sync::{Notify, Semaphore};

/// One grey pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDATx\xdac\x68\0\0\0\x82\0\x81\xda\x45\x08\x3b\0\0\0\0IEND\xaeB`\x82";

/// A runtime with the standard tools and the test tools.
pub(crate) struct Bench {
    pub(crate) runtime: Runtime,
    pub(crate) dir: TempDir,
    /// Number of running calls of `wait`.
    pub(crate) waiting: Arc<AtomicUsize>,
    /// Notified when `waiting` changes.
    pub(crate) changed: Arc<Notify>,
    /// Each permit lets one call of `wait` end.
    pub(crate) release: Arc<Semaphore>,
}

/// Counts a call for as long as its future lives.
struct Counted {
    waiting: Arc<AtomicUsize>,
    changed: Arc<Notify>,
}

impl Counted {
    fn new(waiting: &Arc<AtomicUsize>, changed: &Arc<Notify>) -> Self {
        waiting.fetch_add(1, Ordering::SeqCst);
        changed.notify_one();
        Self {
            waiting: Arc::clone(waiting),
            changed: Arc::clone(changed),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
        self.changed.notify_one();
    }
}

fn tool<F, R>(name: &str, effect: Effect, answer: F) -> Arc<FromSchema>
where
    F: Fn(Value, Context) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Reply, Error>> + Send + 'static,
{
    let parameters = json!({
        "type": "object",
        "properties": { "text": { "type": "string", "description": "A text." } },
    });
    let tool = FromSchema::new(name, "A tool of the tests.", parameters, effect, answer)
        .expect("a good schema");
    Arc::new(tool.with_timeout(None))
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    /// Creates a runtime with a changed configuration.
    pub(crate) fn with(change: impl FnOnce(Builder) -> Builder) -> Self {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let waiting = Arc::new(AtomicUsize::new(0));
        let changed = Arc::new(Notify::new());
        let release = Arc::new(Semaphore::new(0));
        let (count, news, permits) = (waiting.clone(), changed.clone(), release.clone());
        let wait = tool("wait", Effect::Pure, move |_, cx| {
            let counted = Counted::new(&count, &news);
            let permits = permits.clone();
            async move {
                let _counted = counted;
                cx.update("waiting");
                permits
                    .acquire()
                    .await
                    .map_err(|error| Error::failed(error.to_string()))?
                    .forget();
                Ok(Reply::from("released"))
            }
        });
        let (count, news) = (waiting.clone(), changed.clone());
        let deaf = tool("deaf", Effect::Pure, move |_, _| {
            let counted = Counted::new(&count, &news);
            async move {
                let _counted = counted;
                std::future::pending().await
            }
        });
        let echo = tool("echo", Effect::Pure, |arguments, _| async move {
            Ok(Reply::from(
                arguments["text"].as_str().unwrap_or("nothing").to_owned(),
            ))
        });
        let picture = tool("picture", Effect::Read, |_, _| async move {
            Ok(Reply::from("look:").and_image(PNG, "image/jpeg"))
        });
        let updates = tool("updates", Effect::Pure, |_, cx| async move {
            cx.update("one");
            cx.update("two");
            cx.update("three");
            Ok(Reply::from("done"))
        });
        let confirms = tool("confirms", Effect::Pure, |_, cx| async move {
            let said = cx.confirm("Really?\nasked because: \u{1b}[2J").await?;
            Ok(Reply::from(if said { "yes" } else { "no" }))
        });
        let remembers = tool("remembers", Effect::Pure, |arguments, cx| async move {
            let before = cx.state().set("text", arguments["text"].clone());
            Ok(Reply::from(before.unwrap_or_default().to_string()))
        });
        let builder = Runtime::builder()
            .dir(dir.path())
            .toolset("standard")
            .any_tool(wait)
            .any_tool(deaf)
            .any_tool(echo)
            .any_tool(picture)
            .any_tool(updates)
            .any_tool(confirms)
            .any_tool(remembers);
        let runtime = change(builder).build().expect("a runtime");
        Self {
            runtime,
            dir,
            waiting,
            changed,
            release,
        }
    }

    /// Waits until this many calls of `wait` and `deaf` are running.
    pub(crate) async fn until_waiting(&self, calls: usize) {
        crate::client::within("calls to begin or end", async {
            while self.waiting.load(Ordering::SeqCst) != calls {
                self.changed.notified().await;
            }
        })
        .await;
    }
}

/// A tool that is added later.
pub(crate) fn late() -> Arc<FromSchema> {
    tool("late", Effect::Pure, |_, _| async {
        Ok(Reply::from("late"))
    })
}

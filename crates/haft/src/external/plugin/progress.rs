//! Messages from a plugin during a call: partial results, and requests to call other tools.
//! If there are too many partial results, only the newest are shown; if there are too many
//! requests, the plugin has to wait.

use crate::Content;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

/// Maximum number of queued updates and their total size in bytes. Beyond that, the oldest
/// are dropped.
const MAX_UPDATES: usize = 32;
const MAX_UPDATE_BYTES: usize = 256 << 10;

/// Maximum text of one update that is shown, in bytes; the end of it is kept.
const MAX_TEXT: usize = 16 << 10;

/// Maximum size of the images in one update, in bytes.
const MAX_IMAGES: usize = 128 << 10;

/// Interval between updates after a burst.
const PACE: Duration = Duration::from_millis(50);
const AT_ONCE: u32 = 20;

/// Maximum number of queued requests and their total size in bytes. A single request may be
/// larger.
const MAX_REQUESTS: usize = 64;
const MAX_REQUEST_BYTES: usize = 1 << 20;

/// Sending half, for the reader of the plugin's output.
#[derive(Debug, Clone)]
pub(super) struct ProgressSender {
    updates: Arc<Updates>,
    requests: mpsc::Sender<ToolRequest>,
    room: Arc<Semaphore>,
}

/// Receiving half, for the call.
#[derive(Debug)]
pub(super) struct ProgressReceiver {
    updates: Arc<Updates>,
    requests: mpsc::Receiver<ToolRequest>,
    /// When the next update may be shown, minus the burst of one second.
    due: Instant,
}

/// A message during a call.
#[derive(Debug)]
pub(super) enum Progress {
    /// Partial results.
    Update(Vec<Content>),
    /// A request to call another tool.
    ToolRequest(ToolRequest),
}

/// A request to call another tool.
#[derive(Debug)]
pub(super) struct ToolRequest {
    pub(super) id: Value,
    pub(super) name: String,
    pub(super) params: Value,
    /// Its share of the queue; released when it is dropped.
    room: Option<OwnedSemaphorePermit>,
}

#[derive(Debug, Default)]
struct Updates {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    contents: VecDeque<Vec<Content>>,
    bytes: usize,
}

/// Creates both halves.
pub(super) fn channel() -> (ProgressSender, ProgressReceiver) {
    let updates = Arc::new(Updates::default());
    let (request, requests) = mpsc::channel(MAX_REQUESTS);
    let progress = ProgressSender {
        updates: Arc::clone(&updates),
        requests: request,
        room: Arc::new(Semaphore::new(MAX_REQUEST_BYTES)),
    };
    let progress_receiver = ProgressReceiver {
        updates,
        requests,
        due: Instant::now(),
    };
    (progress, progress_receiver)
}

impl ProgressSender {
    /// Queues an update without waiting. The oldest updates are dropped if there are too
    /// many.
    pub(super) fn update(&self, content: Vec<Content>) {
        let content = shortened(content);
        let mut waiting = self.updates.lock();
        waiting.bytes += size(&content);
        waiting.contents.push_back(content);
        while waiting.contents.len() > MAX_UPDATES || waiting.bytes > MAX_UPDATE_BYTES {
            let Some(oldest) = waiting.contents.pop_front() else {
                break;
            };
            waiting.bytes -= size(&oldest);
        }
        drop(waiting);
        self.updates.changed.notify_one();
    }

    /// Queues a request. Waits until there is room, or until the call has ended.
    pub(super) async fn request(&self, mut request: ToolRequest) {
        let permits = weight(&request.params).clamp(1, MAX_REQUEST_BYTES);
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(permits);
        tokio::select! {
            biased;
            () = self.requests.closed() => {}
            room = room => {
                request.room = room.ok();
                let _ = self.requests.send(request).await;
            }
        }
    }
}

impl ProgressReceiver {
    /// Returns the next message: a request, or an update once it may be shown. Cancel-safe.
    pub(super) async fn next(&mut self) -> Progress {
        let updates = Arc::clone(&self.updates);
        let slack = PACE * AT_ONCE;
        let shown = async {
            if let Some(earliest) = self.due.checked_sub(slack) {
                tokio::time::sleep_until(earliest).await;
            }
            updates.next().await
        };
        tokio::select! {
            biased;
            Some(request) = self.requests.recv() => Progress::ToolRequest(request),
            content = shown => {
                self.due = self.due.max(Instant::now()) + PACE;
                Progress::Update(content)
            }
        }
    }

    /// Returns the remaining updates when the call has ended.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = Vec<Content>> {
        std::mem::take(&mut *self.updates.lock())
            .contents
            .into_iter()
    }
}

impl ToolRequest {
    pub(super) fn new(id: Value, name: String, params: Value) -> Self {
        Self {
            id,
            name,
            params,
            room: None,
        }
    }
}

impl Updates {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next(&self) -> Vec<Content> {
        loop {
            if let Some(content) = self.lock().take() {
                return content;
            }
            self.changed.notified().await;
        }
    }
}

impl Waiting {
    fn take(&mut self) -> Option<Vec<Content>> {
        let content = self.contents.pop_front()?;
        self.bytes -= size(&content);
        Some(content)
    }
}

/// Shortens an update to its end.
fn shortened(content: Vec<Content>) -> Vec<Content> {
    let (mut text_room, mut picture_room) = (MAX_TEXT, MAX_IMAGES);
    let mut kept: Vec<Content> = Vec::new();
    for block in content.into_iter().rev() {
        match block {
            Content::Text { text } if text.len() <= text_room => {
                text_room -= text.len();
                kept.push(Content::Text { text });
            }
            Content::Text { text } => {
                let skipped = text.ceil_char_boundary(text.len() - text_room);
                let end = text.get(skipped..).unwrap_or_default();
                kept.push(Content::Text {
                    text: format!("[{skipped} bytes not shown]\n{end}"),
                });
                break;
            }
            other => {
                let size = size(std::slice::from_ref(&other));
                if size <= picture_room {
                    picture_room -= size;
                    kept.push(other);
                }
            }
        }
        if kept.len() >= MAX_UPDATES {
            break;
        }
    }
    kept.reverse();
    kept
}

/// Returns the size of blocks in bytes.
fn size(content: &[Content]) -> usize {
    let each = content.iter().map(|block| match block {
        Content::Text { text } => text.len(),
        Content::Image { data, .. } => data.len(),
        // Plugins send no other blocks.
        _ => 0,
    });
    each.sum::<usize>() + size_of_val(content)
}

/// Returns the approximate size of a value in bytes.
fn weight(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(fields) => {
                let each = fields.iter();
                each.map(|(name, value)| 100 + name.len() + weight(value))
                    .sum()
            }
            _ => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<Content> {
        vec![Content::Text { text: text.into() }]
    }

    #[tokio::test]
    async fn few_updates_are_all_shown_and_only_the_newest_of_many() {
        let (progress, mut progress_receiver) = channel();
        for n in 0..5 {
            progress.update(text(&n.to_string()));
        }
        for n in 0..5 {
            let Progress::Update(content) = progress_receiver.next().await else {
                panic!("a question")
            };
            assert_eq!(content, text(&n.to_string()));
        }
        for n in 0..1_000 {
            progress.update(text(&n.to_string()));
        }
        assert_eq!(progress_receiver.rest().last(), Some(text("999")));
        let begun = Instant::now();
        for _ in 0..30 {
            progress.update(text("x"));
            assert!(matches!(
                progress_receiver.next().await,
                Progress::Update(_)
            ));
        }
        assert!(begun.elapsed() > PACE * 5, "{:?}", begun.elapsed());
    }

    #[test]
    fn a_long_update_is_shortened_to_its_end() {
        let long = format!("{}é{}", "a".repeat(50_000), "b".repeat(MAX_TEXT - 1));
        let shown = shortened(text(&long));
        let expected = format!("[50002 bytes not shown]\n{}", "b".repeat(MAX_TEXT - 1));
        assert_eq!(shown, text(&expected));
        let (progress, mut progress_receiver) = channel();
        for _ in 0..100 {
            progress.update(text(&long));
        }
        let kept: usize = progress_receiver.rest().map(|content| size(&content)).sum();
        assert!(kept <= MAX_UPDATE_BYTES, "{kept}");
    }

    #[tokio::test]
    async fn a_request_waits_for_room_unless_the_call_has_ended() {
        let (progress, mut progress_receiver) = channel();
        let large = || ToolRequest::new(1.into(), "a".into(), "x".repeat(MAX_REQUEST_BYTES).into());
        progress.request(large()).await;
        let second = tokio::spawn({
            let progress = progress.clone();
            async move { progress.request(large()).await }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        assert!(matches!(
            progress_receiver.next().await,
            Progress::ToolRequest(_)
        ));
        second.await.unwrap();
        let third = tokio::spawn(async move { progress.request(large()).await });
        tokio::task::yield_now().await;
        drop(progress_receiver);
        third.await.unwrap();
    }
}

//! What a call hears of before its answer. A plugin may tell more than anybody shows,
//! or ask for more than is done for it: then the newest is shown, and it has to wait.

use crate::Content;
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::Instant;

/// How many updates wait to be shown, and how much is in them: of more, the oldest go.
const MOST_UPDATES: usize = 32;
const MOST_WAITING: usize = 256 << 10;

/// How much text of one update is shown: its end.
const MOST_TEXT: usize = 16 << 10;

/// How much of the pictures in it.
const MOST_PICTURES: usize = 128 << 10;

/// How often one is shown, once there were many in a second.
const PACE: Duration = Duration::from_millis(50);
const AT_ONCE: u32 = 20;

/// How many questions wait to be answered, and how large they are together. One alone
/// may be larger.
const MOST_ASKED: usize = 64;
const MOST_ASKING: usize = 1 << 20;

/// Where the reader puts what comes before an answer.
#[derive(Debug, Clone)]
pub(super) struct Teller {
    updates: Arc<Updates>,
    asked: mpsc::Sender<Ask>,
    room: Arc<Semaphore>,
}

/// Where the call finds it.
#[derive(Debug)]
pub(super) struct Told {
    updates: Arc<Updates>,
    asked: mpsc::Receiver<Ask>,
    /// When the next update may be shown, and a second earlier.
    due: Instant,
}

/// What was told, or asked.
#[derive(Debug)]
pub(super) enum Meanwhile {
    /// How far it is.
    Update(Vec<Content>),
    /// It wants another tool to be called for it.
    Ask(Ask),
}

/// It wants another tool to be called for it.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) id: Value,
    pub(super) name: String,
    pub(super) params: Value,
    /// The room that it takes.
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

/// The two ends of it.
pub(super) fn channel() -> (Teller, Told) {
    let updates = Arc::new(Updates::default());
    let (ask, asked) = mpsc::channel(MOST_ASKED);
    let teller = Teller {
        updates: Arc::clone(&updates),
        asked: ask,
        room: Arc::new(Semaphore::new(MOST_ASKING)),
    };
    let told = Told {
        updates,
        asked,
        due: Instant::now(),
    };
    (teller, told)
}

impl Teller {
    /// Never waits: of many updates the newest are shown.
    pub(super) fn update(&self, content: Vec<Content>) {
        let content = shortened(content);
        let mut waiting = self.updates.lock();
        waiting.bytes += size(&content);
        waiting.contents.push_back(content);
        while waiting.contents.len() > MOST_UPDATES || waiting.bytes > MOST_WAITING {
            let Some(oldest) = waiting.contents.pop_front() else {
                break;
            };
            waiting.bytes -= size(&oldest);
        }
        drop(waiting);
        self.updates.changed.notify_one();
    }

    /// Waits until there is room, or nobody is there to answer.
    pub(super) async fn ask(&self, mut ask: Ask) {
        let wanted = weight(&ask.params).clamp(1, MOST_ASKING);
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(wanted);
        tokio::select! {
            biased;
            () = self.asked.closed() => {}
            room = room => {
                ask.room = room.ok();
                let _ = self.asked.send(ask).await;
            }
        }
    }
}

impl Told {
    /// What comes next: a question, or an update as soon as one may be shown. Whoever
    /// stops waiting loses nothing.
    pub(super) async fn next(&mut self) -> Meanwhile {
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
            Some(ask) = self.asked.recv() => Meanwhile::Ask(ask),
            content = shown => {
                self.due = self.due.max(Instant::now()) + PACE;
                Meanwhile::Update(content)
            }
        }
    }

    /// What was told last, when nothing more comes.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = Vec<Content>> {
        std::mem::take(&mut *self.updates.lock())
            .contents
            .into_iter()
    }
}

impl Ask {
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

/// The end of what an update says.
fn shortened(content: Vec<Content>) -> Vec<Content> {
    let (mut text_room, mut picture_room) = (MOST_TEXT, MOST_PICTURES);
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
        if kept.len() >= MOST_UPDATES {
            break;
        }
    }
    kept.reverse();
    kept
}

/// How many bytes there are in blocks.
fn size(content: &[Content]) -> usize {
    let each = content.iter().map(|block| match block {
        Content::Text { text } => text.len(),
        Content::Image { data, .. } => data.len(),
        // A plugin brings no others.
        _ => 0,
    });
    each.sum::<usize>() + size_of_val(content)
}

/// How many bytes a value takes, about.
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
    async fn a_few_updates_are_all_shown_and_of_a_flood_the_newest() {
        let (teller, mut told) = channel();
        for n in 0..5 {
            teller.update(text(&n.to_string()));
        }
        for n in 0..5 {
            let Meanwhile::Update(content) = told.next().await else {
                panic!("a question")
            };
            assert_eq!(content, text(&n.to_string()));
        }
        for n in 0..1_000 {
            teller.update(text(&n.to_string()));
        }
        assert_eq!(told.rest().last(), Some(text("999")));
        let begun = Instant::now();
        for _ in 0..30 {
            teller.update(text("x"));
            assert!(matches!(told.next().await, Meanwhile::Update(_)));
        }
        assert!(begun.elapsed() > PACE * 5, "{:?}", begun.elapsed());
    }

    #[test]
    fn an_update_is_shown_by_its_end() {
        let long = format!("{}é{}", "a".repeat(50_000), "b".repeat(MOST_TEXT - 1));
        let shown = shortened(text(&long));
        let wanted = format!("[50002 bytes not shown]\n{}", "b".repeat(MOST_TEXT - 1));
        assert_eq!(shown, text(&wanted));
        let (teller, mut told) = channel();
        for _ in 0..100 {
            teller.update(text(&long));
        }
        let kept: usize = told.rest().map(|content| size(&content)).sum();
        assert!(kept <= MOST_WAITING, "{kept}");
    }

    #[tokio::test]
    async fn a_question_waits_for_room_and_not_for_one_who_is_gone() {
        let (teller, mut told) = channel();
        let large = || Ask::new(1.into(), "a".into(), "x".repeat(MOST_ASKING).into());
        teller.ask(large()).await;
        let second = tokio::spawn({
            let teller = teller.clone();
            async move { teller.ask(large()).await }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        assert!(matches!(told.next().await, Meanwhile::Ask(_)));
        second.await.unwrap();
        let third = tokio::spawn(async move { teller.ask(large()).await });
        tokio::task::yield_now().await;
        drop(told);
        third.await.unwrap();
    }
}

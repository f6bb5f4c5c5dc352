//! What a running call shows, told to the client as progress.

use haft::Content;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A few at once, then one every `PACE`: at most ten within any second.
const BURST: u32 = 5;
const PACE: Duration = Duration::from_millis(200);
/// How often a client hears of a tool that shows nothing.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// How long a message may be, in characters.
const MESSAGE: usize = 200;

/// The updates of one call on their way to the client.
pub(crate) struct Updates {
    token: ProgressToken,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    waiting: VecDeque<Update>,
    count: u32,
    allowance: u32,
    since: Instant,
    closed: bool,
}

struct Update {
    number: u32,
    message: Option<String>,
}

enum Step {
    Tell(Update),
    Wait(Instant),
    Rest,
    Done,
}

impl Updates {
    pub(crate) fn new(token: ProgressToken) -> Self {
        Self {
            token,
            state: Mutex::new(State::new(Instant::now())),
            changed: Notify::new(),
        }
    }

    /// Takes an update.
    pub(crate) fn push(&self, content: &[Content]) {
        let message = short(content);
        self.state().push(message, Instant::now());
        self.changed.notify_one();
    }

    /// The call is done: what may still be told now is, and nothing after it.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// Tells the client, until closed.
    pub(crate) async fn forward(&self, client: &Peer<RoleServer>) {
        loop {
            let step = self.state().step(Instant::now());
            match step {
                Step::Tell(update) => {
                    let mut told = ProgressNotificationParam::new(
                        self.token.clone(),
                        f64::from(update.number),
                    );
                    told.message = update.message;
                    if client.notify_progress(told).await.is_err() {
                        return;
                    }
                }
                Step::Wait(until) => tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    () = self.changed.notified() => {}
                },
                // A tool that says nothing is not dead: clients wait no longer than
                // they hear of it.
                Step::Rest => tokio::select! {
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep(HEARTBEAT) => self.state().push(None, Instant::now()),
                },
                Step::Done => return,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn new(now: Instant) -> Self {
        Self {
            waiting: VecDeque::new(),
            count: 0,
            allowance: BURST,
            since: now,
            closed: false,
        }
    }

    fn refill(&mut self, now: Instant) {
        while self.allowance < BURST && self.since + PACE <= now {
            self.allowance += 1;
            self.since += PACE;
        }
    }

    /// What cannot be told soon gives way to what is newer.
    fn push(&mut self, message: Option<String>, now: Instant) {
        self.refill(now);
        self.count = self.count.saturating_add(1);
        if self.waiting.len() >= self.allowance.max(1) as usize {
            self.waiting.pop_back();
        }
        self.waiting.push_back(Update {
            number: self.count,
            message,
        });
    }

    fn step(&mut self, now: Instant) -> Step {
        self.refill(now);
        if self.waiting.is_empty() {
            return if self.closed { Step::Done } else { Step::Rest };
        }
        if self.allowance == 0 {
            // The result says more than an update that would be late.
            return if self.closed {
                Step::Done
            } else {
                Step::Wait(self.since + PACE)
            };
        }
        if self.allowance == BURST {
            self.since = now;
        }
        self.allowance -= 1;
        self.waiting.pop_front().map_or(Step::Rest, Step::Tell)
    }
}

/// The text of an update, its end if it is long: that is where the news is.
fn short(content: &[Content]) -> Option<String> {
    let text = content.iter().find_map(|block| match block {
        Content::Text { text } => Some(text.trim()),
        _ => None,
    })?;
    if text.is_empty() {
        return None;
    }
    match text.char_indices().rev().nth(MESSAGE - 1) {
        None | Some((0, _)) => Some(text.to_owned()),
        Some((start, _)) => Some(format!("…{}", text.get(start..).unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<Content> {
        vec![Content::Text {
            text: text.to_owned(),
        }]
    }

    fn told(state: &mut State, now: Instant) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Step::Tell(update) = state.step(now) {
            numbers.push(update.number);
        }
        numbers
    }

    #[test]
    fn at_most_ten_within_any_second_and_the_newest_is_kept() {
        let begun = Instant::now();
        let mut state = State::new(begun);
        let mut times = Vec::new();
        let mut last = 0;
        for number in 1..=400u32 {
            let now = begun + Duration::from_millis(10) * number;
            state.push(None, now);
            for told in told(&mut state, now) {
                assert!(told > last, "progress rises");
                last = told;
                times.push(now);
            }
        }
        for (at, time) in times.iter().enumerate() {
            let within = times
                .iter()
                .skip(at)
                .take_while(|later| **later < *time + Duration::from_secs(1))
                .count();
            assert!(within <= 10, "{within} within a second");
        }
        assert!(times.len() >= 20, "and not much fewer: {}", times.len());
        assert!(last > 375, "what is told is recent: {last}");
    }

    #[test]
    fn a_burst_without_a_pause_keeps_its_first_and_its_last() {
        let now = Instant::now();
        let mut state = State::new(now);
        for _ in 0..1000 {
            state.push(None, now);
        }
        assert_eq!(told(&mut state, now), [1, 2, 3, 4, 1000]);
        state.push(None, now);
        assert!(matches!(state.step(now), Step::Wait(until) if until == now + PACE));
        state.closed = true;
        assert!(matches!(state.step(now), Step::Done));
    }

    #[test]
    fn a_long_text_is_told_by_its_end() {
        let long = "ä".repeat(1000) + "end";
        let message = short(&text(&long)).expect("a message");
        assert!(message.ends_with("end") && message.starts_with('…'));
        assert_eq!(message.chars().count(), MESSAGE + 1);
        assert_eq!(short(&text(" half \n")).as_deref(), Some("half"));
        assert_eq!(short(&text("  ")), None);
        let exact = "b".repeat(MESSAGE);
        assert_eq!(short(&text(&exact)), Some(exact));
    }
}

//! Sends the updates of a running call to the client as progress notifications.

use haft::{Content, Progress, Update};
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RoleServer};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Size of a burst, and the interval after it: at most ten notifications in any second.
const BURST: u32 = 5;
const PACE: Duration = Duration::from_millis(200);
/// Interval of notifications for a tool that produces no updates.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// Maximum length of a message in characters.
const MESSAGE: usize = 200;

/// Updates of one call that wait to be sent to the client.
pub(crate) struct Updates {
    token: ProgressToken,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    waiting: VecDeque<Waiting>,
    /// Number of updates, which is the progress unless the tool knows its own.
    count: u32,
    /// Share of the work that the newest notification reported.
    reported: Option<Progress>,
    allowance: u32,
    since: Instant,
    closed: bool,
}

/// An update to send.
struct Waiting {
    number: u32,
    message: Option<String>,
    progress: Option<Progress>,
}

enum Step {
    Send(Waiting),
    Wait(Instant),
    Idle,
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

    /// Queues an update.
    pub(crate) fn push(&self, update: Update<'_>) {
        let message = brief(update.content);
        self.state().push(message, update.progress, Instant::now());
        self.changed.notify_one();
    }

    /// Marks the call as done: updates that may be sent right now still are, later ones are
    /// dropped.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// Sends updates to the client until closed.
    pub(crate) async fn forward(&self, client: &Peer<RoleServer>) {
        loop {
            let step = self.state().step(Instant::now());
            match step {
                Step::Send(update) => {
                    let (done, total) = self.state().report(&update);
                    let mut params = ProgressNotificationParam::new(self.token.clone(), done);
                    params.total = total;
                    params.message = update.message;
                    if client.notify_progress(params).await.is_err() {
                        return;
                    }
                }
                Step::Wait(until) => tokio::select! {
                    () = tokio::time::sleep_until(until) => {}
                    () = self.changed.notified() => {}
                },
                // A tool without output is not stuck, but clients time out unless they hear
                // of it.
                Step::Idle => tokio::select! {
                    () = self.changed.notified() => {}
                    () = tokio::time::sleep(HEARTBEAT) => self.state().push(None, None, Instant::now()),
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
            reported: None,
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

    /// Replaces the newest waiting update when there is no allowance to send more soon.
    fn push(&mut self, message: Option<String>, progress: Option<Progress>, now: Instant) {
        self.refill(now);
        self.count = self.count.saturating_add(1);
        if self.waiting.len() >= self.allowance.max(1) as usize {
            self.waiting.pop_back();
        }
        self.waiting.push_back(Waiting {
            number: self.count,
            message,
            progress,
        });
    }

    /// Returns the numbers of a notification. Once a tool has reported a share of its work,
    /// they are that share; each is greater than the one before, as the protocol wants it.
    fn report(&mut self, update: &Waiting) -> (f64, Option<f64>) {
        let before = self.reported;
        let Some(Progress { done, total }) = update.progress.or(before) else {
            return (f64::from(update.number), None);
        };
        let done = match before {
            Some(before) if done <= before.done => before.done.next_up(),
            // Numbers of updates were reported until now.
            _ => done,
        };
        self.reported = Some(Progress { done, total });
        (done, Some(total))
    }

    fn step(&mut self, now: Instant) -> Step {
        self.refill(now);
        if self.waiting.is_empty() {
            return if self.closed { Step::Done } else { Step::Idle };
        }
        if self.allowance == 0 {
            // The result says more than a late update.
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
        self.waiting.pop_front().map_or(Step::Idle, Step::Send)
    }
}

/// Returns the text of an update. Only the end of a long text, because that is the newest
/// part.
fn brief(content: &[Content]) -> Option<String> {
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

    fn sent(state: &mut State, now: Instant) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Step::Send(update) = state.step(now) {
            numbers.push(update.number);
        }
        numbers
    }

    #[test]
    fn at_most_ten_are_sent_within_any_second_and_the_newest_is_kept() {
        let begun = Instant::now();
        let mut state = State::new(begun);
        let mut times = Vec::new();
        let mut last = 0;
        for number in 1..=400u32 {
            let now = begun + Duration::from_millis(10) * number;
            state.push(None, None, now);
            for number in sent(&mut state, now) {
                assert!(number > last, "progress increases");
                last = number;
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
        assert!(
            times.len() >= 20,
            "about ten per second are sent: {}",
            times.len()
        );
        assert!(last > 375, "the newest update is recent: {last}");
    }

    #[test]
    fn a_burst_keeps_its_first_updates_and_its_last() {
        let now = Instant::now();
        let mut state = State::new(now);
        for _ in 0..1000 {
            state.push(None, None, now);
        }
        assert_eq!(sent(&mut state, now), [1, 2, 3, 4, 1000]);
        state.push(None, None, now);
        assert!(matches!(state.step(now), Step::Wait(until) if until == now + PACE));
        state.closed = true;
        assert!(matches!(state.step(now), Step::Done));
    }

    #[test]
    fn a_share_of_the_work_is_passed_on_and_always_grows() {
        let now = Instant::now();
        let mut state = State::new(now);
        let share = |done| Some(Progress { done, total: 4.0 });
        let mut reported = Vec::new();
        for progress in [None, share(1.0), None, share(1.0), share(3.0)] {
            let update = Waiting {
                number: 1,
                message: None,
                progress,
            };
            reported.push(state.report(&update));
        }
        let totals: Vec<_> = reported.iter().map(|(_, total)| *total).collect();
        let four = Some(4.0);
        assert_eq!(totals, [None, four, four, four, four]);
        assert_eq!((reported[1].0, reported[4].0), (1.0, 3.0));
        let shares = reported.split_off(1);
        assert!(
            shares.is_sorted_by(|one, next| one.0 < next.0),
            "{shares:?}"
        );
    }

    #[test]
    fn a_long_text_keeps_its_end() {
        let long = "ä".repeat(1000) + "end";
        let message = brief(&text(&long)).expect("a message");
        assert!(message.ends_with("end") && message.starts_with('…'));
        assert_eq!(message.chars().count(), MESSAGE + 1);
        assert_eq!(brief(&text(" half \n")).as_deref(), Some("half"));
        assert_eq!(brief(&text("  ")), None);
        let exact = "b".repeat(MESSAGE);
        assert_eq!(brief(&text(&exact)), Some(exact));
    }
}

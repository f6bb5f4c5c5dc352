//! Sessions behave like a simple model for any sequence of operations.

use crate::bed::{begin, call, folder, messages, open, outcome};
use haft_store::sessions::{Batch, Session, Sessions};
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Debug, Clone)]
enum Act {
    /// Adds a message and a call and ends some call, in one batch.
    Commit {
        who: usize,
        count: u8,
        calls: u8,
        ends: u8,
        state: bool,
        fails: bool,
    },
    Begin,
    Fork {
        who: usize,
        at: Option<usize>,
    },
    Delete {
        who: usize,
    },
    /// Returns the lease and resumes the session.
    Retake {
        who: usize,
    },
    /// Closes and reopens the database.
    Reopen,
}

fn act() -> impl Strategy<Value = Act> {
    let who = 0..8_usize;
    prop_oneof![
        8 => (who.clone(), 0..4_u8, 0..3_u8, 0..3_u8, any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(who, count, calls, ends, state, fails)| Act::Commit { who, count, calls, ends, state, fails }),
        2 => Just(Act::Begin),
        2 => (who.clone(), prop::option::of(0..6_usize)).prop_map(|(who, at)| Act::Fork { who, at }),
        1 => who.clone().prop_map(|who| Act::Delete { who }),
        1 => who.prop_map(|who| Act::Retake { who }),
        1 => Just(Act::Reopen),
    ]
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Expected {
    /// Ids and texts of messages.
    messages: Vec<(i64, String)>,
    open: Vec<String>,
    /// With the number of messages at that time.
    states: Vec<(usize, String)>,
    seq: u64,
}

#[derive(Default)]
struct World {
    expected: BTreeMap<String, Expected>,
    held: BTreeMap<String, Session>,
    /// Source of unique names.
    counter: u64,
}

impl World {
    fn pick(&self, who: usize) -> Option<String> {
        let count = self.expected.len();
        (count > 0).then(|| self.expected.keys().nth(who % count).unwrap().clone())
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn act(&mut self, sessions: &Sessions, act: Act) {
        match act {
            Act::Begin => {
                let session = begin(sessions);
                let text = format!("m{}", self.next());
                let ids = session.commit_blocking(messages(&[&text])).unwrap();
                let id = session.id().to_owned();
                self.held.insert(id.clone(), session);
                let expected = Expected {
                    messages: vec![(ids[0], text)],
                    ..Expected::default()
                };
                self.expected.insert(id, expected);
            }
            Act::Commit {
                who,
                count,
                calls,
                ends,
                state,
                fails,
            } => {
                let Some(id) = self.pick(who) else { return };
                self.commit(sessions, &id, count, calls, ends, state, fails);
            }
            Act::Fork { who, at } => {
                let Some(id) = self.pick(who) else { return };
                let from = &self.expected[&id];
                let at = at.map(|at| at % from.messages.len());
                let message = at.map(|at| from.messages[at].0);
                let length = at.map_or(from.messages.len(), |at| at + 1);
                let fork = Expected {
                    messages: from.messages[..length].to_vec(),
                    states: from
                        .states
                        .iter()
                        .filter(|(known, _)| *known <= length)
                        .cloned()
                        .collect(),
                    ..Expected::default()
                };
                let id = sessions.fork(&id, message).unwrap();
                self.expected.insert(id, fork);
            }
            Act::Delete { who } => {
                let Some(id) = self.pick(who) else { return };
                self.held.remove(&id);
                sessions.delete(&id).unwrap();
                self.expected.remove(&id);
            }
            Act::Retake { who } => {
                let Some(id) = self.pick(who) else { return };
                self.held.remove(&id);
                let (session, _) = sessions.resume(&id).unwrap();
                self.held.insert(id, session);
            }
            Act::Reopen => {}
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the fields of an act")]
    fn commit(
        &mut self,
        sessions: &Sessions,
        id: &str,
        count: u8,
        calls: u8,
        ends: u8,
        state: bool,
        fails: bool,
    ) {
        let texts: Vec<String> = (0..count).map(|_| format!("m{}", self.next())).collect();
        let made: Vec<String> = (0..calls).map(|_| format!("c{}", self.next())).collect();
        let state = state.then(|| self.next().to_string());
        if !self.held.contains_key(id) {
            let (session, _) = sessions.resume(id).unwrap();
            self.held.insert(id.to_owned(), session);
        }
        let expected = self.expected.get_mut(id).unwrap();
        let open: Vec<String> = expected.open.iter().chain(&made).cloned().collect();
        let ended: Vec<String> = open.iter().take(usize::from(ends)).cloned().collect();
        let seq = expected.seq + 1;
        let texts_of: Vec<&str> = texts.iter().map(String::as_str).collect();
        let mut batch = Batch {
            calls: made.iter().map(|id| call(id)).collect(),
            outcomes: ended.iter().map(|id| outcome(id)).collect(),
            events: vec![(seq, "{}".to_owned())],
            state: state.clone(),
            ..messages(&texts_of)
        };
        if fails {
            batch.outcomes.push(outcome("nobody made it"));
            assert!(self.held[id].commit_blocking(batch).is_err());
            return;
        }
        let ids = self.held[id].commit_blocking(batch).unwrap();
        expected.messages.extend(ids.into_iter().zip(texts));
        expected.open = open.into_iter().filter(|id| !ended.contains(id)).collect();
        expected.seq = seq;
        let length = expected.messages.len();
        expected.states.extend(state.map(|state| (length, state)));
    }

    fn compare(&self, sessions: &Sessions) {
        for (id, expected) in &self.expected {
            let loaded = sessions.load(id).unwrap();
            let text = |body: &str| {
                let body: serde_json::Value = serde_json::from_str(body).unwrap();
                body["content"][0]["text"].as_str().unwrap().to_owned()
            };
            let found: Vec<(i64, String)> = loaded
                .messages
                .iter()
                .map(|message| (message.id, text(&message.body)))
                .collect();
            assert_eq!(found, expected.messages);
            let mut before = None;
            for message in &loaded.messages {
                assert_eq!(message.parent, before);
                before = Some(message.id);
            }
            let open: Vec<&String> = loaded.open_calls.iter().map(|call| &call.call_id).collect();
            assert_eq!(open, expected.open.iter().collect::<Vec<_>>());
            let state = expected.states.last().map(|(_, state)| state);
            assert_eq!(loaded.state.as_ref(), state);
            assert_eq!(loaded.last_seq, expected.seq);
        }
        let all = sessions
            .list(&haft_store::sessions::Filter::default())
            .unwrap();
        assert_eq!(all.len(), self.expected.len());
        for summary in all {
            let expected = &self.expected[&summary.id];
            assert_eq!(summary.messages, expected.messages.len() as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sessions_behave_like_the_model(acts in prop::collection::vec(act(), 1..40)) {
        let folder = folder();
        let mut sessions = open(&folder);
        let mut world = World::default();
        for act in acts {
            if matches!(act, Act::Reopen) {
                world.held.clear();
                drop(sessions);
                sessions = open(&folder);
            }
            world.act(&sessions, act);
            world.compare(&sessions);
        }
    }
}

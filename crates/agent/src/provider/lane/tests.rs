//! The bytes of a conversation.

use super::*;
use crate::Answer;
use proptest::prelude::*;
use serde_json::Value;

fn said(text: &str, side: Side) -> Arc<Said> {
    Said::new(match side {
        Side::Person => Message::prompt(text),
        Side::Model => Message::Assistant(Answer {
            model: text.to_owned(),
            ..Answer::default()
        }),
    })
}

/// A block for each word of a message.
#[expect(clippy::unnecessary_wraps, reason = "as a lane wants it")]
fn write(_: usize, message: &Message) -> Result<Bytes, ModelError> {
    let text = match message {
        Message::Assistant(answer) => answer.model.clone(),
        Message::User { content, .. } => match content.first() {
            Some(haft::Content::Text { text }) => text.clone(),
            _ => String::new(),
        },
        Message::Tool { .. } => String::new(),
    };
    let blocks: Vec<String> = text
        .split_whitespace()
        .map(|word| format!("{{\"t\":\"{word}\"}}"))
        .collect();
    Ok(blocks.join(",").into())
}

fn body(lane: &Lane, grammar: Grammar) -> (Value, usize) {
    let mut chain = vec![Bytes::from_static(b"[")];
    lane.chain(grammar, &mut chain);
    let bytes: Vec<u8> = chain.iter().flat_map(|part| part.to_vec()).collect();
    let value = serde_json::from_slice(&bytes);
    let value = value.unwrap_or_else(|error| panic!("{error} {}", String::from_utf8_lossy(&bytes)));
    (value, chain.len())
}

/// What a conversation should look like, made in the plainest way.
fn plain(history: &[Arc<Said>], grammar: Grammar) -> Value {
    let mut all: Vec<Value> = Vec::new();
    for said in history {
        let bytes = write(0, &said.message).unwrap();
        let list = format!("[{}]", String::from_utf8_lossy(&bytes));
        let blocks: Vec<Value> = serde_json::from_str(&list).unwrap();
        let role = match said.message {
            Message::Assistant(_) => "assistant",
            _ => "user",
        };
        match grammar {
            Grammar::Elements => all.extend(blocks),
            Grammar::Turns if blocks.is_empty() => {}
            Grammar::Turns => match all.last_mut() {
                Some(last) if last["role"] == role => {
                    last["content"].as_array_mut().unwrap().extend(blocks);
                }
                _ => all.push(serde_json::json!({ "role": role, "content": blocks })),
            },
        }
    }
    Value::Array(all)
}

fn without_marks(mut body: Value) -> (Value, usize) {
    let mut marks = 0;
    for turn in body.as_array_mut().unwrap() {
        let blocks = turn.get_mut("content").and_then(Value::as_array_mut);
        for block in blocks.into_iter().flatten() {
            marks += usize::from(
                block
                    .as_object_mut()
                    .unwrap()
                    .remove("cache_control")
                    .is_some(),
            );
        }
    }
    (body, marks)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However a conversation grows, shrinks and forks, what is sent is it.
    #[test]
    fn a_lane_is_its_conversation(
        steps in prop::collection::vec((0_usize..40, prop::collection::vec((any::<bool>(), "[a-z ]{0,9}"), 0..6)), 1..60),
        turns in any::<bool>(),
    ) {
        let grammar = if turns { Grammar::Turns } else { Grammar::Elements };
        let mut lane = Lane::default();
        let mut history: Vec<Arc<Said>> = Vec::new();
        for (back, new) in steps {
            // Mostly it grows.
            if back < 5 {
                history.truncate(history.len().saturating_sub(back));
            }
            for (is_person, text) in new {
                let side = if is_person { Side::Person } else { Side::Model };
                history.push(said(&text, side));
            }
            lane.follow(&history, grammar, write).unwrap();
            let (found, _) = body(&lane, grammar);
            let (found, marks) = without_marks(found);
            prop_assert!(marks <= 2);
            prop_assert_eq!(found, plain(&history, grammar));
        }
    }
}

#[test]
fn a_turn_costs_what_is_new_in_it() {
    let mut lane = Lane::default();
    let mut history = Vec::new();
    let mut costs = Vec::new();
    for _ in 0..1000 {
        history.push(said("word word", Side::Model));
        history.push(said(&"x".repeat(4096), Side::Person));
        let mut asked = 0;
        let count = |at: usize, message: &Message| {
            asked += 1;
            write(at, message)
        };
        costs.push(lane.follow(&history, Grammar::Turns, count).unwrap());
        assert_eq!(asked, 2);
        assert_eq!(
            lane.follow(&history, Grammar::Turns, |_, _| panic!("known"))
                .unwrap(),
            0
        );
    }
    assert_eq!(costs[99], costs[999]);
    let (found, parts) = body(&lane, Grammar::Turns);
    assert_eq!(found.as_array().unwrap().len(), 2000);
    assert!(parts < 64, "{parts}");
    let sizes: Vec<usize> = lane.pieces.iter().map(|piece| piece.bytes.len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), costs.iter().sum::<usize>());
}

#[test]
fn a_message_that_cannot_be_written_changes_nothing() {
    let mut lane = Lane::default();
    let mut history = vec![said("one", Side::Person)];
    lane.follow(&history, Grammar::Turns, write).unwrap();
    let before = body(&lane, Grammar::Turns).0;
    history.push(said("two", Side::Model));
    history.push(said("three", Side::Person));
    let failing = |at: usize, message: &Message| match at {
        2 => Err(ModelError::new(crate::Trouble::Hopeless, "no")),
        _ => write(at, message),
    };
    lane.follow(&history, Grammar::Turns, failing).unwrap_err();
    assert_eq!(body(&lane, Grammar::Turns).0, before);
    lane.follow(&history, Grammar::Turns, write).unwrap();
    let (found, marks) = without_marks(body(&lane, Grammar::Turns).0);
    assert_eq!((found, marks), (plain(&history, Grammar::Turns), 2));
}

#[test]
fn lanes_go_when_their_conversations_do() {
    let lanes = Lanes::default();
    let mut kept = Vec::new();
    for session in 0..50 {
        let history = vec![said("word", Side::Person)];
        lanes.with(&session.to_string(), |lane| {
            lane.follow(&history, Grammar::Turns, write).unwrap();
        });
        if session % 10 == 0 {
            kept.push(history);
        }
    }
    let history = vec![said("word", Side::Person)];
    lanes.with("last", |lane| {
        lane.follow(&history, Grammar::Turns, write).unwrap()
    });
    assert_eq!(lanes.lock().len(), kept.len() + 1);
}

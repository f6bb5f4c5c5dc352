//! Pictures that a provider rejects, or too many of them, do not break the conversation.

use crate::bed::{Bed, all, of_type, run};
use crate::resume::begun;
use crate::scripted::{Next, Scripted, calls, text};
use async_trait::async_trait;
use haft::{Content, Reply};
use haft_agent::{
    Agent, Hooks, Message, ModelAnswer, ModelError, ModelErrorKind, Part, Stop, ToolCall,
};
use haft_store::sessions::Sessions;
use serde_json::json;
use std::sync::Arc;

/// A PNG of one grey pixel.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDATx\xdac\x68\0\0\0\x82\0\x81\xda\x45\x08\x3b\0\0\0\0IEND\xaeB`\x82";

fn refused(status: u16, words: &str) -> Next {
    Next::Fails(ModelError::new(ModelErrorKind::Status(status), words))
}

fn bed(pictures: usize) -> Bed {
    let bed = Bed::new();
    for number in 1..=pictures {
        std::fs::write(bed.folder.path().join(format!("{number}.png")), PNG).unwrap();
    }
    bed
}

/// Reads this number of pictures, one after the other.
fn looks(pictures: usize) -> Vec<Next> {
    (1..=pictures)
        .map(|number| {
            let id = Box::leak(format!("look-{number}").into_boxed_str());
            calls([(id, "read", json!({ "path": format!("{number}.png") }))])
        })
        .collect()
}

/// Returns the calls whose results have a picture, and those whose picture was omitted.
fn seen(messages: &[Message]) -> (Vec<String>, Vec<String>) {
    let (mut shown, mut left_out) = (Vec::new(), Vec::new());
    for message in messages {
        let Message::Tool { results } = message else {
            continue;
        };
        for result in results {
            for block in &result.content {
                match block {
                    Content::Image { .. } => shown.push(result.call_id.clone()),
                    Content::Text { text }
                        if text.contains("omitted: the provider rejected")
                            || text.contains("omitted: only the newest 20 MiB") =>
                    {
                        left_out.push(result.call_id.clone());
                    }
                    _ => {}
                }
            }
        }
    }
    (shown, left_out)
}

fn names(all: &[&str]) -> Vec<String> {
    all.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn the_newest_picture_is_omitted_for_good_and_reported() {
    for status in [400, 422] {
        let bed = bed(2);
        let sessions = Sessions::open(bed.folder.path().join("sessions.db")).unwrap();
        let (id, session) = begun(&bed, &sessions);
        let mut script = looks(2);
        script.push(refused(status, "could not process image"));
        script.extend([text("One."), text("Two.")]);
        let model = Scripted::new(script);
        let agent = bed.agent(&model).recorded(session);
        let events = run(&agent, "Look").await;
        assert_eq!(events.last().unwrap()["text"], "One.", "{events:?}");
        let told = of_type(&events, "picture_left_out");
        assert_eq!(told.len(), 1, "{events:?}");
        assert_eq!(told[0]["call_id"], "look-2");
        assert_eq!(told[0]["reason"], "could not process image");
        assert_eq!(of_type(&events, "retry").len(), 1);
        let expected = (names(&["look-1"]), names(&["look-2"]));
        assert_eq!(seen(&model.last()), expected);
        // The picture stays omitted.
        let events = run(&agent, "And now?").await;
        assert_eq!(events.last().unwrap()["text"], "Two.");
        assert_eq!(of_type(&events, "picture_left_out").len(), 0);
        assert_eq!(seen(&model.last()), expected);
        assert_eq!(model.requests(), 5);
        drop(agent);

        let (session, loaded) = sessions.resume(&id).unwrap();
        let again = Scripted::new([text("Three.")]);
        let runtime = bed.runtime(|builder| builder.session(&id));
        let agent = Agent::new(again.clone(), runtime);
        let agent = agent.resuming(session, &loaded).unwrap();
        let events = run(&agent, "Still there?").await;
        assert_eq!(events.last().unwrap()["text"], "Three.");
        assert_eq!(seen(&again.last()), expected);
    }
}

#[tokio::test]
async fn the_next_newest_follows_and_the_last_attempt_has_no_pictures() {
    let bed = bed(5);
    for refusals in 1..=3 {
        let mut script = looks(5);
        for number in 0..refusals {
            script.push(refused(400, &format!("no {number}")));
        }
        script.push(text("Done."));
        let model = Scripted::new(script);
        let events = run(&bed.agent(&model), "Look").await;
        assert_eq!(events.last().unwrap()["text"], "Done.", "{events:?}");
        let (shown, left_out) = seen(&model.last());
        let gone = [1, 2, 5][refusals - 1];
        assert_eq!((shown.len(), left_out.len()), (5 - gone, gone));
        let told = of_type(&events, "picture_left_out");
        assert_eq!(told.len(), gone);
        assert!(told.iter().all(|event| event["reason"] == "no 0"));
        assert_eq!(told[0]["call_id"], "look-5", "the newest first");
    }
}

#[tokio::test]
async fn if_omitting_does_not_help_pictures_stay_and_the_first_error_is_reported() {
    let bed = bed(5);
    let mut script = looks(5);
    script.extend((0..9).map(|number| refused(400, &format!("bad request {number}"))));
    let model = Scripted::new(script);
    let agent = bed.agent(&model);
    let events = run(&agent, "Look").await;
    assert_eq!(events.last().unwrap()["reason"], "failed");
    assert_eq!(of_type(&events, "error")[0]["message"], "bad request 0");
    assert_eq!(model.requests(), 5 + 1 + 3);
    assert_eq!(of_type(&events, "picture_left_out").len(), 0);
    let history: Vec<Message> = agent
        .history()
        .iter()
        .map(|message| Message::clone(message))
        .collect();
    assert_eq!(seen(&history).0.len(), 5, "all are still there");
}

#[tokio::test]
async fn unrelated_errors_do_not_omit_pictures() {
    // A conversation without pictures.
    let model = Scripted::new([refused(400, "bad request"), text("Done.")]);
    let events = run(&bed(0).agent(&model), "Go").await;
    assert_eq!(events.last().unwrap()["reason"], "failed");
    assert_eq!(model.requests(), 1);
    // A picture, and an error that cannot be about it.
    for kind in [
        ModelErrorKind::Status(401),
        ModelErrorKind::Status(402),
        ModelErrorKind::Status(429),
        ModelErrorKind::Network,
    ] {
        let mut script = looks(1);
        let fails = || Next::Fails(ModelError::new(kind, "no"));
        script.extend([fails(), text("Done.")]);
        let model = Scripted::new(script);
        let bed = bed(1);
        let agent = bed.agent(&model).max_retries(0);
        let events = run(&agent, "Look").await;
        assert_eq!(events.last().unwrap()["reason"], "failed", "{kind:?}");
        assert_eq!(model.requests(), 2, "{kind:?}");
    }
}

/// Providers use very different errors to reject pictures.
#[tokio::test]
async fn every_final_failure_is_retried_with_fewer_pictures() {
    let statuses = [
        300, 400, 403, 404, 408, 415, 418, 422, 451, 500, 501, 503, 529,
    ];
    let mut troubles: Vec<ModelErrorKind> = statuses.map(ModelErrorKind::Status).into();
    troubles.extend([
        ModelErrorKind::Disconnected,
        ModelErrorKind::Truncated,
        ModelErrorKind::Empty,
        ModelErrorKind::Malformed,
        ModelErrorKind::Permanent,
    ]);
    for kind in troubles {
        let error = || ModelError::new(kind, "no pictures here");
        let retries = if error().is_transient() { 2 } else { 0 };
        let mut script = looks(5);
        // The usual retries happen once, before any picture is omitted.
        script.extend((0..=retries + 2).map(|_| Next::Fails(error())));
        script.extend([text("One."), text("Two.")]);
        let model = Scripted::new(script);
        let bed = bed(5);
        let agent = bed.agent(&model).max_retries(2);
        let events = run(&agent, "Look").await;
        assert_eq!(
            events.last().unwrap()["text"],
            "One.",
            "{kind:?} {events:?}"
        );
        assert_eq!(of_type(&events, "picture_left_out").len(), 5, "{kind:?}");
        assert_eq!(model.requests(), 5 + 1 + retries + 3, "{kind:?}");
        let events = run(&agent, "And now?").await;
        assert_eq!(events.last().unwrap()["text"], "Two.", "{kind:?}");
        assert!(seen(&model.last()).0.is_empty(), "{kind:?}");
    }
}

/// A request with fewer pictures is retried like any other if the provider is busy.
#[tokio::test]
async fn a_request_with_fewer_pictures_is_retried_after_a_transient_error() {
    let mut script = looks(1);
    script.extend([
        refused(404, "no endpoints found that support image input"),
        refused(429, "slow down"),
        text("Done."),
    ]);
    let model = Scripted::new(script);
    let events = run(&bed(1).agent(&model), "Look").await;
    assert_eq!(events.last().unwrap()["text"], "Done.", "{events:?}");
    assert_eq!(of_type(&events, "picture_left_out").len(), 1);
}

#[tokio::test]
async fn a_request_that_is_too_large_loses_pictures_before_text() {
    let mut script = looks(1);
    script.push(Next::Fails(ModelError::new(
        ModelErrorKind::TooLarge,
        "413",
    )));
    script.push(text("Done."));
    let model = Scripted::new(script);
    let events = run(&bed(1).agent(&model), "Look").await;
    assert_eq!(events.last().unwrap()["text"], "Done.", "{events:?}");
    assert_eq!(of_type(&events, "compaction").len(), 0);
    assert_eq!(of_type(&events, "picture_left_out").len(), 1);
    // Without a picture, the conversation is compacted as usual.
    let bed = Bed::new();
    bed.file("a.txt", "x");
    let too_large = || Next::Fails(ModelError::new(ModelErrorKind::TooLarge, "413"));
    let read = calls([("c", "read", json!({ "path": "a.txt" }))]);
    let model = Scripted::new([read, too_large(), text("In short."), text("Done.")]);
    let events = run(&bed.agent(&model), "Do it").await;
    assert_eq!(of_type(&events, "compaction").len(), 1);
    assert_eq!(events.last().unwrap()["text"], "Done.", "{events:?}");
}

#[tokio::test]
async fn a_rejected_picture_does_not_prevent_a_summary() {
    let bed = bed(1);
    let mut script = looks(1);
    script.extend([
        text("One."),
        refused(400, "could not process image"),
        text("In short."),
        text("Two."),
    ]);
    let model: Arc<Scripted> = Scripted::new(script);
    let agent = bed.agent(&model);
    run(&agent, "Look").await;
    all(agent.compact().await.unwrap()).await;
    assert!(seen(&model.last()).0.is_empty());
    run(&agent, "Go on").await;
    assert!(format!("{:?}", model.last()).contains("In short."));
}

/// Makes every picture 5 MiB large, in Base64.
struct LargePictures;

#[async_trait]
impl Hooks for LargePictures {
    async fn after_tool(&self, _call: &ToolCall, reply: &mut Reply) {
        *reply = Reply::image(&vec![0; (5 << 20) / 4 * 3], "image/png");
    }
}

#[tokio::test]
async fn a_request_has_at_most_20_mib_of_pictures() {
    let bed = bed(6);
    let sessions = Sessions::open(bed.folder.path().join("sessions.db")).unwrap();
    let (id, session) = begun(&bed, &sessions);
    let mut script = looks(6);
    // A request without the oldest pictures is retried like any other.
    script.extend([refused(503, "busy"), text("One."), text("Two.")]);
    let model = Scripted::new(script);
    let agent = bed.agent(&model).recorded(session);
    let agent = agent.hooks(Arc::new(LargePictures));
    let events = run(&agent, "Look").await;
    assert_eq!(events.last().unwrap()["text"], "One.");
    let told = of_type(&events, "picture_left_out");
    let told: Vec<_> = told.iter().map(|event| &event["call_id"]).collect();
    assert_eq!(told, ["look-1", "look-2"]);
    let reason = &of_type(&events, "picture_left_out")[0]["reason"];
    assert_eq!(*reason, "only the newest 20 MiB of pictures are sent");
    for (number, request) in model.received.lock().unwrap().iter().enumerate() {
        assert_eq!(seen(request).0.len(), number.min(4), "request {number}");
    }
    let expected = (
        names(&["look-3", "look-4", "look-5", "look-6"]),
        names(&["look-1", "look-2"]),
    );
    assert_eq!(seen(&model.last()), expected);
    let before = model.last();
    let events = run(&agent, "And now?").await;
    assert_eq!(of_type(&events, "picture_left_out").len(), 0);
    assert_eq!(seen(&model.last()), expected);
    drop(agent);

    let (session, loaded) = sessions.resume(&id).unwrap();
    let again = Scripted::new([text("Three.")]);
    let runtime = bed.runtime(|builder| builder.session(&id));
    let agent = Agent::new(again.clone(), runtime);
    let agent = agent.resuming(session, &loaded).unwrap();
    let events = run(&agent, "Still there?").await;
    assert_eq!(of_type(&events, "picture_left_out").len(), 0);
    assert_eq!(again.last()[..before.len()], before, "the same text");
}

/// One answer may have many calls, and a request that fails changes nothing.
#[tokio::test]
async fn pictures_of_one_turn_are_limited_too_and_so_are_those_of_a_summary() {
    let bed = bed(6);
    let look = |number: usize| json!({ "path": format!("{number}.png") });
    let all_at_once = calls([
        ("look-1", "read", look(1)),
        ("look-2", "read", look(2)),
        ("look-3", "read", look(3)),
        ("look-4", "read", look(4)),
        ("look-5", "read", look(5)),
        ("look-6", "read", look(6)),
    ]);
    let model = Scripted::new([all_at_once, refused(401, "no key")]);
    let agent = bed.agent(&model).hooks(Arc::new(LargePictures));
    let events = run(&agent, "Look").await;
    assert_eq!(events.last().unwrap()["reason"], "failed");
    assert_eq!(of_type(&events, "picture_left_out").len(), 0);
    assert_eq!(seen(&model.last()).0.len(), 4);
    model.also([refused(401, "no key"), text("In short.")]);
    run(&agent, "Go on").await;
    let history = agent.history();
    let history = history.iter().map(|message| Message::clone(message));
    assert_eq!(seen(&history.collect::<Vec<_>>()).0.len(), 6);
    all(agent.compact().await.unwrap()).await;
    assert!(format!("{:?}", model.last().last()).contains("Write a summary"));
    assert_eq!(seen(&model.last()).0.len(), 4);
    assert_eq!(seen(&model.last()).1, names(&["look-1", "look-2"]));
}

fn refusal(text: &str) -> Next {
    let text = text.to_owned();
    Next::ModelReply(ModelAnswer {
        parts: Vec::from_iter((!text.is_empty()).then_some(Part::Text { text })),
        stop: Stop::Refusal,
        usage: crate::scripted::usage(),
        ..ModelAnswer::default()
    })
}

/// A content filter may object to a picture; it would refuse every later prompt as well.
#[tokio::test]
async fn a_refusal_is_retried_with_fewer_pictures() {
    for words in ["", "I cannot"] {
        let mut script = looks(2);
        script.extend([refusal(words), text("One."), text("Two.")]);
        let model = Scripted::new(script);
        let bed = bed(2);
        let agent = bed.agent(&model);
        let events = run(&agent, "Look").await;
        assert_eq!(events.last().unwrap()["text"], "One.", "{events:?}");
        let told = of_type(&events, "picture_left_out");
        assert_eq!(told.len(), 1, "{events:?}");
        assert_eq!(told[0]["call_id"], "look-2");
        assert_eq!(told[0]["reason"], "the model declined to answer");
        // The refused answer costs tokens too.
        assert_eq!(events.last().unwrap()["usage"]["output"], 40);
        run(&agent, "And now?").await;
        let expected = (names(&["look-1"]), names(&["look-2"]));
        assert_eq!(seen(&model.last()), expected);
    }
}

#[tokio::test]
async fn a_refusal_that_is_not_about_pictures_keeps_them() {
    for words in ["", "Refusal"] {
        let bed = bed(5);
        let mut script = looks(5);
        script.push(refusal(words));
        script.extend((0..3).map(|_| refusal("I see no picture")));
        script.push(text("Fine."));
        let model = Scripted::new(script);
        let agent = bed.agent(&model);
        let events = run(&agent, "Look").await;
        let expected = if words.is_empty() { "failed" } else { "done" };
        assert_eq!(events.last().unwrap()["reason"], expected);
        assert_eq!(events.last().unwrap()["text"], words, "the first refusal");
        assert_eq!(events.last().unwrap()["usage"]["output"], 90);
        assert_eq!(model.requests(), 5 + 1 + 3);
        assert_eq!(of_type(&events, "picture_left_out").len(), 0);
        run(&agent, "Something else").await;
        assert_eq!(seen(&model.last()).0.len(), 5, "all are still there");
    }
}

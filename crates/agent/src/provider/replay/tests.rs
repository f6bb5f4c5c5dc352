//! Valid and invalid recordings.

use super::*;
use crate::{Message, Stop};
use std::sync::Mutex;

const HEADER: &str = r#"{"type":"session","version":1,"id":"s","model":"claude","extra":1}"#;

fn answer(id: u64, parent: &str, session: &str, text: &str) -> String {
    format!(
        r#"{{"type":"message","id":{id},"parent":{parent},"time":"t"{session},"message":{{"role":"assistant","parts":[{{"type":"reasoning","text":"hm"}},{{"type":"text","text":"{text}"}},{{"type":"call","id":"c{id}","name":"read","arguments":{{}}}}],"stop":"calls","usage":{{"input":7,"cost":0.5}},"model":"claude"}}}}"#
    )
}

fn recording() -> String {
    let user = r#"{"type":"message","id":1,"parent":null,"time":"t","message":{"role":"user","content":[{"type":"text","text":"go"}]}}"#;
    [
        HEADER,
        user,
        r#"{"type":"event","anything":[]}"#,
        &answer(2, "1", "", "left behind"),
        "",
        &answer(3, "1", "", "one äö, which is longer than a chunk"),
        &answer(9, "null", r#","session":"child""#, "of the child"),
        &answer(4, "3", "", "two"),
    ]
    .join("\n")
}

async fn ask(model: &Arc<dyn Model>) -> (Result<ModelAnswer, ModelError>, Vec<Chunk>) {
    let chunks = Mutex::new(Vec::new());
    let history = [Arc::new(Message::prompt("whatever"))];
    let request = Request {
        session: "other",
        system: "",
        tools: &[],
        history: &history,
        max_output: None,
    };
    let answer = model
        .answer(request, &|chunk| chunks.lock().unwrap().push(chunk))
        .await;
    (answer, chunks.into_inner().unwrap())
}

#[tokio::test]
async fn answers_of_the_last_branch_are_replayed_in_order() {
    let model = replay(&recording()).unwrap();
    assert_eq!(model.id().provider, "replay");
    assert_eq!(model.id().model, "claude");
    let (first, chunks) = ask(&model).await;
    let first = first.unwrap();
    let text = "one äö, which is longer than a chunk";
    assert_eq!((first.text().as_str(), first.stop), (text, Stop::Calls));
    assert_eq!((first.usage.input, first.usage.cost), (7, Some(0.5)));
    let texts: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| match chunk {
            Chunk::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(texts.len() > 1);
    assert_eq!(texts.concat(), text);
    assert_eq!(chunks.first(), Some(&Chunk::Reasoning("hm".to_owned())));
    assert_eq!(chunks.last(), Some(&Chunk::Call("read".to_owned())));
    assert_eq!(ask(&model).await.0.unwrap().text(), "two");
    let over = ask(&model).await.0.unwrap_err();
    assert_eq!(over.kind, ModelErrorKind::Permanent);
    assert!(over.message.contains("ended after 2 answers"), "{over}");
}

#[tokio::test]
async fn the_session_of_a_sub_agent_is_replayed_by_id() {
    let recording = Recording::parse(&recording()).unwrap();
    let child = recording.session("child").unwrap();
    assert_eq!(ask(&child).await.0.unwrap().text(), "of the child");
    assert!(ask(&child).await.0.is_err());
    let error = recording.session("\u{1b}").err().unwrap();
    assert_eq!(error.to_string(), "the recording has no session `\\x1b`");
    let mut names: Vec<&str> = recording.sessions().collect();
    names.sort_unstable();
    assert_eq!(names, ["child", "s"]);
}

#[tokio::test]
async fn an_interrupted_answer_is_replayed_again() {
    let recording = Recording::parse(&recording()).unwrap();
    let model = recording.pace(Duration::from_millis(20)).model();
    let interrupted = tokio::time::timeout(Duration::from_millis(20), ask(&model)).await;
    assert!(interrupted.is_err());
    assert!(ask(&model).await.0.unwrap().text().starts_with("one"));
}

#[test]
fn an_invalid_line_is_reported_with_its_number() {
    let user = r#"{"type":"message","id":1,"parent":null,"message":{"role":"user","content":[]}}"#;
    let cases = [
        (String::new(), 1, "empty"),
        ("hello".to_owned(), 1, "is not valid"),
        (user.to_owned(), 1, "--format jsonl"),
        (
            format!("\n{HEADER}\n{{\"type\":\"message\",\"id\":1}}"),
            3,
            "is not valid",
        ),
        (format!("{HEADER}\n{user}\n{{\"type\":"), 3, "is not valid"),
        (
            r#"{"type":"session","version":2,"id":"s"}"#.to_owned(),
            1,
            "version 2",
        ),
    ];
    for (text, number, reason) in cases {
        let error = Recording::parse(&text).unwrap_err();
        let RecordingError::Line { line, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(line, number, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Recording::read(Path::new("/nowhere/a\u{1b}.jsonl")).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("/nowhere/a\\x1b.jsonl"), "{text}");
}

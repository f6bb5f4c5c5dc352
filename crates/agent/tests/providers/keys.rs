//! The key is sent in one header, and appears nowhere else.

use crate::common::{KEY, Talk, model, settings};
use haft::Runtime;
use haft_agent::Agent;
use haft_agent::provider::{Provider, Secret, connect};
use haft_store::sessions::{NewSession, SessionKind, Sessions};
use haft_testing::model::{ModelReply, Scripted, Turn};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;

/// A log that a test can read.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn the_key_is_only_in_its_header() {
    for provider in Provider::ALL {
        let server = Scripted::start(vec![Turn::text("hi")]);
        let mut talk = Talk::new(model(provider, &server));
        talk.ask("go").send().await.unwrap();
        let received = &server.received()[0];
        let (header, value) = match provider {
            Provider::Anthropic => ("x-api-key", KEY.to_owned()),
            Provider::Google => ("x-goog-api-key", KEY.to_owned()),
            _ => ("authorization", format!("Bearer {KEY}")),
        };
        assert_eq!(received.header(header), Some(value.as_str()), "{provider}");
        let carrying = received
            .headers
            .iter()
            .filter(|(_, value)| value.contains(KEY));
        assert_eq!(carrying.count(), 1, "{provider}");
        assert!(!received.path.contains(KEY) && !received.path.contains("key="));
        assert!(!String::from_utf8_lossy(&received.body).contains(KEY));
    }
}

#[tokio::test]
async fn without_a_key_no_header_is_sent() {
    for provider in Provider::ALL {
        let server = Scripted::start(vec![Turn::text("hi")]);
        let mut settings = settings(provider, &server);
        settings.api_key = None;
        let mut talk = Talk::new(connect(settings).unwrap());
        talk.ask("go").send().await.unwrap();
        let received = &server.received()[0];
        for header in ["x-api-key", "x-goog-api-key", "authorization"] {
            assert_eq!(received.header(header), None, "{provider}");
        }
    }
}

#[test]
fn the_key_is_in_no_log_error_or_debug_output() {
    let log = Log::default();
    // tracing asks once per callsite whether it is wanted. As long as there is only one
    // dispatcher, it asks the thread that reaches the callsite first: if that is another test,
    // which has no subscriber, the callsite stays off for this test too. With a second
    // dispatcher, it asks both.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
        .finish();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    tracing::subscriber::with_default(subscriber, || {
        runtime.block_on(async {
            for provider in Provider::ALL {
                // Asks again about callsites that were reached before the second dispatcher
                // existed.
                tracing::callsite::rebuild_interest_cache();
                let echo = format!("your key {KEY} is wrong; Bearer {KEY}");
                let event = serde_json::json!({ "type": "error",
                    "error": { "type": "api_error", "message": echo } });
                let turns = vec![
                    Turn::status(401, &echo),
                    Turn::Status {
                        status: 500,
                        headers: vec![("x-echo".to_owned(), KEY.to_owned())],
                        body: echo.clone(),
                    },
                    Turn::Raw(format!("data: {event}\n\n{event}\n")),
                    Turn::Raw(format!("data: {KEY}\n\n")),
                    Turn::Closed,
                    Turn::text("fine"),
                ];
                let count = turns.len();
                let server = Scripted::start(turns);
                let settings = settings(provider, &server);
                assert!(!format!("{settings:?}").contains(KEY));
                let mut talk = Talk::new(connect(settings).unwrap());
                talk.ask(&format!("is {KEY} a key?"));
                for _ in 1..count {
                    let error = talk.send().await.unwrap_err();
                    let shown = format!("{error} {error:?}");
                    assert!(!shown.contains("CANARY"), "{shown}");
                }
                talk.send().await.unwrap();
            }
        });
    });
    let log = String::from_utf8_lossy(&log.0.lock().unwrap()).into_owned();
    assert!(log.contains("TRACE"), "the log is on");
    assert!(log.contains("You are"), "requests are logged");
    assert!(!log.contains("CANARY"), "{log}");
}

#[test]
fn an_invalid_key_is_rejected_without_showing_it() {
    let server = Scripted::start(vec![]);
    let mut settings = settings(Provider::Anthropic, &server);
    settings.api_key = Some(Secret::new("CANARY\nx"));
    let error = connect(settings.clone()).err().unwrap();
    assert!(!error.to_string().contains("CANARY"), "{error}");
    settings.api_key = Some(Secret::new("  "));
    settings.base_url = None;
    let error = connect(settings).err().unwrap();
    assert!(error.to_string().contains("ANTHROPIC_API_KEY"), "{error}");
}

/// Short keys of local servers may be ordinary words, and a file may contain a long key.
#[tokio::test]
#[expect(
    clippy::disallowed_methods,
    reason = "a test looks at what a tool wrote"
)]
async fn tools_receive_text_of_the_model_unredacted() {
    for key in ["k", "test", "ollama", "local-key", KEY] {
        for provider in Provider::ALL {
            let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
            let text = format!("import {key}\ntask = 1\n");
            let arguments = json!({ "path": "t.py", "content": text });
            let call = ModelReply::calling("c1", "write", &arguments);
            let server = Scripted::start(vec![call.into(), Turn::text(format!("wrote {key}."))]);
            let mut settings = settings(provider, &server);
            settings.api_key = Some(Secret::new(key));
            let runtime = Runtime::builder().dir(folder.path()).build().unwrap();
            let sessions = Sessions::open(folder.path().join("sessions.db")).unwrap();
            let new = NewSession {
                id: Some(runtime.session().to_owned()),
                kind: SessionKind::Agent,
                work_dir: folder.path().to_owned(),
                toolset: "standard".to_owned(),
                provider: provider.name().to_owned(),
                model: "m".to_owned(),
                title: None,
                parent: None,
                system: None,
            };
            let agent = Agent::new(connect(settings).unwrap(), runtime)
                .recorded(sessions.begin(new).unwrap());
            let mut events = agent.prompt("go").await.unwrap();
            let mut told = Vec::new();
            while let Some(event) = events.next().await {
                told.push(serde_json::to_value(event).unwrap());
            }
            let written = std::fs::read_to_string(folder.path().join("t.py")).unwrap();
            assert_eq!(written, text, "{provider} {key}");
            let last = server.received().pop().unwrap();
            let heard = String::from_utf8_lossy(&last.body).into_owned();
            assert!(
                heard.contains(&format!("import {key}")),
                "{provider} {heard}"
            );
            assert_eq!(agent.last_text(), format!("wrote {key}."));
            let of = |kind: &str| -> Vec<&Value> {
                told.iter().filter(|event| event["type"] == kind).collect()
            };
            let shown = of("message_update").into_iter();
            let shown: String = shown
                .map(|event| event["delta"].as_str().unwrap())
                .collect();
            let whole = Value::from(told.clone()).to_string();
            let session = agent.session().to_owned();
            drop(agent);
            let recorded = sessions.load(&session).unwrap();
            let recorded = format!("{:?}", recorded.messages);
            // A key that is too long to be an ordinary word is neither shown nor recorded.
            let is_hidden = key.len() >= 8;
            assert_eq!(!whole.contains(key), is_hidden, "{provider} {whole}");
            assert_eq!(!recorded.contains(key), is_hidden, "{provider} {recorded}");
            let ended = of("agent_end")[0]["text"].as_str().unwrap().to_owned();
            let expected = match is_hidden {
                true => "wrote [redacted].".to_owned(),
                false => format!("wrote {key}."),
            };
            assert_eq!(ended, expected);
            assert!(shown.ends_with(&expected), "{provider} {shown}");
        }
    }
}

//! The key is where it belongs and nowhere else.

use crate::common::{KEY, Talk, model, settings};
use haft_agent::provider::{Provider, Secret, connect};
use haft_testing::model::{Scripted, Turn};
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
async fn it_is_in_its_header_only() {
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
async fn without_one_no_header_is_sent() {
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
fn it_is_in_no_log_no_error_and_no_debug_output() {
    let log = Log::default();
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
                talk.ask("go");
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
    assert!(!log.contains("CANARY"), "{log}");
}

#[test]
fn a_key_that_is_none_is_refused_without_showing_it() {
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

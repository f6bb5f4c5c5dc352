//! Failures of providers.

use crate::common::{Talk, model, settings};
use haft_agent::provider::{Provider, connect};
use haft_agent::{ModelError, ModelErrorKind};
use haft_testing::model::{Ending, ModelReply, Scripted, Turn};
use serde_json::json;
use std::time::{Duration, Instant, SystemTime};

async fn failing(provider: Provider, turn: Turn) -> ModelError {
    let server = Scripted::start(vec![turn]);
    let mut talk = Talk::new(model(provider, &server));
    let error = talk.ask("go").send().await.unwrap_err();
    let reach = server.url().replace("http://", "");
    let begins = format!("{provider} ({reach}) ");
    assert!(error.message.starts_with(&begins), "{}", error.message);
    error
}

fn full() -> ModelReply {
    ModelReply::text("Some words that are long enough to be cut.")
        .reasoning("Thoughts.", "c2ln")
        .call("a", "read", &json!({ "path": "some/where" }))
}

#[tokio::test]
async fn an_error_has_the_status_and_the_message_of_the_provider() {
    for provider in Provider::ALL {
        for (status, is_transient) in [
            (400, false),
            (404, false),
            (408, true),
            (429, true),
            (500, true),
            (503, true),
            (529, true),
        ] {
            let error = failing(provider, Turn::status(status, "because\u{1b}[31m of\nthis")).await;
            assert_eq!(error.kind, ModelErrorKind::Status(status), "{provider}");
            assert_eq!(error.is_transient(), is_transient, "{provider} {status}");
            let words = format!("{status}");
            assert!(error.message.contains(&words), "{}", error.message);
            assert!(
                error.message.contains("because\\x1b[31m of this"),
                "{}",
                error.message
            );
        }
    }
}

#[tokio::test]
async fn a_long_error_message_is_truncated() {
    let body = "x".repeat(500_000);
    let error = failing(Provider::Anthropic, Turn::status(500, &body)).await;
    assert!(error.message.len() < 600, "{}", error.message.len());
    let page = Turn::Status {
        status: 502,
        headers: vec![],
        body: format!("<html>{body}"),
    };
    let error = failing(Provider::OpenaiCompletions, page).await;
    assert!(error.message.len() < 600, "{}", error.message.len());
    assert!(error.message.contains("<html>xxx"), "{}", error.message);
}

#[tokio::test]
async fn a_rejected_key_names_where_to_set_it() {
    for provider in Provider::ALL {
        for status in [401, 403] {
            let error = failing(provider, Turn::status(status, "no")).await;
            let variable = provider.key_variable().unwrap_or("api_key");
            assert!(error.message.contains(variable), "{}", error.message);
            assert!(!error.is_transient());
        }
    }
}

#[tokio::test]
async fn retry_delays_are_read_in_every_form() {
    let date = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(90));
    let status = || Turn::status(429, "slow down");
    let secs = |seconds: f64| Some(Duration::from_secs_f64(seconds));
    let google = |delay: &str| Turn::Status {
        status: 429,
        headers: vec![],
        body: json!([{ "error": { "code": 429, "message": "slow", "details": [
            { "@type": "type.googleapis.com/google.rpc.Help" },
            { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay },
        ]}}])
        .to_string(),
    };
    let cases = [
        (status(), None),
        (status().header("retry-after", "7"), secs(7.0)),
        (status().header("Retry-After", "1.5"), secs(1.5)),
        (
            status()
                .header("retry-after-ms", "250")
                .header("retry-after", "9"),
            secs(0.25),
        ),
        (status().header("retry-after", "-3"), None),
        (status().header("retry-after", "soon"), None),
        (
            status().header("retry-after", "99999999999"),
            secs(86_400.0),
        ),
        (google("34.5s"), secs(34.5)),
        (google("later"), None),
    ];
    for (turn, expected) in cases {
        let error = failing(Provider::Google, turn.clone()).await;
        assert_eq!(error.retry_after, expected, "{turn:?}");
        assert_eq!(error.kind, ModelErrorKind::Status(429));
    }
    let turn = status().header("retry-after", &date);
    let after = failing(Provider::Anthropic, turn)
        .await
        .retry_after
        .unwrap();
    assert!((80..=90).contains(&after.as_secs()), "{after:?}");
    let past = status().header("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT");
    let after = failing(Provider::Anthropic, past).await.retry_after;
    assert_eq!(after, Some(Duration::ZERO));
}

#[tokio::test]
async fn a_conversation_that_is_too_long_has_its_own_error() {
    let cases = [
        (
            Provider::Anthropic,
            400,
            "prompt is too long: 210000 tokens > 200000 maximum",
        ),
        (Provider::Anthropic, 413, "Request exceeds the maximum size"),
        (
            Provider::OpenaiCompletions,
            400,
            "This model's maximum context length is 8192 tokens.",
        ),
        (
            Provider::OpenaiResponses,
            400,
            "Your input exceeds the context window of this model.",
        ),
        (
            Provider::Google,
            400,
            "The input token count (1100000) exceeds the maximum number of tokens allowed",
        ),
        (
            Provider::Ollama,
            400,
            "the input is too long: exceed_context_size_error",
        ),
    ];
    for (provider, status, words) in cases {
        let error = failing(provider, Turn::status(status, words)).await;
        let kind = match status {
            413 => ModelErrorKind::TooLarge,
            _ => ModelErrorKind::TooLong,
        };
        assert_eq!(error.kind, kind, "{words}");
        assert!(!error.is_transient());
    }
    let error = failing(
        Provider::Anthropic,
        Turn::status(400, "max_tokens: too large"),
    )
    .await;
    assert_eq!(error.kind, ModelErrorKind::Status(400));
}

#[tokio::test]
async fn an_answer_that_is_cut_anywhere_is_an_error() {
    for provider in Provider::ALL {
        let whole = {
            let server = Scripted::start(vec![full().into()]);
            let mut talk = Talk::new(model(provider, &server));
            talk.ask("go").send().await.unwrap()
        };
        for ending in [Ending::Whole, Ending::Broken] {
            let turns = move |_: &serde_json::Value, number: usize| Turn::Cut {
                reply: full(),
                after: number * 97,
                ending,
            };
            let server = Scripted::start(turns);
            let mut talk = Talk::new(model(provider, &server));
            talk.ask("go");
            let mut refused = 0;
            let mut complete = None;
            while complete.is_none() && refused < 60 {
                match talk.send().await {
                    Err(error) => {
                        refused += 1;
                        let known = matches!(
                            error.kind,
                            ModelErrorKind::Truncated
                                | ModelErrorKind::Malformed
                                | ModelErrorKind::Empty
                        );
                        assert!(known, "{provider} {ending:?} {error:?}");
                        assert!(error.is_transient(), "{error:?}");
                    }
                    Ok(answer) => complete = Some(answer.parts),
                }
            }
            // Only bytes after the end may be missing. Google's stream has no separate end mark.
            let has_mark = provider != Provider::Google || ending == Ending::Whole;
            let expected = has_mark.then_some(whole.parts.clone());
            assert_eq!(complete, expected, "{provider} {ending:?}");
            assert!(refused >= 5, "{provider} {ending:?}: {refused}");
        }
    }
}

#[tokio::test]
async fn nonsense_is_an_error() {
    for provider in Provider::ALL {
        for raw in [
            "",
            "hello\n\n",
            "data: {not json}\n\n",
            "{not json}\n",
            "data: {\"type\":\"message_start\"}\n\n",
            "data: 7\n\n",
            "data: []\n\n\u{0}\u{1}\n",
            "<html>no</html>",
        ] {
            let error = failing(provider, Turn::Raw(raw.to_owned())).await;
            assert!(error.is_transient(), "{provider} {raw:?} {error:?}");
        }
    }
}

#[tokio::test]
async fn an_empty_answer_has_its_own_error() {
    for provider in Provider::ALL {
        let error = failing(provider, ModelReply::default().into()).await;
        assert_eq!(error.kind, ModelErrorKind::Empty, "{provider} {error:?}");
    }
}

#[tokio::test]
async fn an_error_inside_an_answer_counts_like_its_status() {
    let cases = [
        (
            Provider::Anthropic,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
            ModelErrorKind::Status(529),
        ),
        (
            Provider::Anthropic,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}"#,
            ModelErrorKind::TooLong,
        ),
        (
            Provider::OpenaiResponses,
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow down"}"#,
            ModelErrorKind::Status(429),
        ),
        (
            Provider::OpenaiResponses,
            r#"{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"broke"}}}"#,
            ModelErrorKind::Status(500),
        ),
        (
            Provider::OpenaiCompletions,
            r#"{"error":{"code":502,"message":"upstream"}}"#,
            ModelErrorKind::Status(502),
        ),
        (
            Provider::Google,
            r#"{"error":{"code":503,"status":"UNAVAILABLE","message":"overloaded"}}"#,
            ModelErrorKind::Status(503),
        ),
    ];
    for (provider, event, kind) in cases {
        let error = failing(provider, Turn::Raw(format!("data: {event}\n\n"))).await;
        assert_eq!(error.kind, kind, "{provider} {error:?}");
    }
    let line = "{\"error\":\"the model crashed\"}\n".to_owned();
    let error = failing(Provider::Ollama, Turn::Raw(line)).await;
    assert!(error.message.contains("the model crashed"), "{error:?}");
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_silent_server_times_out() {
    for turn in [
        Turn::Silent,
        Turn::Cut {
            reply: full(),
            after: 150,
            ending: Ending::Stalled,
        },
    ] {
        let server = Scripted::start(vec![turn]);
        let mut settings = settings(Provider::Anthropic, &server);
        settings.first_byte = Duration::from_millis(150);
        settings.idle = Duration::from_millis(150);
        let mut talk = Talk::new(connect(settings).unwrap());
        let begun = Instant::now();
        let error = talk.ask("go").send().await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Network, "{error:?}");
        assert!(
            error.message.contains("sent nothing for 150ms"),
            "{error:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}

#[tokio::test]
async fn refused_and_closed_connections_are_network_errors() {
    for provider in Provider::ALL {
        let error = failing(provider, Turn::Closed).await;
        assert_eq!(error.kind, ModelErrorKind::Disconnected, "{error:?}");
        let server = Scripted::start(vec![]);
        let mut settings = settings(provider, &server);
        drop(server);
        // A port without a listener.
        settings.base_url = Some("http://127.0.0.1:1".to_owned());
        let mut talk = Talk::new(connect(settings).unwrap());
        let error = talk.ask("go").send().await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Network, "{error:?}");
        assert!(error.message.contains("cannot be reached"), "{error:?}");
    }
}

/// A server may close the connection instead of reading a request that is too large for it.
#[tokio::test]
async fn a_connection_that_breaks_while_the_request_is_sent_is_not_an_unreachable_provider() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut begin = [0; 1000];
        std::io::Read::read_exact(&mut stream, &mut begin).unwrap();
        // Unread bytes make the kernel reset the connection.
        drop(stream);
    });
    let mut settings = settings(Provider::OpenaiCompletions, &Scripted::start(vec![]));
    settings.base_url = Some(format!("http://{address}"));
    let mut talk = Talk::new(connect(settings).unwrap());
    let error = talk.ask(&"x".repeat(20 << 20)).send().await.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Disconnected, "{error:?}");
    assert!(error.is_transient());
    server.join().unwrap();
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Scripted::start(vec![Turn::text("stolen")]);
    let turn = Turn::status(307, "go there").header("location", &other.url());
    let error = failing(Provider::OpenaiCompletions, turn).await;
    assert_eq!(error.kind, ModelErrorKind::Status(307));
    assert!(error.message.contains("base_url"), "{error:?}");
    assert_eq!(other.count(), 0);
}

#[tokio::test]
async fn a_response_that_is_not_a_stream_is_an_error() {
    let page = Turn::Status {
        status: 200,
        headers: vec![(
            "content-type".to_owned(),
            "text/html; charset=utf-8".to_owned(),
        )],
        body: "<!doctype html><title>Welcome</title>".to_owned(),
    };
    let error = failing(Provider::Anthropic, page).await;
    assert_eq!(error.kind, ModelErrorKind::Malformed);
    assert!(error.message.contains("base_url"), "{error:?}");
    let body = json!({ "error": { "code": 429, "message": "slow" } }).to_string();
    let wrapped = Turn::Status {
        status: 200,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body,
    };
    let error = failing(Provider::OpenaiCompletions, wrapped).await;
    assert_eq!(error.kind, ModelErrorKind::Status(429));
}

#[tokio::test]
async fn stop_reasons_of_all_providers_are_understood() {
    use haft_agent::Stop;
    let cases = [
        (Provider::Anthropic, "max_tokens", Stop::Length),
        (Provider::Anthropic, "refusal", Stop::Refusal),
        (Provider::OpenaiCompletions, "length", Stop::Length),
        (Provider::OpenaiCompletions, "content_filter", Stop::Refusal),
        (Provider::OpenaiResponses, "max_output_tokens", Stop::Length),
        (Provider::Google, "MAX_TOKENS", Stop::Length),
        (Provider::Google, "SAFETY", Stop::Refusal),
        (Provider::Ollama, "length", Stop::Length),
    ];
    for (provider, reason, stop) in cases {
        let reply = ModelReply {
            stop: Some(reason.to_owned()),
            ..ModelReply::text("Half of")
        };
        let server = Scripted::start(vec![reply.into()]);
        let mut talk = Talk::new(model(provider, &server));
        let answer = talk.ask("go").send().await.unwrap();
        assert_eq!(
            (answer.stop, answer.text().as_str()),
            (stop, "Half of"),
            "{provider}"
        );
    }
}

#[tokio::test]
async fn a_dropped_request_ends() {
    let server = Scripted::start(vec![Turn::Silent, Turn::text("later")]);
    let mut talk = Talk::new(model(Provider::Anthropic, &server));
    talk.ask("go");
    let waiting = tokio::time::timeout(Duration::from_millis(100), talk.send()).await;
    assert!(waiting.is_err());
    assert_eq!(talk.send().await.unwrap().text(), "later");
}

#[tokio::test]
async fn a_server_without_tls_is_not_accepted_for_https() {
    let server = Scripted::start(vec![Turn::text("hi")]);
    let mut settings = settings(Provider::Anthropic, &server);
    settings.base_url = Some(server.url().replace("http://", "https://"));
    let mut talk = Talk::new(connect(settings).unwrap());
    let error = talk.ask("go").send().await.unwrap_err();
    // Without any certificates, TLS cannot be set up.
    let known = matches!(
        error.kind,
        ModelErrorKind::Network | ModelErrorKind::Permanent
    );
    assert!(known, "{error:?}");
    assert_eq!(
        server
            .received()
            .iter()
            .filter(|got| !got.body.is_empty())
            .count(),
        0
    );
}

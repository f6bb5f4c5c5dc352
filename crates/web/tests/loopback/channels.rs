use crate::client::client;
use crate::http_server::{Server, Step, answer, json, redirect};
use haft_ops::Error as OpsError;
use haft_ops::messenger::{Message, Messenger, Sent};
use haft_web::channels::{Channel, Channels, MAX_PARTS, RetryPolicy, Sink};
use haft_web::{Client, Secret};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const TOKEN: &str = "123:hunter2-secret";

/// Short waits, to keep the tests fast.
pub(crate) const QUICK: RetryPolicy = RetryPolicy {
    timeout: Duration::from_secs(10),
    attempts: 3,
    backoff: Duration::from_millis(10),
};

/// A console whose output can be read.
#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("paper").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

thread_local! {
    // One per test: the first request of a client loads the certificates.
    static CLIENT: Client = client(&[]);
}

fn channels(name: &str, channel: Channel, policy: RetryPolicy) -> Channels {
    let all = BTreeMap::from([(name.to_owned(), channel)]);
    let client = CLIENT.with(Client::clone);
    Channels::new(all, &client, policy, &Sink::new(std::io::sink())).expect("channels")
}

pub(crate) fn message(channel: &str, chat: &str, content: &str) -> Message {
    Message {
        channel: channel.to_owned(),
        chat: chat.to_owned(),
        content: content.to_owned(),
    }
}

fn kind(kind: &str, base: &str) -> Channel {
    let token = Secret::new(TOKEN);
    let base_url = Some(base.to_owned());
    match kind {
        "telegram" => Channel::Telegram { token, base_url },
        "slack" => Channel::Slack { token, base_url },
        "discord" => Channel::Discord { token, base_url },
        "webhook" => Channel::Webhook {
            url: Secret::new(format!("{base}/hook/hunter2-path?key=hunter2-query")),
            token: Some(token),
        },
        _ => panic!("{kind}"),
    }
}

const KINDS: [&str; 4] = ["telegram", "slack", "discord", "webhook"];

/// A response that every service treats as success.
fn accepted() -> Step {
    json("200 OK", r#"{"ok":true,"id":"1"}"#)
}

async fn send(server: &Server, name: &str, content: &str) -> Result<Sent, String> {
    let channels = channels("main", kind(name, &server.base()), QUICK);
    let sent = channels.send(&message("main", "42", content)).await;
    sent.map_err(|error| {
        let words = error.to_string();
        for text in [&words, &format!("{error:?}")] {
            assert!(!text.contains("hunter2"), "leaked a secret: {text}");
        }
        words
    })
}

async fn failure(steps: impl IntoIterator<Item = Step>, name: &str) -> String {
    let server = Server::new(steps).await;
    let words = send(&server, name, "hello").await.expect_err("not sent");
    words
        .strip_prefix("failed to send message: ")
        .expect(&words)
        .replace(&server.port.to_string(), "PORT")
}

#[tokio::test]
async fn telegram_request() {
    let server = Server::new([accepted()]).await;
    let sent = send(&server, "telegram", "héllo \"😀\"\n").await;
    assert_eq!(sent, Ok(Sent { parts: 1, tries: 1 }));
    let seen = server.only();
    assert_eq!(seen.line, format!("POST /bot{TOKEN}/sendMessage HTTP/1.1"));
    assert_eq!(
        seen.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    assert_eq!(seen.header("authorization"), None);
    assert_eq!(seen.body, r#"{"chat_id":"42","text":"héllo \"😀\"\n"}"#);
    assert_eq!(
        seen.header("content-length"),
        Some(seen.body.len().to_string().as_str())
    );
}

#[tokio::test]
async fn slack_request() {
    let server = Server::new([accepted()]).await;
    send(
        &server,
        "slack",
        "hi <!channel> <@U1> <@u> a<b && c>d <@U1|x> &amp;",
    )
    .await
    .expect("sent");
    let seen = server.only();
    assert_eq!(seen.line, "POST /api/chat.postMessage HTTP/1.1");
    assert_eq!(
        seen.header("authorization"),
        Some(format!("Bearer {TOKEN}").as_str())
    );
    assert_eq!(
        seen.body,
        r#"{"channel":"42","text":"hi &lt;!channel&gt; <@U1> &lt;@u&gt; a&lt;b &amp;&amp; c&gt;d &lt;@U1|x&gt; &amp;amp;"}"#
    );
}

#[tokio::test]
async fn discord_request() {
    let server = Server::new([accepted()]).await;
    send(&server, "discord", "hi @everyone")
        .await
        .expect("sent");
    let seen = server.only();
    assert_eq!(seen.line, "POST /api/v10/channels/42/messages HTTP/1.1");
    assert_eq!(
        seen.header("authorization"),
        Some(format!("Bot {TOKEN}").as_str())
    );
    assert_eq!(
        seen.json(),
        json!({ "content": "hi @everyone", "allowed_mentions": { "parse": ["users"] } })
    );
}

#[tokio::test]
async fn webhook_request() {
    let server = Server::new([answer("204 No Content", &[], "")]).await;
    send(&server, "webhook", "hi").await.expect("sent");
    let seen = server.only();
    assert_eq!(
        seen.line,
        "POST /hook/hunter2-path?key=hunter2-query HTTP/1.1"
    );
    assert_eq!(
        seen.header("authorization"),
        Some(format!("Bearer {TOKEN}").as_str())
    );
    assert_eq!(
        seen.body,
        r#"{"channel":"main","chat_id":"42","content":"hi"}"#
    );
}

#[tokio::test]
async fn a_chat_cannot_change_where_a_message_goes() {
    for (chat, path) in [
        ("../../x", "/api/v10/channels/..%2F..%2Fx/messages"),
        ("%2e%2e", "/api/v10/channels/%252e%252e/messages"),
        ("1?x=y", "/api/v10/channels/1%3Fx=y/messages"),
    ] {
        let server = Server::new([accepted()]).await;
        let channels = channels("d", kind("discord", &server.base()), QUICK);
        channels.send(&message("d", chat, "x")).await.expect("sent");
        assert_eq!(server.only().line, format!("POST {path} HTTP/1.1"));
    }
    let server = Server::new([]).await;
    for name in KINDS {
        let channels = channels("d", kind(name, &server.base()), QUICK);
        for chat in ["", "  ", "1\r\nx: y", "1\0"] {
            let error = channels
                .send(&message("d", chat, "x"))
                .await
                .expect_err(chat);
            assert!(error.to_string().contains("chat id"), "{error}");
        }
        if name == "discord" {
            for chat in [".", ".."] {
                channels
                    .send(&message("d", chat, "x"))
                    .await
                    .expect_err(chat);
            }
        }
        let error = channels
            .send(&message("d", "1", " \n"))
            .await
            .expect_err("nothing");
        assert_eq!(
            error.to_string(),
            "failed to send message: the content is empty"
        );
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn retry_after_is_respected() {
    let slow = [
        (
            "telegram",
            json(
                "429 Too Many Requests",
                r#"{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 1","parameters":{"retry_after":0.4}}"#,
            ),
        ),
        (
            "slack",
            answer(
                "429 Too Many Requests",
                &[("retry-after", "0.4")],
                r#"{"ok":false,"error":"ratelimited"}"#,
            ),
        ),
        (
            "discord",
            json(
                "429 Too Many Requests",
                r#"{"message":"You are being rate limited.","retry_after":0.4,"global":false}"#,
            ),
        ),
        (
            "webhook",
            answer("429 Too Many Requests", &[("retry-after", "0.4")], ""),
        ),
    ];
    for (name, step) in slow {
        let server = Server::new([step, accepted()]).await;
        assert_eq!(
            send(&server, name, "x").await,
            Ok(Sent { parts: 1, tries: 2 }),
            "{name}"
        );
        let seen = server.seen();
        let waited = seen[1].at - seen[0].at;
        assert!(
            waited >= Duration::from_millis(400) && waited < Duration::from_secs(5),
            "{name}: {waited:?}"
        );
        assert_eq!(seen[0].body, seen[1].body);
    }
}

#[tokio::test]
async fn retry_after_beyond_the_time_limit_fails() {
    let far = httpdate::fmt_http_date(std::time::SystemTime::now() + Duration::from_secs(7200));
    let step = |wait: &str| answer("429 Too Many Requests", &[("retry-after", wait)], "");
    for name in KINDS {
        assert_eq!(
            failure([step("120")], name).await,
            "rate limited: try again in 120 s"
        );
        let words = failure([step(&far)], name).await;
        assert!(words.starts_with("rate limited: try again in 7"), "{words}");
    }
    let step = json(
        "429 Too Many Requests",
        r#"{"ok":false,"parameters":{"retry_after":35}}"#,
    );
    assert_eq!(
        failure([step], "telegram").await,
        "rate limited: try again in 35 s"
    );
    let steps = vec![json("429 Too Many Requests", "{}"); 3];
    assert_eq!(
        failure(steps, "discord").await,
        "discord answered 429 Too Many Requests (3 tries)"
    );
}

#[tokio::test]
async fn temporary_failures_are_retried() {
    for name in KINDS {
        let step = || answer("503 Service Unavailable", &[("retry-after", "0")], "");
        let server = Server::new([step(), step(), accepted()]).await;
        assert_eq!(
            send(&server, name, "x").await,
            Ok(Sent { parts: 1, tries: 3 }),
            "{name}"
        );
        assert_eq!(
            failure([step(), step(), step()], name).await,
            format!("{name} answered 503 Service Unavailable (3 tries)")
        );
    }
}

#[tokio::test]
async fn server_errors_are_not_retried() {
    for name in KINDS {
        for status in [
            "500 Internal Server Error",
            "502 Bad Gateway",
            "503 Service Unavailable",
        ] {
            assert_eq!(
                failure([answer(status, &[], "<html>oops"), accepted()], name).await,
                format!("{name} answered {status}; it may have been delivered")
            );
        }
    }
}

#[tokio::test]
async fn permanent_failures_are_not_retried() {
    for (name, step, words) in [
        (
            "telegram",
            json(
                "401 Unauthorized",
                r#"{"ok":false,"error_code":401,"description":"Unauthorized"}"#,
            ),
            "telegram answered 401 Unauthorized: the token was refused",
        ),
        (
            "telegram",
            json(
                "404 Not Found",
                r#"{"ok":false,"error_code":404,"description":"Not Found"}"#,
            ),
            "telegram answered 404 Not Found: the token was refused",
        ),
        (
            "telegram",
            json(
                "400 Bad Request",
                r#"{"ok":false,"error_code":400,"description":"Bad Request: chat not found"}"#,
            ),
            "telegram answered 400 Bad Request: chat not found",
        ),
        (
            "telegram",
            json(
                "400 Bad Request",
                r#"{"ok":false,"description":"Bad Request: group chat was upgraded to a supergroup chat","parameters":{"migrate_to_chat_id":-1001}}"#,
            ),
            "telegram answered 400 Bad Request: group chat was upgraded to a supergroup chat; its id is now -1001",
        ),
        (
            "slack",
            json("200 OK", r#"{"ok":false,"error":"invalid_auth"}"#),
            "slack answered invalid_auth: the token was refused",
        ),
        (
            "slack",
            json("200 OK", r#"{"ok":false,"error":"channel_not_found"}"#),
            "slack answered channel_not_found: chat not found, or not visible to the bot",
        ),
        (
            "slack",
            json("200 OK", r#"{"ok":false,"error":"new_kind"}"#),
            "slack answered new_kind",
        ),
        (
            "discord",
            json(
                "401 Unauthorized",
                r#"{"message":"401: Unauthorized","code":0}"#,
            ),
            "discord answered 401 Unauthorized: the token was refused",
        ),
        (
            "discord",
            json(
                "404 Not Found",
                r#"{"message":"Unknown Channel","code":10003}"#,
            ),
            "discord answered 404 Not Found: Unknown Channel",
        ),
        (
            "webhook",
            answer(
                "410 Gone",
                &[("content-type", "text/plain")],
                "no\r\nmore\x1b[2J",
            ),
            "webhook answered 410 Gone: no more[2J",
        ),
        (
            "webhook",
            answer("400 Bad Request", &[("content-type", "text/html")], "<p>no"),
            "webhook answered 400 Bad Request",
        ),
    ] {
        assert_eq!(failure([step], name).await, words);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for name in KINDS {
        let other = Server::new([]).await;
        for status in ["302 Found", "307 Temporary Redirect"] {
            assert_eq!(
                failure([redirect(status, &other.base())], name).await,
                format!("{name} answered {status}: redirects are not followed")
            );
        }
        assert_eq!(other.connections(), 0);
    }
}

#[tokio::test]
async fn a_refused_connection_is_tried_three_times() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    for name in KINDS {
        let channels = channels(
            "main",
            kind(name, &format!("http://127.0.0.1:{port}")),
            QUICK,
        );
        let error = channels
            .send(&message("main", "42", "x"))
            .await
            .expect_err("nobody");
        assert_eq!(
            error.to_string(),
            format!("failed to send message: connection refused by 127.0.0.1:{port} (3 tries)")
        );
        assert!(matches!(
            error,
            OpsError::NotSent {
                uncertain: false,
                tries: 3,
                delivered: 0,
                ..
            }
        ));
    }
}

#[tokio::test]
async fn a_broken_connection_is_not_retried() {
    for name in KINDS {
        let words = failure([Step::Cut], name).await;
        assert!(
            words.starts_with("the connection to 127.0.0.1:PORT broke: "),
            "{words}"
        );
        assert!(words.ends_with("; it may have been delivered"), "{words}");
        let server = Server::new([Step::Hang]).await;
        let policy = RetryPolicy {
            timeout: Duration::from_millis(500),
            ..QUICK
        };
        let channels = channels("main", kind(name, &server.base()), policy);
        let error = channels
            .send(&message("main", "42", "x"))
            .await
            .expect_err("silence");
        assert_eq!(
            error.to_string(),
            "failed to send message: timed out after 0.5 s; it may have been delivered"
        );
        assert!(matches!(
            error,
            OpsError::NotSent {
                uncertain: true,
                tries: 1,
                ..
            }
        ));
        assert_eq!(server.seen().len(), 1);
    }
}

#[tokio::test]
async fn responses_that_are_not_from_the_service() {
    let big = "x".repeat(10 << 20);
    for name in ["telegram", "slack"] {
        for body in ["", "garbage", "[1]", r#"{"ok":"yes"}"#, &big] {
            assert_eq!(
                failure([answer("200 OK", &[], body)], name).await,
                format!(
                    "{name} answered 200 OK with a body that is not from its API; it may have been delivered"
                )
            );
        }
    }
    for name in ["discord", "webhook"] {
        for step in [answer("200 OK", &[], &big), Step::Stall, Step::Endless] {
            let server = Server::new([step]).await;
            let policy = RetryPolicy {
                timeout: Duration::from_millis(500),
                ..QUICK
            };
            let channels = channels("main", kind(name, &server.base()), policy);
            channels
                .send(&message("main", "42", "x"))
                .await
                .expect("the status decides");
        }
    }
    let huge = json(
        "400 Bad Request",
        &format!(
            r#"{{"message":"{}","description":"{}"}}"#,
            "é".repeat(9000),
            "é".repeat(9000)
        ),
    );
    for name in ["telegram", "discord", "webhook"] {
        let words = failure([huge.clone()], name).await;
        assert!(
            words.chars().count() < 400 && words.ends_with('…'),
            "{words}"
        );
    }
}

#[tokio::test]
async fn an_echoed_token_is_redacted() {
    let echo = |reply: &str| {
        json!({ "ok": false, "error": reply, "message": reply, "description": reply }).to_string()
    };
    let reply = format!("no bot{TOKEN}: {TOKEN}");
    let webhook = format!("no POST /hook/hunter2-path?key=hunter2-query hunter2-query {TOKEN}");
    for name in KINDS {
        for status in ["400 Bad Request", "200 OK"] {
            if status == "200 OK" && !matches!(name, "telegram" | "slack") {
                continue;
            }
            // `failure` checks for secrets.
            let reply = if name == "webhook" { &webhook } else { &reply };
            let words = failure([json(status, &echo(reply))], name).await;
            assert!(words.contains("***"), "{words}");
        }
    }
}

#[tokio::test]
async fn the_most_verbose_log_contains_no_token() {
    // For the whole process, because the log of one thread depends on what the other tests do.
    // Their tokens must not be in it either.
    let paper = Paper::default();
    let writer = paper.clone();
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .init();
    for name in KINDS {
        let server = Server::new([json("429 Oops", "{}"), accepted()]).await;
        send(&server, name, "x").await.expect("sent");
    }
    let log = String::from_utf8(paper.0.lock().expect("paper").clone()).expect("UTF-8");
    assert!(!log.contains("hunter2"), "{log}");
    assert!(log.contains("127.0.0.1"), "{log}");
}

#[tokio::test]
async fn long_texts_are_sent_in_parts() {
    for (name, key, most) in [
        ("telegram", "text", 4096),
        ("slack", "text", 4000),
        ("discord", "content", 2000),
    ] {
        let content: String = (0..)
            .map(|n| format!("line {n} 😀é\n"))
            .take_while_inclusive(most * 2 + 100);
        let server = Server::new(vec![accepted(); 3]).await;
        assert_eq!(
            send(&server, name, &content).await,
            Ok(Sent { parts: 3, tries: 3 }),
            "{name}"
        );
        let parts: Vec<String> = server
            .seen()
            .iter()
            .map(|seen| seen.json()[key].as_str().expect("text").to_owned())
            .collect();
        assert_eq!(parts.concat(), content);
        for part in &parts {
            assert!(
                part.encode_utf16().count() <= most && part.ends_with('\n'),
                "{name}"
            );
        }
        let steps = [accepted(), json("403 Forbidden", "{}")];
        let server = Server::new(steps).await;
        let words = send(&server, name, &content).await.expect_err("half of it");
        assert_eq!(
            words,
            format!(
                "failed to send message: {name} answered 403 Forbidden; 1 of 3 parts was delivered"
            )
        );
        let server = Server::new([accepted(), accepted(), Step::Cut]).await;
        let words = send(&server, name, &content).await.expect_err("most of it");
        assert!(
            words.ends_with("; 2 of 3 parts were delivered, and part 3 may have been"),
            "{words}"
        );
    }
    let server = Server::new([]).await;
    let book = "x".repeat(2000 * MAX_PARTS + 1);
    let words = send(&server, "discord", &book).await.expect_err("a book");
    assert_eq!(
        words,
        "failed to send message: the content is too long: it needs 26 messages, the limit is 25"
    );
    let server = Server::new([accepted()]).await;
    assert_eq!(
        send(&server, "webhook", &book).await,
        Ok(Sent { parts: 1, tries: 1 })
    );
}

/// Takes lines until there are enough UTF-16 units.
trait Enough {
    fn take_while_inclusive(self, units: usize) -> String;
}

impl<I: Iterator<Item = String>> Enough for I {
    fn take_while_inclusive(self, units: usize) -> String {
        let mut all = String::new();
        for line in self {
            all.push_str(&line);
            if all.encode_utf16().count() >= units {
                break;
            }
        }
        all
    }
}

#[tokio::test]
async fn the_console_escapes_control_characters() {
    let paper = Paper::default();
    let all = BTreeMap::from([("screen".to_owned(), Channel::Console)]);
    let channels =
        Channels::new(all, &client(&[]), QUICK, &Sink::new(paper.clone())).expect("channels");
    channels
        .send(&message(
            "screen",
            "me",
            "hi\u{1b}]0;x\u{7}\nthere\u{202e}\n",
        ))
        .await
        .expect("sent");
    let shown = String::from_utf8(paper.0.lock().expect("paper").clone()).expect("UTF-8");
    assert_eq!(
        shown,
        "[screen → me] hi\\x1b]0;x\\x07\n  | there\\u{202e}\n"
    );
    assert_eq!(channels.host("screen"), None);
}

#[tokio::test]
async fn channels_are_known_by_name() {
    let all = BTreeMap::from([
        ("b".to_owned(), Channel::Console),
        (
            "a".to_owned(),
            Channel::Telegram {
                token: Secret::new(TOKEN),
                base_url: None,
            },
        ),
        (
            "c".to_owned(),
            kind("webhook", "https://Hooks.example.org:8443"),
        ),
    ]);
    assert!(!format!("{all:?}").contains("hunter2"), "{all:?}");
    let channels =
        Channels::new(all, &client(&[]), QUICK, &Sink::new(std::io::sink())).expect("channels");
    assert_eq!(channels.channels(), ["a", "b", "c"]);
    assert_eq!(channels.host("a").as_deref(), Some("api.telegram.org"));
    assert_eq!(channels.host("c").as_deref(), Some("hooks.example.org"));
    assert_eq!(channels.host("x"), None);
    let error = channels
        .send(&message("x", "1", "hi"))
        .await
        .expect_err("no such channel");
    assert_eq!(error.to_string(), "channel not found: x");
    assert!(matches!(error, OpsError::UnknownChannel { known, .. } if known == ["a", "b", "c"]));
}

#[test]
fn invalid_settings() {
    let telegram = |token: &str, base: Option<&str>| Channel::Telegram {
        token: Secret::new(token),
        base_url: base.map(str::to_owned),
    };
    let hook = |url: &str| Channel::Webhook {
        url: Secret::new(url),
        token: None,
    };
    for (channel, words) in [
        (telegram(" ", None), "channel main: token is empty"),
        (
            telegram("hunter2\n2", None),
            "channel main: token contains a character that is not allowed in a token",
        ),
        (
            telegram("t", Some("hunter2")),
            "channel main: base_url must be an http or https URL without a user name",
        ),
        (
            telegram("t", Some("http://a:hunter2@b")),
            "channel main: base_url must be an http or https URL without a user name",
        ),
        (
            hook("ftp://hunter2"),
            "channel main: url must be an http or https URL without a user name",
        ),
        (
            hook(""),
            "channel main: url must be an http or https URL without a user name",
        ),
    ] {
        let all = BTreeMap::from([("main".to_owned(), channel)]);
        let error = Channels::new(all, &client(&[]), QUICK, &Sink::new(std::io::sink()))
            .err()
            .expect(words);
        assert_eq!(error.to_string(), words);
    }
}

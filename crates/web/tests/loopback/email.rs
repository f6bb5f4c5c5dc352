use crate::channels::{QUICK, message};
use crate::smtp_server::{Script, SmtpServer};
use crate::tls::certified;
use haft_ops::Error as OpsError;
use haft_ops::messenger::{Messenger, Sent};
use haft_web::Secret;
use haft_web::channels::{Channel, Channels, Email, Encryption, RetryPolicy, Sink};
use haft_web::client::{Client, Settings};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const PASSWORD: &str = "hunter2-secret";
/// `\0ann\0hunter2-secret`.
const PLAIN: &str = "AGFubgBodW50ZXIyLXNlY3JldA==";

fn email(port: u16) -> Email {
    Email {
        host: "localhost".to_owned(),
        port,
        username: Some("ann".to_owned()),
        password: Some(Secret::new(PASSWORD)),
        from: "Haft <haft@example.org>".to_owned(),
        encryption: Encryption::Auto,
    }
}

fn open(email: Email, policy: RetryPolicy, ca_file: Option<PathBuf>) -> Channels {
    let client = Client::new(Settings {
        ca_file,
        ..Settings::default()
    })
    .expect("a client");
    let all = BTreeMap::from([("mail".to_owned(), Channel::Email(email))]);
    Channels::new(all, &client, policy, &Sink::new(std::io::sink())).expect("channels")
}

async fn send(channels: &Channels, to: &str, content: &str) -> Result<Sent, String> {
    channels
        .send(&message("mail", to, content))
        .await
        .map_err(|error| {
            let words = error.to_string();
            for text in [&words, &format!("{error:?}")] {
                assert!(
                    !text.contains(PASSWORD) && !text.contains(PLAIN),
                    "leaked a secret: {text}"
                );
            }
            words
                .strip_prefix("failed to send message: ")
                .expect(&words)
                .to_owned()
        })
}

const AUTH: Script = Script {
    tls: None,
    at_once: false,
    auth: true,
    odd: Vec::new(),
};

async fn failure(odd: &[(&'static str, &'static str)], policy: RetryPolicy) -> (String, usize) {
    let server = SmtpServer::new(Script {
        odd: odd.to_vec(),
        ..AUTH
    })
    .await;
    let channels = open(email(server.port), policy, None);
    let words = send(&channels, "bob@example.org", "hi")
        .await
        .expect_err("not sent");
    (
        words.replace(&server.port.to_string(), "PORT"),
        server.connections(),
    )
}

#[tokio::test]
async fn a_message_on_the_wire() {
    let server = SmtpServer::new(AUTH).await;
    let channels = open(email(server.port), QUICK, None);
    assert_eq!(channels.host("mail").as_deref(), Some("localhost"));
    let sent = send(
        &channels,
        "bob@example.org",
        "All green.\n\n.hidden\nFrom here\n",
    )
    .await;
    assert_eq!(sent, Ok(Sent { parts: 1, tries: 1 }));
    let lines = server.lines();
    assert_eq!(
        lines,
        [
            "EHLO [127.0.0.1]",
            &format!("AUTH PLAIN {PLAIN}"),
            "MAIL FROM:<haft@example.org>",
            "RCPT TO:<bob@example.org>",
            "DATA",
            "QUIT"
        ]
    );
    let mail = server.mails().remove(0);
    let (head, body) = mail.split_once("\r\n\r\n").expect("a body");
    for header in [
        "From: Haft <haft@example.org>",
        "To: bob@example.org",
        "Subject: All green.",
        "Content-Type: text/plain; charset=utf-8",
    ] {
        assert!(
            head.lines().any(|line| line == header),
            "{header} in {head}"
        );
    }
    assert!(
        head.contains("Date: ") && head.contains("Message-ID: <"),
        "{head}"
    );
    // A dot at the start of a line is doubled in transit.
    assert_eq!(body, "All green.\r\n\r\n..hidden\r\nFrom here\r\n\r\n.\r\n");
}

#[tokio::test]
async fn non_ascii_text() {
    let server = SmtpServer::new(AUTH).await;
    let channels = open(email(server.port), QUICK, None);
    let content = format!("Größe 😀\n{}", "ü".repeat(3000));
    send(&channels, "Bob Müller <bob@example.org>", &content)
        .await
        .expect("sent");
    let mail = server.mails().remove(0);
    assert!(mail.is_ascii() && mail.lines().all(|line| line.len() < 998));
    assert!(mail.contains("\r\nSubject: =?utf-8?b?"), "{mail}");
}

#[tokio::test]
async fn a_recipient_is_one_address() {
    let server = SmtpServer::new(AUTH).await;
    let channels = open(email(server.port), QUICK, None);
    for to in ["bob", "a@b, c@d", "a@", "bob@example.org>\u{2028}x"] {
        let words = send(&channels, to, "hi").await.expect_err(to);
        assert!(words.ends_with("is not an e-mail address"), "{words}");
    }
    for to in [
        "bob@example.org\r\nBcc: eve@example.org",
        "bob@example.org\nRCPT TO:<eve@example.org>",
    ] {
        let words = send(&channels, to, "hi").await.expect_err(to);
        assert_eq!(words, "the chat id contains a control character");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_subject_cannot_become_a_header() {
    let server = SmtpServer::new(AUTH).await;
    let channels = open(email(server.port), QUICK, None);
    send(
        &channels,
        "bob@example.org",
        "Hi\rBcc: eve@example.org\nmore",
    )
    .await
    .expect("sent");
    let mail = server.mails().remove(0);
    let (head, _) = mail.split_once("\r\n\r\n").expect("a body");
    assert!(
        !head.split("\r\n").any(|line| line.starts_with("Bcc")),
        "{head}"
    );
    assert!(!head.replace("\r\n", "").contains('\r'), "{head:?}");
}

#[tokio::test]
async fn rejections_by_the_server() {
    for (odd, words) in [
        (
            ("AUTH", "535 5.7.8 no hunter2-secret"),
            "localhost:PORT answered 535: the user name or password was refused",
        ),
        (
            ("MAIL", "530 sign in first"),
            "localhost:PORT answered 530: sign in first",
        ),
        (
            ("RCPT", "550 no such user AGFubgBodW50ZXIyLXNlY3JldA== here"),
            "localhost:PORT answered 550: no such user *** here",
        ),
        (("DATA", "554 spam"), "localhost:PORT answered 554: spam"),
    ] {
        assert_eq!(failure(&[odd], QUICK).await, (words.to_owned(), 1));
    }
}

#[tokio::test]
async fn temporary_failures_are_retried() {
    for command in ["GREETING", "MAIL", "RCPT", "DATA"] {
        let odd = vec![(command, "451 later"); 2];
        let server = SmtpServer::new(Script { odd, ..AUTH }).await;
        let channels = open(email(server.port), QUICK, None);
        let sent = send(&channels, "bob@example.org", "hi").await;
        assert_eq!(sent, Ok(Sent { parts: 1, tries: 3 }), "{command}");
        assert_eq!(server.mails().len(), 1);
    }
    let words = failure(&[("RCPT", "451 later"); 3], QUICK).await.0;
    assert_eq!(words, "localhost:PORT answered 451: later (3 tries)");
}

#[tokio::test]
async fn a_timeout_after_the_content_is_not_retried() {
    let (words, connections) = failure(&[("DATA", "")], QUICK).await;
    assert!(words.ends_with("; it may have been delivered"), "{words}");
    assert_eq!(connections, 1);
    let policy = RetryPolicy {
        timeout: Duration::from_millis(800),
        ..QUICK
    };
    let (words, connections) = failure(&[("DATA", "hang")], policy).await;
    assert_eq!(words, "timed out after 0.8 s; it may have been delivered");
    assert_eq!(connections, 1);
    let (words, _) = failure(&[("RCPT", "hang")], policy).await;
    assert_eq!(words, "timed out after 0.8 s");
}

#[tokio::test]
async fn a_refused_connection_is_retried() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port();
    drop(free);
    let channels = open(
        Email {
            host: "127.0.0.1".to_owned(),
            ..email(port)
        },
        QUICK,
        None,
    );
    let error = channels
        .send(&message("mail", "bob@example.org", "hi"))
        .await
        .expect_err("connection refused");
    assert_eq!(
        error.to_string(),
        format!("failed to send message: connection refused by 127.0.0.1:{port} (3 tries)")
    );
    assert!(matches!(
        error,
        OpsError::NotSent {
            uncertain: false,
            ..
        }
    ));
}

#[tokio::test]
async fn a_server_that_does_not_speak_smtp() {
    let (words, _) = failure(&[("GREETING", "HTTP/1.1 400 Bad Request")], QUICK).await;
    assert!(words.starts_with("localhost:PORT"), "{words}");
}

#[tokio::test]
async fn a_connection_is_encrypted_if_required_or_offered() {
    let certified = certified("localhost");
    let script = |at_once| Script {
        tls: Some(certified.acceptor.clone()),
        at_once,
        ..AUTH
    };
    let trusted = Some(certified.authority.clone());
    for (at_once, encryption) in [
        (true, Encryption::Tls),
        (false, Encryption::StartTls),
        (false, Encryption::Auto),
    ] {
        let server = SmtpServer::new(script(at_once)).await;
        let settings = Email {
            encryption,
            ..email(server.port)
        };
        let channels = open(settings.clone(), QUICK, trusted.clone());
        send(&channels, "bob@example.org", "hi")
            .await
            .expect("sent");
        let lines = server.lines();
        let starttls = lines.iter().position(|line| line == "STARTTLS");
        let auth = lines.iter().position(|line| line.starts_with("AUTH"));
        assert_eq!(starttls.is_some(), !at_once, "{lines:?}");
        assert!(starttls < auth, "{lines:?}");
        // Nothing is sent to a server with an untrusted certificate.
        let server = SmtpServer::new(script(at_once)).await;
        let channels = open(
            Email {
                port: server.port,
                ..settings
            },
            QUICK,
            None,
        );
        let words = send(&channels, "bob@example.org", "hi")
            .await
            .expect_err("not trusted");
        assert!(
            words.starts_with("no secure connection to localhost:"),
            "{words}"
        );
        assert!(!server.lines().iter().any(|line| line.starts_with("AUTH")));
        assert_eq!(server.connections(), 1, "{words}");
    }
}

#[tokio::test]
async fn nothing_is_sent_if_required_encryption_is_missing() {
    let server = SmtpServer::new(AUTH).await;
    let settings = Email {
        encryption: Encryption::StartTls,
        ..email(server.port)
    };
    let words = send(&open(settings, QUICK, None), "bob@example.org", "hi")
        .await
        .expect_err("plain");
    assert_eq!(
        words,
        format!("localhost:{} offers no encryption (STARTTLS)", server.port)
    );
    assert!(!server.lines().iter().any(|line| line.starts_with("AUTH")));
}

#[tokio::test]
async fn signing_in_is_optional() {
    let server = SmtpServer::new(Script::default()).await;
    let settings = Email {
        username: None,
        password: None,
        ..email(server.port)
    };
    send(&open(settings, QUICK, None), "bob@example.org", "hi")
        .await
        .expect("sent");
    // But signing in fails, because the server does not support it.
    let channels = open(email(server.port), QUICK, None);
    send(&channels, "bob@example.org", "hi")
        .await
        .expect_err("no way to sign in");
    assert_eq!(server.mails().len(), 1);
}

#[test]
fn invalid_settings() {
    let good = || email(25);
    for (email, words) in [
        (
            Email {
                host: " ".to_owned(),
                ..good()
            },
            "channel mail: host is empty",
        ),
        (
            Email {
                from: "haft".to_owned(),
                ..good()
            },
            "channel mail: from is not an e-mail address",
        ),
        (
            Email {
                password: None,
                ..good()
            },
            "channel mail: username without a password",
        ),
        (
            Email {
                username: None,
                ..good()
            },
            "channel mail: password without a username",
        ),
    ] {
        let client = Client::new(Settings::default()).expect("a client");
        let all = BTreeMap::from([("mail".to_owned(), Channel::Email(email))]);
        let error = Channels::new(all, &client, QUICK, &Sink::new(std::io::sink()))
            .err()
            .expect(words);
        assert_eq!(error.to_string(), words);
    }
}

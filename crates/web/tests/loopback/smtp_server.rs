//! A mail server that follows a script.

use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Features and behaviour of the server.
#[derive(Clone, Default)]
pub(crate) struct Script {
    /// TLS settings, if it supports TLS.
    pub(crate) tls: Option<TlsAcceptor>,
    /// Whether TLS starts immediately or after STARTTLS.
    pub(crate) at_once: bool,
    /// Whether it supports signing in.
    pub(crate) auth: bool,
    /// Replies that replace the usual ones, once: a command and a reply. `DATA` stands for the
    /// end of the content. An empty reply closes the connection; `hang` sends no reply.
    pub(crate) odd: Vec<(&'static str, &'static str)>,
}

#[derive(Default)]
struct Record {
    lines: Vec<String>,
    mails: Vec<String>,
    connections: usize,
}

pub(crate) struct SmtpServer {
    pub(crate) port: u16,
    record: Arc<Mutex<Record>>,
}

struct Session {
    script: Arc<Mutex<Script>>,
    record: Arc<Mutex<Record>>,
}

impl SmtpServer {
    pub(crate) async fn new(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let record = Arc::new(Mutex::new(Record::default()));
        let theirs = Arc::clone(&record);
        let tls = script.tls.clone();
        let at_once = script.at_once;
        let script = Arc::new(Mutex::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                theirs.lock().expect("a record").connections += 1;
                let session = Session {
                    script: Arc::clone(&script),
                    record: Arc::clone(&theirs),
                };
                let tls = tls.clone();
                tokio::spawn(async move {
                    if at_once {
                        let tls = tls.expect("a certificate");
                        if let Ok(stream) = tls.accept(stream).await {
                            session.talk(stream, true, false).await;
                        }
                        return;
                    }
                    let Some(stream) = session.talk(stream, true, tls.is_some()).await else {
                        return;
                    };
                    let tls = tls.expect("a certificate");
                    if let Ok(stream) = tls.accept(stream).await {
                        session.talk(stream, false, false).await;
                    }
                });
            }
        });
        Self { port, record }
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.record.lock().expect("a record").lines.clone()
    }

    pub(crate) fn mails(&self) -> Vec<String> {
        self.record.lock().expect("a record").mails.clone()
    }

    pub(crate) fn connections(&self) -> usize {
        self.record.lock().expect("a record").connections
    }
}

impl Session {
    fn odd(&self, command: &str) -> Option<&'static str> {
        let mut script = self.script.lock().expect("a script");
        let at = script.odd.iter().position(|(known, _)| *known == command)?;
        Some(script.odd.remove(at).1)
    }

    /// Serves the connection until its end or until STARTTLS.
    async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        greet: bool,
        starttls: bool,
    ) -> Option<S> {
        let auth = self.script.lock().expect("a script").auth;
        let mut stream = BufReader::new(stream);
        if greet {
            let greeting = self.odd("GREETING").unwrap_or("220 test");
            self.say(&mut stream, greeting).await?;
        }
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).await.ok().filter(|n| *n > 0)?;
            let line = line.trim_end().to_owned();
            let command = line
                .split([' ', ':'])
                .next()
                .unwrap_or_default()
                .to_ascii_uppercase();
            self.record.lock().expect("a record").lines.push(line);
            let odd = if command == "DATA" {
                None
            } else {
                self.odd(&command)
            };
            if let Some(odd) = odd {
                self.say(&mut stream, odd).await?;
                continue;
            }
            match command.as_str() {
                "EHLO" => {
                    let mut answer = "250-test\r\n".to_owned();
                    if starttls {
                        answer.push_str("250-STARTTLS\r\n");
                    }
                    if auth {
                        answer.push_str("250-AUTH PLAIN LOGIN\r\n");
                    }
                    answer.push_str("250 8BITMIME");
                    self.say(&mut stream, &answer).await?;
                }
                "STARTTLS" => {
                    self.say(&mut stream, "220 go").await?;
                    return Some(stream.into_inner());
                }
                "AUTH" => self.say(&mut stream, "235 welcome").await?,
                "DATA" => {
                    self.say(&mut stream, "354 go").await?;
                    let mut mail = String::new();
                    while !mail.ends_with("\r\n.\r\n") {
                        stream.read_line(&mut mail).await.ok().filter(|n| *n > 0)?;
                    }
                    let odd = self.odd("DATA");
                    if odd.is_none() {
                        self.record.lock().expect("a record").mails.push(mail);
                    }
                    self.say(&mut stream, odd.unwrap_or("250 queued")).await?;
                }
                "QUIT" => {
                    self.say(&mut stream, "221 bye").await?;
                    return None;
                }
                _ => self.say(&mut stream, "250 ok").await?,
            }
        }
    }

    /// Returns `None` if the connection should end.
    async fn say<S: AsyncWrite + Unpin>(&self, stream: &mut S, answer: &str) -> Option<()> {
        match answer {
            "" => return None,
            "hang" => std::future::pending().await,
            _ => {}
        }
        let answer = format!("{answer}\r\n");
        stream.write_all(answer.as_bytes()).await.ok()?;
        stream.flush().await.ok()
    }
}

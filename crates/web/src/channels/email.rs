//! Mail over SMTP. lettre implements the protocol; the steps are called one by one here, so that
//! it is known after which of them a message may have been delivered.

use super::redact::Redactor;
use super::settings::{Email, Encryption};
use super::transport::{Failure, Part, TimeLimit, Transport};
use crate::Secret;
use crate::client::{CONNECT_TIMEOUT, Client, format_seconds, tls_error};
use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use haft_ops::text::decode::is_deceptive;
use lettre::Message;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, MIME_VERSION_1_0};
use lettre::transport::smtp::Error as SmtpError;
use lettre::transport::smtp::authentication::{Credentials, DEFAULT_MECHANISMS};
use lettre::transport::smtp::client::{AsyncSmtpConnection, Certificate, TlsParameters};
use lettre::transport::smtp::commands::{Data, Mail as MailFrom, Rcpt};
use lettre::transport::smtp::extension::{ClientId, Extension, MailBodyParameter, MailParameter};
use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use tokio::time::{Instant, timeout_at};

/// Maximum length of a subject in characters.
const MAX_SUBJECT: usize = 70;

pub(super) struct EmailTransport {
    host: String,
    port: u16,
    from: Mailbox,
    credentials: Option<(String, Secret)>,
    encryption: Encryption,
    client: Client,
    redactor: Redactor,
}

impl EmailTransport {
    pub(super) fn new(email: Email, client: &Client) -> Result<Self, String> {
        let Email {
            host,
            port,
            username,
            password,
            from,
            encryption,
        } = email;
        let host = host.trim().to_owned();
        if host.is_empty() {
            return Err("host is empty".to_owned());
        }
        let from = from
            .trim()
            .parse()
            .map_err(|_| "from is not an e-mail address".to_owned())?;
        let credentials = match (username.filter(|name| !name.is_empty()), password) {
            (Some(name), Some(password)) => Some((name, password)),
            (None, None) => None,
            (Some(_), None) => return Err("username without a password".to_owned()),
            (None, Some(_)) => return Err("password without a username".to_owned()),
        };
        let encryption = match (encryption, port) {
            (Encryption::Auto, 465) => Encryption::Tls,
            (Encryption::Auto, 587) => Encryption::StartTls,
            (other, _) => other,
        };
        // Some servers repeat in their errors what the client sent.
        let secrets = credentials.iter().flat_map(|(name, password)| {
            let password = password.expose();
            [
                password.to_owned(),
                BASE64.encode(password),
                BASE64.encode(format!("\0{name}\0{password}")),
            ]
        });
        Ok(Self {
            redactor: Redactor::new(secrets),
            client: client.clone(),
            host,
            port,
            from,
            credentials,
            encryption,
        })
    }

    fn message(&self, part: Part<'_>) -> Result<(Mailbox, Vec<u8>), String> {
        let to = recipient(part.chat)?;
        let id = format!(
            "<{:016x}{:016x}@{}>",
            fastrand::u64(..),
            fastrand::u64(..),
            self.from.email.domain()
        );
        let message = Message::builder()
            .from(self.from.clone())
            .to(to.clone())
            .subject(subject(part.text))
            .date_now()
            .message_id(Some(id))
            .header(MIME_VERSION_1_0)
            .header(ContentType::TEXT_PLAIN)
            .body(part.text.to_owned())
            .map_err(|error| self.redactor.text(&error.to_string()))?;
        Ok((to, message.formatted()))
    }

    /// Builds the TLS settings, with the same trusted certificates as HTTP.
    fn tls(&self) -> Result<TlsParameters, Failure> {
        let pem = &self.client.authorities().pem;
        let mut tls = TlsParameters::builder(self.host.clone());
        if !pem.is_empty() {
            let authorities = Certificate::from_pem(pem).map_err(|error| self.failed(&error))?;
            tls = tls.add_root_certificate(authorities);
        }
        tls.build_rustls().map_err(|error| self.failed(&error))
    }

    /// Connects, encrypts and signs in.
    async fn connect(&self) -> Result<AsyncSmtpConnection, Failure> {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((&*self.host, self.port))
            .await
            .map(Iterator::collect)
            .unwrap_or_default();
        if addresses.is_empty() {
            return Err(Failure::transient(format!(
                "cannot find the host {}",
                self.host
            )));
        }
        let is_local = addresses.iter().all(|address| address.ip().is_loopback());
        let name = ClientId::default();
        let implicit_tls = match self.encryption {
            Encryption::Tls => Some(self.tls()?),
            _ => None,
        };
        let mut connection = AsyncSmtpConnection::connect_tokio1(
            addresses.as_slice(),
            Some(CONNECT_TIMEOUT),
            &name,
            implicit_tls,
            None,
        )
        .await
        .map_err(|error| self.failed(&error))?;
        let needs_starttls = match self.encryption {
            Encryption::StartTls => true,
            Encryption::Auto => connection.can_starttls(),
            Encryption::Tls | Encryption::None => false,
        };
        if needs_starttls {
            if !connection.can_starttls() {
                connection.abort().await;
                return Err(Failure::permanent(format!(
                    "{} offers no encryption (STARTTLS)",
                    self.endpoint()
                )));
            }
            connection
                .starttls(self.tls()?, &name)
                .await
                .map_err(|error| self.failed(&error))?;
        }
        if let Some((name, password)) = &self.credentials {
            if !connection.is_encrypted() && !is_local {
                connection.abort().await;
                return Err(Failure::permanent(format!(
                    "the password would go to {} without encryption",
                    self.endpoint()
                )));
            }
            let credentials = Credentials::new(name.clone(), password.expose().to_owned());
            connection
                .auth(DEFAULT_MECHANISMS, &credentials)
                .await
                .map_err(|error| self.failed(&error))?;
        }
        Ok(connection)
    }

    /// Sends every command before the content itself. Until then nothing can have been delivered.
    async fn announce(
        &self,
        connection: &mut AsyncSmtpConnection,
        to: &Mailbox,
    ) -> Result<(), Failure> {
        let mut parameters = Vec::new();
        let server = connection.server_info();
        let is_ascii = to.email.to_string().is_ascii() && self.from.email.to_string().is_ascii();
        if !is_ascii {
            if !server.supports_feature(Extension::SmtpUtfEight) {
                return Err(Failure::permanent(format!(
                    "{} accepts only ASCII addresses",
                    self.endpoint()
                )));
            }
            parameters.push(MailParameter::SmtpUtfEight);
            // Headers are UTF-8 as well in this case.
            parameters.push(MailParameter::Body(MailBodyParameter::EightBitMime));
        }
        let from = Some(self.from.email.clone());
        let failed = |error: SmtpError| self.failed(&error);
        let from = MailFrom::new(from, parameters);
        connection.command(from).await.map_err(failed)?;
        let to = Rcpt::new(to.email.clone(), Vec::new());
        connection.command(to).await.map_err(failed)?;
        connection.command(Data).await.map_err(failed)?;
        Ok(())
    }

    fn endpoint(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn failed(&self, error: &SmtpError) -> Failure {
        let endpoint = self.endpoint();
        if let Some(code) = error.status() {
            let explanation = error.source().map(ToString::to_string).unwrap_or_default();
            let explanation = self.redactor.text(&explanation);
            let mut reason = format!("{endpoint} answered {code}");
            if code.to_string() == "535" {
                reason.push_str(": the user name or password was refused");
            } else if !explanation.is_empty() {
                reason.push_str(&format!(": {explanation}"));
            }
            return if error.is_transient() {
                Failure::transient(reason)
            } else {
                Failure::permanent(reason)
            };
        }
        let cause = deepest(error);
        let system = system_error(error);
        if error.is_tls() || system.and_then(tls_error).is_some() {
            return Failure::permanent(format!("no secure connection to {endpoint}: {cause}"));
        }
        if error.is_client() || error.is_response() {
            return Failure::permanent(format!("{endpoint}: {}", self.redactor.text(&cause)));
        }
        let refused = system.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        Failure::transient(if refused {
            format!("connection refused by {endpoint}")
        } else if error.is_timeout() {
            format!(
                "cannot connect to {endpoint}: timed out after {}",
                format_seconds(CONNECT_TIMEOUT)
            )
        } else {
            format!("the connection to {endpoint} broke: {cause}")
        })
    }
}

#[async_trait]
impl Transport for EmailTransport {
    fn host(&self) -> Option<String> {
        Some(self.host.clone())
    }

    fn max_length(&self) -> Option<usize> {
        None
    }

    fn check(&self, chat: &str) -> Result<(), String> {
        recipient(chat).map(drop)
    }

    async fn attempt(&self, part: Part<'_>, time: TimeLimit) -> Result<(), Failure> {
        let (to, bytes) = self.message(part).map_err(Failure::permanent)?;
        let deadline = Instant::now() + time.left;
        let timed_out = || format!("timed out after {}", format_seconds(time.total));
        let before = async {
            let mut connection = self.connect().await?;
            match self.announce(&mut connection, &to).await {
                Ok(()) => Ok(connection),
                Err(failure) => {
                    connection.abort().await;
                    Err(failure)
                }
            }
        };
        let mut connection = timeout_at(deadline, before)
            .await
            .map_err(|_| Failure::permanent(timed_out()))??;
        match timeout_at(deadline, connection.message(&bytes)).await {
            Err(_) => return Err(Failure::uncertain(timed_out())),
            Ok(Err(error)) => {
                let failure = self.failed(&error);
                // Without a reply it is unknown whether the server received the last line.
                let answered = error.status().is_some();
                return Err(if answered {
                    failure
                } else {
                    Failure::uncertain(failure.reason)
                });
            }
            Ok(Ok(_)) => {}
        }
        // Delivered: an error while closing the connection does not matter.
        let _ = timeout_at(deadline, connection.quit()).await;
        Ok(())
    }
}

/// Parses the recipient. Only one address: a list would reach more people than were approved.
fn recipient(chat: &str) -> Result<Mailbox, String> {
    chat.trim()
        .parse()
        .map_err(|_| format!("{chat:?} is not an e-mail address"))
}

/// Returns the first non-empty line, truncated, as the subject.
fn subject(text: &str) -> String {
    let line = text
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or_default();
    let line: String = line
        .chars()
        .filter(|c| !c.is_control() && !is_deceptive(*c))
        .collect();
    if line.chars().count() <= MAX_SUBJECT {
        return line;
    }
    let mut short: String = line.chars().take(MAX_SUBJECT - 1).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// Returns the innermost cause, which contains no credentials.
fn deepest(error: &SmtpError) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    let text = cause.to_string();
    text.split(" (os error")
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn system_error(error: &SmtpError) -> Option<&io::Error> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(error) = cause.downcast_ref() {
            return Some(error);
        }
        source = cause.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{MAX_SUBJECT, recipient, subject};

    #[test]
    fn the_subject_is_the_first_line() {
        assert_eq!(subject("\n  Done \nmore"), "Done");
        assert_eq!(subject("a\u{202e}b\u{7}"), "ab");
        let long = subject(&"wörd ".repeat(50));
        assert!(
            long.chars().count() <= MAX_SUBJECT && long.ends_with("d…"),
            "{long}"
        );
    }

    #[test]
    fn a_recipient_is_exactly_one_address() {
        for good in ["a@example.org", "Ann <a@example.org>", "a+b@example.org"] {
            assert!(recipient(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "ann",
            "a@",
            "@b",
            "a@b\r\nBcc: c@d",
            "a@example.org, b@example.org",
            "a b@c",
        ] {
            assert!(recipient(bad).is_err(), "{bad:?}");
        }
    }
}

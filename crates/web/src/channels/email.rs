//! Mail over SMTP. The protocol is lettre's; the steps are ours, so that it is
//! known after which of them a message may be out.

use super::carrier::{Carrier, Failure, Part, Time};
use super::scrub::Scrub;
use super::setting::{Email, Encryption};
use crate::Secret;
use crate::client::{CONNECT_TIMEOUT, Client, tls_error, words};
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

/// How long a subject may be: one line of a mail.
const MOST_SUBJECT: usize = 70;

pub(super) struct Mail {
    host: String,
    port: u16,
    from: Mailbox,
    sign_in: Option<(String, Secret)>,
    encryption: Encryption,
    client: Client,
    scrub: Scrub,
}

impl Mail {
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
        let sign_in = match (username.filter(|name| !name.is_empty()), password) {
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
        // Servers have been seen to repeat what was sent to them.
        let secrets = sign_in.iter().flat_map(|(name, password)| {
            let password = password.expose();
            [
                password.to_owned(),
                BASE64.encode(password),
                BASE64.encode(format!("\0{name}\0{password}")),
            ]
        });
        Ok(Self {
            scrub: Scrub::new(secrets),
            client: client.clone(),
            host,
            port,
            from,
            sign_in,
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
            .map_err(|error| self.scrub.text(&error.to_string()))?;
        Ok((to, message.formatted()))
    }

    /// What a secure connection is held to: the same as with HTTP.
    fn tls(&self) -> Result<TlsParameters, Failure> {
        let pem = &self.client.authorities().pem;
        let mut tls = TlsParameters::builder(self.host.clone());
        if !pem.is_empty() {
            let authorities = Certificate::from_pem(pem).map_err(|error| self.failed(&error))?;
            tls = tls.add_root_certificate(authorities);
        }
        tls.build_rustls().map_err(|error| self.failed(&error))
    }

    /// A connection that may carry what is to be sent, signed in.
    async fn connect(&self) -> Result<AsyncSmtpConnection, Failure> {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((&*self.host, self.port))
            .await
            .map(Iterator::collect)
            .unwrap_or_default();
        if addresses.is_empty() {
            return Err(Failure::passing(format!(
                "cannot find the host {}",
                self.host
            )));
        }
        let is_here = addresses.iter().all(|address| address.ip().is_loopback());
        let name = ClientId::default();
        let at_once = match self.encryption {
            Encryption::Tls => Some(self.tls()?),
            _ => None,
        };
        let mut connection = AsyncSmtpConnection::connect_tokio1(
            addresses.as_slice(),
            Some(CONNECT_TIMEOUT),
            &name,
            at_once,
            None,
        )
        .await
        .map_err(|error| self.failed(&error))?;
        let wants = match self.encryption {
            Encryption::StartTls => true,
            Encryption::Auto => connection.can_starttls(),
            Encryption::Tls | Encryption::None => false,
        };
        if wants {
            if !connection.can_starttls() {
                connection.abort().await;
                return Err(Failure::lasting(format!(
                    "{} offers no encryption (STARTTLS)",
                    self.reach()
                )));
            }
            connection
                .starttls(self.tls()?, &name)
                .await
                .map_err(|error| self.failed(&error))?;
        }
        if let Some((name, password)) = &self.sign_in {
            if !connection.is_encrypted() && !is_here {
                connection.abort().await;
                return Err(Failure::lasting(format!(
                    "the password would go to {} without encryption",
                    self.reach()
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

    /// All that comes before the text itself: until then nothing is out.
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
                return Err(Failure::lasting(format!(
                    "{} takes only addresses in ASCII",
                    self.reach()
                )));
            }
            parameters.push(MailParameter::SmtpUtfEight);
            // Then headers are in UTF-8 as well.
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

    fn reach(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn failed(&self, error: &SmtpError) -> Failure {
        let reach = self.reach();
        if let Some(code) = error.status() {
            let said = error.source().map(ToString::to_string).unwrap_or_default();
            let said = self.scrub.text(&said);
            let mut reason = format!("{reach} answered {code}");
            if code.to_string() == "535" {
                reason.push_str(": the user name or password was refused");
            } else if !said.is_empty() {
                reason.push_str(&format!(": {said}"));
            }
            return if error.is_transient() {
                Failure::passing(reason)
            } else {
                Failure::lasting(reason)
            };
        }
        let cause = deepest(error);
        let system = system_error(error);
        if error.is_tls() || system.and_then(tls_error).is_some() {
            return Failure::lasting(format!("no secure connection to {reach}: {cause}"));
        }
        if error.is_client() || error.is_response() {
            return Failure::lasting(format!("{reach}: {}", self.scrub.text(&cause)));
        }
        let refused = system.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
        Failure::passing(if refused {
            format!("connection refused by {reach}")
        } else if error.is_timeout() {
            format!(
                "cannot connect to {reach}: timed out after {}",
                words(CONNECT_TIMEOUT)
            )
        } else {
            format!("the connection to {reach} broke: {cause}")
        })
    }
}

#[async_trait]
impl Carrier for Mail {
    fn host(&self) -> Option<String> {
        Some(self.host.clone())
    }

    fn most(&self) -> Option<usize> {
        None
    }

    fn check(&self, chat: &str) -> Result<(), String> {
        recipient(chat).map(drop)
    }

    async fn attempt(&self, part: Part<'_>, time: Time) -> Result<(), Failure> {
        let (to, bytes) = self.message(part).map_err(Failure::lasting)?;
        let deadline = Instant::now() + time.left;
        let late = || format!("timed out after {}", words(time.whole));
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
            .map_err(|_| Failure::lasting(late()))??;
        match timeout_at(deadline, connection.message(&bytes)).await {
            Err(_) => return Err(Failure::uncertain(late())),
            Ok(Err(error)) => {
                let failure = self.failed(&error);
                // Without an answer nobody knows whether the last line came.
                let answered = error.status().is_some();
                return Err(if answered {
                    failure
                } else {
                    Failure::uncertain(failure.reason)
                });
            }
            Ok(Ok(_)) => {}
        }
        // It is out; a goodbye that fails changes nothing.
        let _ = timeout_at(deadline, connection.quit()).await;
        Ok(())
    }
}

/// Who gets it. One address: a list would be more than what was approved.
fn recipient(chat: &str) -> Result<Mailbox, String> {
    chat.trim()
        .parse()
        .map_err(|_| format!("{chat:?} is not an e-mail address"))
}

/// A subject: the first line that says something, or its beginning.
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
    if line.chars().count() <= MOST_SUBJECT {
        return line;
    }
    let mut short: String = line.chars().take(MOST_SUBJECT - 1).collect();
    short.truncate(short.trim_end().len());
    short.push('…');
    short
}

/// The cause of causes, which knows nothing of who signed in.
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
    use super::{MOST_SUBJECT, recipient, subject};

    #[test]
    fn the_subject_is_the_first_line() {
        assert_eq!(subject("\n  Done \nmore"), "Done");
        assert_eq!(subject("a\u{202e}b\u{7}"), "ab");
        let long = subject(&"wörd ".repeat(50));
        assert!(
            long.chars().count() <= MOST_SUBJECT && long.ends_with("d…"),
            "{long}"
        );
    }

    #[test]
    fn one_address_and_nothing_else() {
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

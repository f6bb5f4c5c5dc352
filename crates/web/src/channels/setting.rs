//! What a configuration says of a channel.

use super::carrier::Carrier;
use super::console::{Console, Sink};
use super::discord::Discord;
use super::email::Mail;
use super::http::Online;
use super::slack::Slack;
use super::telegram::Telegram;
use super::webhook::Webhook;
use crate::Secret;
use crate::client::{Client, Url};

/// One channel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Channel {
    /// A bot of Telegram. A chat is the id of a chat, or `@name`.
    Telegram {
        /// The bot's token.
        token: Secret,
        /// Where the service is, if not at its own address.
        base_url: Option<String>,
    },
    /// An app of Slack. A chat is the id of a channel or a person.
    Slack {
        /// The app's token.
        token: Secret,
        /// Where the service is, if not at its own address.
        base_url: Option<String>,
    },
    /// A bot of Discord. A chat is the id of a channel.
    Discord {
        /// The bot's token.
        token: Secret,
        /// Where the service is, if not at its own address.
        base_url: Option<String>,
    },
    /// An address that takes `{"channel", "chat_id", "content"}`.
    Webhook {
        /// The address, which is as good as a password.
        url: Secret,
        /// What is sent along as a bearer token.
        token: Option<Secret>,
    },
    /// A mail server. A chat is the address of who gets it.
    Email(Email),
    /// The person's terminal.
    Console,
}

/// A mail server and who writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    /// Its name.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Who signs in, if anybody has to.
    pub username: Option<String>,
    /// With which password.
    pub password: Option<Secret>,
    /// The address of who writes: `haft@example.org`, `Haft <haft@example.org>`.
    pub from: String,
    /// How the connection is protected.
    pub encryption: Encryption,
}

/// How a connection to a mail server is protected. Whatever it is, a password
/// goes over a connection without protection to this very machine only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// As is usual for the port: 465 from the beginning, 587 after a command,
    /// others if the server offers it.
    Auto,
    /// From the beginning.
    Tls,
    /// After a command, without which nothing is sent.
    StartTls,
    /// Not at all.
    None,
}

impl Encryption {
    /// By the name a configuration has for it.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "tls" => Self::Tls,
            "starttls" => Self::StartTls,
            "none" => Self::None,
            _ => return None,
        })
    }
}

impl Channel {
    /// The kinds there are, as a configuration names them.
    pub const KINDS: [&'static str; 6] = [
        "telegram", "slack", "discord", "webhook", "email", "console",
    ];

    pub(super) fn carrier(
        self,
        client: &Client,
        console: &Sink,
    ) -> Result<Box<dyn Carrier>, String> {
        Ok(match self {
            Self::Telegram { token, base_url } => {
                let token = checked(token, "token")?;
                let base = base(base_url, "https://api.telegram.org")?;
                Box::new(Online::new(client, Telegram { token, base }))
            }
            Self::Slack { token, base_url } => {
                let token = checked(token, "token")?;
                let base = base(base_url, "https://slack.com")?;
                Box::new(Online::new(client, Slack { token, base }))
            }
            Self::Discord { token, base_url } => {
                let token = checked(token, "token")?;
                let base = base(base_url, "https://discord.com")?;
                Box::new(Online::new(client, Discord { token, base }))
            }
            Self::Webhook { url, token } => {
                let url = address(url.expose())
                    .ok_or("url is not an http or https address without a user name")?;
                let token = token.map(|token| checked(token, "token")).transpose()?;
                Box::new(Online::new(client, Webhook { url, token }))
            }
            Self::Email(email) => Box::new(Mail::new(email, client)?),
            Self::Console => Box::new(Console(console.clone())),
        })
    }
}

/// A secret that can be sent at all.
fn checked(secret: Secret, name: &str) -> Result<Secret, String> {
    if secret.expose().is_empty() {
        return Err(format!("{name} is empty"));
    }
    // A header holds no others, and no token has them.
    if !secret.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("{name} has a character in it that no token has"));
    }
    Ok(secret)
}

fn base(given: Option<String>, usual: &str) -> Result<Url, String> {
    given
        .as_deref()
        .map_or_else(|| address(usual), address)
        .filter(|url| url.query().is_none() && url.fragment().is_none())
        .ok_or_else(|| "base_url is not an http or https address without a user name".to_owned())
}

fn address(given: &str) -> Option<Url> {
    let url = Url::parse(given.trim()).ok()?;
    let fits = matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some_and(|host| !host.is_empty())
        && url.username().is_empty()
        && url.password().is_none();
    fits.then_some(url)
}

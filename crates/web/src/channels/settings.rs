//! Settings of a channel.

use super::console::{Console, Sink};
use super::discord::Discord;
use super::email::EmailTransport;
use super::http::HttpTransport;
use super::slack::Slack;
use super::telegram::Telegram;
use super::transport::Transport;
use super::webhook::Webhook;
use crate::Secret;
use crate::client::{Client, Url};

/// One configured channel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Channel {
    /// A Telegram bot. The recipient is a chat id or `@name`.
    Telegram {
        /// Token of the bot or app.
        token: Secret,
        /// Address to use instead of the service's own.
        base_url: Option<String>,
    },
    /// A Slack app. The recipient is the id of a channel or user.
    Slack {
        /// Token of the bot or app.
        token: Secret,
        /// Address to use instead of the service's own.
        base_url: Option<String>,
    },
    /// A Discord bot. The recipient is the id of a channel.
    Discord {
        /// Token of the bot or app.
        token: Secret,
        /// Address to use instead of the service's own.
        base_url: Option<String>,
    },
    /// A URL that accepts `{"channel", "chat_id", "content"}`.
    Webhook {
        /// The URL is secret because it may grant access by itself.
        url: Secret,
        /// Sent as a bearer token.
        token: Option<Secret>,
    },
    /// A mail server. The recipient is an e-mail address.
    Email(Email),
    /// The user's terminal.
    Console,
}

/// A mail server and the sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Email {
    /// Host name of the server.
    pub host: String,
    /// Port of the server; see [`Encryption::Auto`].
    pub port: u16,
    /// User name, if the server requires signing in.
    pub username: Option<String>,
    /// Password; required with a user name.
    pub password: Option<Secret>,
    /// Sender: `haft@example.org` or `Haft <haft@example.org>`.
    pub from: String,
    /// Encryption of the connection.
    pub encryption: Encryption,
}

/// Encryption of the connection to a mail server. Without encryption, a password is sent only
/// to this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encryption {
    /// By the port: `Tls` on 465, `StartTls` on 587, otherwise STARTTLS if the server offers it.
    Auto,
    /// Encrypted from the first byte.
    Tls,
    /// Upgraded with STARTTLS; fails if the server does not offer it.
    StartTls,
    /// No encryption, even if the server offers it.
    None,
}

impl Encryption {
    /// Looks up the name used in the configuration.
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
    /// Names of the kinds in the configuration.
    pub const KINDS: [&'static str; 6] = [
        "telegram", "slack", "discord", "webhook", "email", "console",
    ];

    pub(super) fn transport(
        self,
        client: &Client,
        console: &Sink,
    ) -> Result<Box<dyn Transport>, String> {
        Ok(match self {
            Self::Telegram { token, base_url } => {
                let token = checked(token, "token")?;
                let base = base(base_url, "https://api.telegram.org")?;
                Box::new(HttpTransport::new(client, Telegram { token, base }))
            }
            Self::Slack { token, base_url } => {
                let token = checked(token, "token")?;
                let base = base(base_url, "https://slack.com")?;
                Box::new(HttpTransport::new(client, Slack { token, base }))
            }
            Self::Discord { token, base_url } => {
                let token = checked(token, "token")?;
                let base = base(base_url, "https://discord.com")?;
                Box::new(HttpTransport::new(client, Discord { token, base }))
            }
            Self::Webhook { url, token } => {
                let url = address(url.expose())
                    .ok_or("url must be an http or https URL without a user name")?;
                let token = token.map(|token| checked(token, "token")).transpose()?;
                Box::new(HttpTransport::new(client, Webhook { url, token }))
            }
            Self::Email(email) => Box::new(EmailTransport::new(email, client)?),
            Self::Console => Box::new(Console(console.clone())),
        })
    }
}

/// Checks that a secret can be sent in a header.
fn checked(secret: Secret, name: &str) -> Result<Secret, String> {
    if secret.expose().is_empty() {
        return Err(format!("{name} is empty"));
    }
    // Headers allow only these characters, and tokens contain no others.
    if !secret.expose().bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "{name} contains a character that is not allowed in a token"
        ));
    }
    Ok(secret)
}

fn base(text: Option<String>, default: &str) -> Result<Url, String> {
    text.as_deref()
        .map_or_else(|| address(default), address)
        .filter(|url| url.query().is_none() && url.fragment().is_none())
        .ok_or_else(|| "base_url must be an http or https URL without a user name".to_owned())
}

fn address(text: &str) -> Option<Url> {
    let url = Url::parse(text.trim()).ok()?;
    let fits = matches!(url.scheme(), "http" | "https")
        && url.host_str().is_some_and(|host| !host.is_empty())
        && url.username().is_empty()
        && url.password().is_none();
    fits.then_some(url)
}

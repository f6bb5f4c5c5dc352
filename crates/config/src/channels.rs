//! Channels for messages. They contain keys and send data off this machine, so only the
//! user can configure them; a project may only add a console.

use super::Notes;
use super::setting::{Filled, Names, OneOf};
use super::sources::{Given, Sources};
use crate::failure::Failure;
use haft_web::Secret;
use haft_web::channels::{Channel, Email, Encryption};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Default port for submitting mail.
const SUBMISSION_PORT: u16 = 587;

/// Destination of messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub(crate) enum ChannelEntry {
    /// A Telegram bot.
    Telegram(Service),
    /// A Slack app.
    Slack(Service),
    /// A Discord bot.
    Discord(Service),
    /// A URL that accepts messages.
    Webhook {
        /// Address that receives the messages.
        url: Option<Filled>,
        /// Another name of `url`.
        base_url: Option<Filled>,
        /// Sent as a bearer token.
        token: Option<Filled>,
    },
    /// A mail server.
    Email(EmailEntry),
    /// The user's terminal.
    Console,
}

/// Access to a service.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Service {
    /// Token of the bot or app.
    token: Filled,
    /// Address to use instead of the service's own.
    base_url: Option<Filled>,
}

/// A mail server and the sender.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmailEntry {
    /// Host name of the server.
    host: Filled,
    /// Port of the server.
    port: Option<Filled>,
    /// User name, if the server requires signing in.
    username: Option<Filled>,
    /// Password; required with a user name.
    password: Option<Filled>,
    /// Sender, such as `Haft <haft@example.org>`.
    from: Filled,
    /// Encryption; by default it depends on the port.
    tls: Option<OneOf<Encryptions>>,
    /// Accepted as in other channels, without effect.
    #[serde(rename = "base_url")]
    #[schemars(skip)]
    _base_url: Option<Filled>,
}

#[derive(Debug)]
enum Encryptions {}

impl Names for Encryptions {
    const NAMES: &'static [&'static str] = &["auto", "tls", "starttls", "none"];
}

/// Reads the channels.
pub(crate) fn load(
    sources: &Sources,
    notes: &mut Notes,
) -> Result<BTreeMap<String, Channel>, Failure> {
    let mut channels = BTreeMap::new();
    let mut from = Vec::new();
    let mut all = sources.all(|file| &file.tools.channels)?;
    // The user's channels come first, so a project cannot replace one.
    all.sort_by_key(|(_, channel)| channel.is_project());
    for entry in all {
        let name = entry.0;
        if channels.contains_key(name) {
            continue;
        }
        // A broken channel does not stop users who do not need it.
        let Some(given) = notes.skip_unset(entry, "channel") else {
            continue;
        };
        let (origin, is_project) = (given.from.clone(), given.is_project());
        let channel = channel(given)?;
        if is_project && !matches!(channel, Channel::Console) {
            notes.warn(format!(
                "{origin}: tools.channels.{name} is ignored: only your own haft.yaml or --config can set it"
            ));
            continue;
        }
        from.push(origin);
        channels.insert(name.to_owned(), channel);
    }
    let names: Vec<&str> = channels.keys().map(String::as_str).collect();
    notes.show_names("tools.channels", names, &from);
    Ok(channels)
}

fn channel(given: Given<'_, ChannelEntry>) -> Result<Channel, Failure> {
    let no_url = given.wrong("url is missing");
    let wrong_port = given.wrong("port must be a number from 1 to 65535");
    let secret = |text: Filled| Secret::new(text.0);
    let text = |text: Option<Filled>| text.map(|text| text.0);
    Ok(match given.value {
        ChannelEntry::Telegram(Service { token, base_url }) => Channel::Telegram {
            token: secret(token),
            base_url: text(base_url),
        },
        ChannelEntry::Slack(Service { token, base_url }) => Channel::Slack {
            token: secret(token),
            base_url: text(base_url),
        },
        ChannelEntry::Discord(Service { token, base_url }) => Channel::Discord {
            token: secret(token),
            base_url: text(base_url),
        },
        ChannelEntry::Webhook {
            url,
            base_url,
            token,
        } => Channel::Webhook {
            url: secret(url.or(base_url).ok_or(no_url)?),
            token: token.map(secret),
        },
        ChannelEntry::Email(email) => Channel::Email(Email {
            host: email.host.0,
            port: match email.port {
                None => SUBMISSION_PORT,
                Some(port) => port
                    .0
                    .parse()
                    .ok()
                    .filter(|port| *port > 0)
                    .ok_or(wrong_port)?,
            },
            username: text(email.username),
            password: email.password.map(secret),
            from: email.from.0,
            encryption: email
                .tls
                .and_then(|name| Encryption::by_name(&name.0))
                .unwrap_or(Encryption::Auto),
        }),
        ChannelEntry::Console => Channel::Console,
    })
}

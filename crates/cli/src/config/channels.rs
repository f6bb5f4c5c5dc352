//! Channels for messages. They contain keys and send data off this machine, so only the
//! user can configure them; a project may only add a console.

use super::redact;
use super::sources::{Listed, Origin, Sources};
use super::{Shown, joined};
use crate::exit::Failure;
use haft::ops::text::spelling::closest;
use haft_web::Secret;
use haft_web::channels::{Channel, Email, Encryption};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Default port for submitting mail.
const SUBMISSION_PORT: u64 = 587;

/// Reads the channels.
pub(crate) fn load(
    sources: &Sources<'_>,
    warnings: &mut Vec<String>,
    shown: &mut Vec<Shown>,
) -> Result<BTreeMap<String, Channel>, Failure> {
    let mut channels = BTreeMap::new();
    let mut from = Vec::new();
    let mut all = sources.entries("tools.channels");
    // The user's channels come first, so a project cannot replace one.
    all.sort_by_key(|channel| channel.is_project);
    for Listed {
        name,
        is_project,
        from: origin,
        value,
        written,
    } in all
    {
        if channels.contains_key(&name) {
            continue;
        }
        let value = match value {
            Ok(value) => value,
            // A broken channel does not stop users who do not need it.
            Err(failure) => {
                warnings.push(format!("{}: skipped this channel", failure.message));
                continue;
            }
        };
        let reader = Reader {
            from: &origin,
            name: &name,
            written: &written,
        };
        let channel = reader.channel(&value)?;
        if is_project && !matches!(channel, Channel::Console) {
            warnings.push(format!(
                "{origin}: tools.channels.{name} is ignored: only your own haft.yaml or --config can set it"
            ));
            continue;
        }
        from.push(origin);
        channels.insert(name, channel);
    }
    let names: Vec<&str> = channels.keys().map(String::as_str).collect();
    if !names.is_empty() {
        shown.push(Shown {
            key: "tools.channels",
            value: names.into(),
            from: joined(&from),
        });
    }
    Ok(channels)
}

struct Reader<'a> {
    from: &'a Origin,
    name: &'a str,
    written: &'a Value,
}

impl Reader<'_> {
    /// Creates an error. It never contains values, which may be keys.
    fn wrong(&self, what: &str) -> Failure {
        Failure::usage(format!(
            "{}: tools.channels.{}: {what}",
            self.from, self.name
        ))
    }

    fn channel(&self, value: &Value) -> Result<Channel, Failure> {
        let Value::Object(map) = value else {
            return Err(self.wrong("a channel must be a map with a kind"));
        };
        let kind = self.text(map, "kind")?.ok_or_else(|| {
            self.wrong(&format!(
                "kind is missing; valid kinds: {}",
                Channel::KINDS.join(", ")
            ))
        })?;
        let service = ["kind", "token", "base_url"];
        let base_url = || self.text(map, "base_url");
        match kind.as_str() {
            "telegram" => {
                self.only(map, &service)?;
                let (token, base_url) = (self.secret(map, "token")?, base_url()?);
                Ok(Channel::Telegram { token, base_url })
            }
            "slack" => {
                self.only(map, &service)?;
                let (token, base_url) = (self.secret(map, "token")?, base_url()?);
                Ok(Channel::Slack { token, base_url })
            }
            "discord" => {
                self.only(map, &service)?;
                let (token, base_url) = (self.secret(map, "token")?, base_url()?);
                Ok(Channel::Discord { token, base_url })
            }
            "webhook" => {
                self.only(map, &["kind", "url", "base_url", "token"])?;
                let url = match base_url()? {
                    Some(url) if !map.contains_key("url") => Secret::new(url),
                    _ => self.secret(map, "url")?,
                };
                let token = self.text(map, "token")?.map(Secret::new);
                Ok(Channel::Webhook { url, token })
            }
            "email" => self.email(map),
            "console" => self.only(map, &["kind"]).map(|()| Channel::Console),
            other => {
                let known = Channel::KINDS.iter().map(|kind| (*kind).to_owned());
                let near = closest(other, known, 1);
                let is_plain = self.written["kind"] == other;
                let suggestion = near
                    .first()
                    .filter(|_| is_plain)
                    .map(|near| format!("; did you mean \"{near}\"?"));
                Err(self.wrong(&format!(
                    "unknown kind \"{}\"{}",
                    // A variable may hold a secret.
                    redact::text("kind", self.written["kind"].as_str().unwrap_or_default()),
                    suggestion.unwrap_or_default()
                )))
            }
        }
    }

    fn email(&self, map: &Map<String, Value>) -> Result<Channel, Failure> {
        self.only(
            map,
            &[
                "kind", "host", "port", "username", "password", "from", "tls", "base_url",
            ],
        )?;
        let needed = |key: &str| {
            self.text(map, key)?
                .ok_or_else(|| self.wrong(&format!("{key} is missing")))
        };
        let port = match map.get("port") {
            None => Some(SUBMISSION_PORT),
            Some(Value::Number(port)) => port.as_u64(),
            Some(Value::String(port)) => port.trim().parse().ok(),
            Some(_) => None,
        };
        let port = port
            .and_then(|port| u16::try_from(port).ok())
            .filter(|port| *port > 0)
            .ok_or_else(|| self.wrong("port must be a number from 1 to 65535"))?;
        let encryption = match self.text(map, "tls")? {
            None => Encryption::Auto,
            Some(name) => Encryption::by_name(&name)
                .ok_or_else(|| self.wrong("tls must be auto, tls, starttls or none"))?,
        };
        Ok(Channel::Email(Email {
            host: needed("host")?,
            port,
            username: self.text(map, "username")?,
            password: self.text(map, "password")?.map(Secret::new),
            from: needed("from")?,
            encryption,
        }))
    }

    fn only(&self, map: &Map<String, Value>, known: &[&str]) -> Result<(), Failure> {
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            None => Ok(()),
            Some(other) => Err(self.wrong(&format!(
                "unknown key \"{other}\"; known keys: {}",
                known.join(", ")
            ))),
        }
    }

    fn text(&self, map: &Map<String, Value>, key: &str) -> Result<Option<String>, Failure> {
        match map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if !text.trim().is_empty() => {
                Ok(Some(text.trim().to_owned()))
            }
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(_) => Err(self.wrong(&format!("{key} must be text"))),
        }
    }

    fn secret(&self, map: &Map<String, Value>, key: &str) -> Result<Secret, Failure> {
        let text = self.text(map, key)?;
        text.map(Secret::new)
            .ok_or_else(|| self.wrong(&format!("{key} is missing")))
    }
}

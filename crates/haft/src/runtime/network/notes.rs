//! What the model is told about refused connections.

use crate::DecidedBy;
use crate::policy::{self, ConnectionJudgement};
use haft_ops::exec::network::Pass;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of hosts that are named. All of them are counted.
const MAX_NAMED: usize = 10;

/// Maximum number of refusals and passes that are remembered.
const MAX_KEPT: usize = 256;

/// A refused host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RefusedHost {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) why: Why,
}

/// The reason for a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Why {
    /// Nothing opens it.
    Closed,
    /// It is a port of this machine.
    ThisMachine,
    /// A rule denies it.
    Rule(String),
    /// A rule asks, and no user can answer now.
    Nobody(String),
    /// `--approve never`.
    Never,
    /// The user said no, with this reason.
    User(Option<String>),
    /// It has a private address.
    Private(String),
    /// The command named another host in the connection.
    OtherName(String),
    /// The call has asked the user too often.
    TooMany,
    /// The user can answer later.
    Later,
}

impl Why {
    pub(super) fn of(judged: &ConnectionJudgement) -> Self {
        match &judged.by {
            DecidedBy::Session(_) if judged.is_loopback => Self::ThisMachine,
            DecidedBy::Default | DecidedBy::Session(_) => Self::Closed,
            by => Self::Rule(by.to_string()),
        }
    }
}

impl RefusedHost {
    /// Returns a sentence in brackets.
    fn note(&self, whose: &str) -> String {
        let Self { host, port, why } = self;
        let to = policy::host_and_port(host, *port);
        let rule = match host.contains(':') {
            true => format!("{{ allow: network, host: \"{host}\" }}"),
            false => format!("{{ allow: network, host: {host} }}"),
        };
        // The user may paste it into a shell, so it must mean only this.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        let is_name = !host.starts_with('-') && host.chars().all(is_plain);
        let (remedy, approved) = match is_name {
            true => (
                format!(
                    "the user can allow it with --network {host}, or with the rule {rule} in their own settings"
                ),
                // A host in the list does not override a rule that asks.
                format!(
                    "the user can allow it with --approve auto, or with the rule {rule} at the top of `policy` in their own settings"
                ),
            ),
            false => {
                let odd = "this is not a usual host name".to_owned();
                (odd.clone(), odd)
            }
        };
        let refused = format!("the sandbox refused connections{whose} to {to}");
        let text = match why {
            Why::Closed => format!("{refused}; {remedy}"),
            Why::ThisMachine => format!(
                "{refused}; the user can make that port of this machine appear on the session's own loopback with --network localhost:{port}"
            ),
            Why::Rule(rule) => format!("{refused}: denied by {rule}"),
            Why::Nobody(rule) => {
                format!(
                    "{refused}: {rule} asks about it, and no user can be asked here; {approved}"
                )
            }
            Why::Never => format!(
                "{refused}: a rule asks about it, and --approve never rejects such connections; the rule {rule} at the top of `policy` in the user's own settings would allow it"
            ),
            Why::User(None) => format!("the user refused connections{whose} to {to}"),
            Why::User(Some(reason)) => {
                format!("the user refused connections{whose} to {to}: {reason}")
            }
            Why::Private(what) => format!("{refused}: {what}; {remedy}"),
            Why::OtherName(what) => format!("{refused}: {what}"),
            Why::TooMany => format!(
                "{refused}: this call has asked the user about too many hosts already; {remedy}"
            ),
            Why::Later => format!("{refused} until the user answers"),
        };
        let text: String = text.chars().flat_map(escaped).collect();
        format!("[{text}]")
    }
}

fn escaped(c: char) -> Vec<char> {
    match c.is_control() {
        true => c.escape_default().collect(),
        false => vec![c],
    }
}

/// Refused hosts, each once.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    hosts: Vec<RefusedHost>,
    /// Number of further ones.
    more: usize,
}

impl Refusals {
    pub(super) fn add(&mut self, refused: RefusedHost) {
        let is_same = |one: &RefusedHost| one.host == refused.host && one.port == refused.port;
        match self.hosts.iter().any(is_same) {
            true => {}
            false if self.hosts.len() >= MAX_KEPT => self.more += 1,
            false => self.hosts.push(refused),
        }
    }

    /// Returns one sentence for each host; `whose` names the commands.
    pub(super) fn notes(&self, whose: &str) -> Vec<String> {
        let named = self.hosts.iter().take(MAX_NAMED);
        let mut notes: Vec<String> = named.map(|refused| refused.note(whose)).collect();
        let more = self.hosts.len().saturating_sub(MAX_NAMED) + self.more;
        if more > 0 {
            let hosts = if more == 1 { "host" } else { "hosts" };
            notes.push(format!("[and connections to {more} more {hosts}]"));
        }
        notes
    }

    pub(super) fn hosts(&self) -> Vec<String> {
        let named = self.hosts.iter().take(MAX_NAMED);
        named
            .map(|one| policy::host_and_port(&one.host, one.port))
            .collect()
    }
}

/// What is left of calls that have ended: refused connections of processes that they left
/// running, and the passes of those.
#[derive(Default)]
pub(crate) struct LateRefusals(Mutex<(Refusals, Vec<Pass>)>);

impl LateRefusals {
    fn lock(&self) -> MutexGuard<'_, (Refusals, Vec<Pass>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, refused: RefusedHost) {
        self.lock().0.add(refused);
    }

    /// Returns the refusals that no reply has named yet.
    pub(super) fn take(&self) -> Refusals {
        std::mem::take(&mut self.lock().0)
    }

    pub(super) fn keep(&self, pass: Pass) {
        let passes = &mut self.lock().1;
        if passes.len() >= MAX_KEPT {
            passes.remove(0);
        }
        passes.push(pass);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_means_something_to_a_shell_is_not_suggested() {
        for host in ["$(id)", "a;make", "-x", "a,b", "a b"] {
            let refused = RefusedHost {
                host: host.to_owned(),
                port: 443,
                why: Why::Closed,
            };
            let note = refused.note("");
            assert!(!note.contains("--network"), "{note}");
            assert!(note.contains("not a usual host name"), "{note}");
        }
    }

    #[test]
    fn each_host_is_named_once_and_the_list_is_bounded() {
        let mut refusals = Refusals::default();
        for number in 0..300 {
            for _ in 0..2 {
                refusals.add(RefusedHost {
                    host: format!("h{number}.example"),
                    port: 443,
                    why: Why::Closed,
                });
            }
        }
        let notes = refusals.notes("");
        assert_eq!(notes.len(), MAX_NAMED + 1);
        assert_eq!(
            notes[0],
            "[the sandbox refused connections to h0.example:443; the user can allow it with \
             --network h0.example, or with the rule { allow: network, host: h0.example } in \
             their own settings]"
        );
        // Of those beyond the limit, each attempt is counted.
        assert!(
            notes[10].starts_with("[and connections to "),
            "{}",
            notes[10]
        );
        assert_eq!(refusals.hosts().len(), MAX_NAMED);
    }
}

//! Which hosts commands may reach: the hosts under `network`, and rules about the tool name
//! `network`.
//!
//! Without either, a host is closed. Within a file the first rule that matches decides, and
//! over files the strictest. Only a rule about `network` in the user's own file can open a
//! host or ask about it; a project's rules, and rules about every tool, can only close hosts
//! that are open.

use super::judge::{DecidedBy, JudgedPart, Judgement, Subject};
use super::line::{self, CommandLine};
use super::network_host::{HostGroup, NetworkHost, is_loopback};
use super::rule::{Match, Rule, RuleDraft, RuleLocation, Verdict};
use super::suggest::Suggestion;
use super::{Policy, RuleFile, RuleOwner};
use crate::Effect;
use haft_ops::exec::network::HostVerdict;
use haft_ops::executor::Program;
use std::net::IpAddr;

/// Name that rules about connections of commands use for the tool.
pub const NETWORK: &str = "network";

/// Hosts that commands may reach without a rule.
#[derive(Debug, Clone, Default)]
pub struct NetworkAccess {
    /// The hosts.
    pub hosts: Vec<OpenHost>,
    /// Whether commands have the whole network, so that no connection is judged.
    pub is_whole: bool,
    /// Where this is configured: `haft.yaml:3`, `flag --network`, or `default`.
    pub from: String,
}

/// A host that commands may reach without a rule.
#[derive(Debug, Clone)]
pub struct OpenHost {
    /// The host.
    pub host: NetworkHost,
    /// Name of the group that it belongs to, if it was not named itself.
    pub group: Option<&'static str>,
}

impl NetworkAccess {
    /// Returns the hosts as the user wrote them, groups by name.
    #[must_use]
    pub fn entries(&self) -> Vec<String> {
        let mut entries: Vec<String> = self.hosts.iter().map(OpenHost::entry).collect();
        entries.dedup();
        entries
    }
}

impl OpenHost {
    /// Parses an entry: a host, or `@` and the name of a group.
    ///
    /// # Errors
    /// A sentence that names the nearest valid form.
    pub fn parse(entry: &str) -> Result<Vec<Self>, String> {
        let entry = entry.trim();
        if !entry.starts_with('@') {
            let group = format!("@{}", entry.to_ascii_lowercase());
            if HostGroup::by_name(&group).is_some() {
                return Err(format!(
                    "host \"{entry}\" is not a complete name; write \"{group}\" for the group of hosts"
                ));
            }
            let host = NetworkHost::parse(entry)?;
            return Ok(vec![Self { host, group: None }]);
        }
        let Some(group) = HostGroup::by_name(&entry.to_ascii_lowercase()) else {
            let names: Vec<&str> = super::HOST_GROUPS.iter().map(|group| group.name).collect();
            let entry = haft_ops::text::brief(entry, 100);
            let hint = haft_ops::text::spelling::hint(&entry, &names);
            let known = names.join(", ");
            return Err(format!(
                "unknown group of hosts \"{entry}\"{hint}; known groups: {known}"
            ));
        };
        let hosts = group.hosts.iter().map(|host| {
            let host = NetworkHost::parse(host)?;
            let group = Some(group.name);
            Ok(Self { host, group })
        });
        hosts.collect()
    }

    /// Returns what the user wrote.
    fn entry(&self) -> String {
        match self.group {
            Some(group) => group.to_owned(),
            None => self.host.to_string(),
        }
    }
}

/// A connection as the policy sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection<'a> {
    /// The host, spelled as in a URL.
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// The command line that makes it, if it is one.
    pub(crate) line: Option<&'a CommandLine>,
}

/// The decision about a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionJudgement {
    /// The host and its port.
    pub to: String,
    /// Whether it may be made.
    pub verdict: Verdict,
    /// Whether the host may have a private address, because the user named exactly it.
    pub may_be_private: bool,
    /// The rule or setting that decided.
    pub by: DecidedBy,
    /// Whether the host is this machine.
    pub(crate) is_loopback: bool,
}

impl ConnectionJudgement {
    /// Whether a rule closes the host, so that nothing can open it.
    pub(crate) fn is_denied_by_rule(&self) -> bool {
        self.verdict == Verdict::Deny && !matches!(self.by, DecidedBy::Session(_))
    }

    /// Returns the decision in the form of one about a call.
    #[must_use]
    pub fn as_judgement(&self) -> Judgement {
        Judgement {
            verdict: self.verdict,
            parts: vec![JudgedPart {
                subject: Subject::Host(self.to.clone()),
                verdict: self.verdict,
                by: self.by.clone(),
            }],
        }
    }

    /// Returns how the connection may be made if it is allowed.
    #[must_use]
    pub fn allowed(&self) -> HostVerdict {
        match self.may_be_private {
            true => HostVerdict::Any,
            false => HostVerdict::Public,
        }
    }
}

/// Parses the command line of a program.
pub(crate) fn command_line(program: &Program) -> CommandLine {
    match program {
        Program::Shell { script, .. } => line::read(script, false),
        Program::Direct(words) => {
            let words = words.iter().map(|word| word.to_string_lossy().into_owned());
            line::program(&words.collect::<Vec<_>>(), false)
        }
    }
}

/// Formats a host and a port.
#[must_use]
pub fn host_and_port(host: &str, port: u16) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// Checks what is special about rules for connections.
pub(super) fn check(
    (verdict, effect, has_path): (Verdict, Option<Effect>, bool),
    has_command: bool,
    host: Option<&str>,
) -> Result<(), String> {
    if verdict == Verdict::Review {
        return Err(
            "a connection cannot be reviewed afterwards: use allow, ask or deny for network"
                .to_owned(),
        );
    }
    if has_path {
        return Err("a rule about network has a host, a command or both, but no path".to_owned());
    }
    if effect.is_some_and(|effect| effect != Effect::Network) {
        return Err(
            "a rule about network can only have the effect network; leave it out".to_owned(),
        );
    }
    if host.is_some_and(|host| host.trim().starts_with('@')) {
        return Err(
            "a rule names one host; groups such as @rust belong in the list under `network`"
                .to_owned(),
        );
    }
    let Some(host) = host else { return Ok(()) };
    let is_loopback = NetworkHost::parse(host)?.loopback_port().is_some();
    if is_loopback && (has_command || verdict == Verdict::Ask) {
        return Err(
            "a port of localhost is open to all commands of the session or to none: use allow or deny, without command"
                .to_owned(),
        );
    }
    Ok(())
}

/// The strictest decision so far.
struct Decided {
    verdict: Verdict,
    by: DecidedBy,
    is_exact: bool,
}

impl Decided {
    fn by(rule: &Rule, host: &str) -> Self {
        // The model chose the name that the user's answer is about, and the user did not see
        // its address.
        let is_known = !rule.location().is_answer() || is_address(host);
        Self {
            verdict: rule.verdict(),
            by: DecidedBy::Rule(rule.to_string(), rule.location().clone()),
            is_exact: is_known && rule.exact_host().is_some(),
        }
    }

    /// Returns the stricter one. A rule that denies comes before the setting that opens
    /// nothing: the user can lift that one.
    fn and(self, other: Option<Self>) -> Self {
        let is_lifted = |other: &Self| {
            other.verdict == self.verdict && matches!(self.by, DecidedBy::Session(_))
        };
        match other {
            Some(other) if other.verdict > self.verdict || is_lifted(&other) => other,
            _ => self,
        }
    }
}

impl Policy {
    /// Sets the hosts that are open without a rule.
    #[must_use]
    pub fn with_network(mut self, network: NetworkAccess) -> Self {
        self.network = network;
        self
    }

    /// Returns the hosts that are open without a rule.
    #[must_use]
    pub fn network(&self) -> &NetworkAccess {
        &self.network
    }

    /// Whether the user opened hosts to commands, or wants to be asked about some.
    #[must_use]
    pub fn opens_hosts(&self) -> bool {
        let mut rules = self.rules_of(RuleOwner::User);
        !self.network.hosts.is_empty()
            || rules.any(|rule| rule.tool() == NETWORK && rule.verdict() != Verdict::Deny)
    }

    /// Returns the rules about connections of commands.
    pub fn about_network(&self) -> impl Iterator<Item = &Rule> {
        self.rules().filter(|rule| rule.tool() == NETWORK)
    }

    /// Returns the hosts that are open to commands, or may be after a question, as the user
    /// wrote them.
    pub(crate) fn reachable(&self) -> Vec<String> {
        let listed = self.network.hosts.iter().map(OpenHost::entry);
        let ruled = self
            .about_network()
            .filter(|rule| rule.verdict() != Verdict::Deny);
        let ruled = ruled.filter_map(|rule| rule.hosts().map(ToString::to_string));
        let mut all: Vec<String> = Vec::new();
        for host in listed.chain(ruled) {
            if !all.contains(&host) {
                all.push(host);
            }
        }
        all
    }

    /// Returns the ports of this machine's loopback that are open to commands.
    #[must_use]
    pub fn open_loopback_ports(&self) -> Vec<u16> {
        let listed = self.network.hosts.iter().map(|open| &open.host);
        let ruled = self.about_network().filter_map(Rule::exact_host);
        let mut ports: Vec<u16> = listed
            .chain(ruled)
            .filter_map(NetworkHost::loopback_port)
            .filter(|port| {
                let line = None;
                let host = "localhost";
                let port = *port;
                let judged = self.judge_connection(&Connection { host, port, line });
                judged.verdict == Verdict::Allow
            })
            .collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Explains what would be decided about a connection. `host` is spelled as in a URL.
    #[must_use]
    pub fn explain_connection(
        &self,
        host: &str,
        port: u16,
        command: Option<&str>,
    ) -> ConnectionJudgement {
        let line = command.map(|command| line::read(command, false));
        let line = line.as_ref();
        self.judge_connection(&Connection { host, port, line })
    }

    /// Decides about a connection of a command.
    pub(crate) fn judge_connection(&self, to: &Connection<'_>) -> ConnectionJudgement {
        let listed = self.network.hosts.iter();
        let mut listed = listed.filter(|open| open.host.covers(to.host, to.port));
        let listed: Vec<&OpenHost> = listed.by_ref().collect();
        let is_named = |open: &&&OpenHost| open.group.is_none() && open.host.is_exact();
        let is_listed_exactly = listed.iter().any(|open| is_named(&open));
        // What opens the host, and what closes it again.
        let (mut opened, mut closed): (Option<Decided>, Option<Decided>) = (None, None);
        for file in &self.files {
            for rule in deciding(file, to) {
                let can_open = file.owner == RuleOwner::User && rule.tool() == NETWORK;
                let slot = match (rule.verdict(), can_open) {
                    (Verdict::Allow | Verdict::Ask, true) => &mut opened,
                    (Verdict::Ask | Verdict::Deny, _) => &mut closed,
                    (Verdict::Allow | Verdict::Review, _) => continue,
                };
                let decided = Decided::by(rule, to.host);
                *slot = Some(match slot.take() {
                    Some(before) => before.and(Some(decided)),
                    None => decided,
                });
            }
        }
        let decided = opened.unwrap_or_else(|| match listed.first() {
            Some(open) => Decided {
                verdict: Verdict::Allow,
                by: DecidedBy::Session(match self.from() {
                    from if from.contains("network") => format!("{from} {}", open.entry()),
                    from => format!("{from} network: {}", open.entry()),
                }),
                is_exact: false,
            },
            None => Decided {
                verdict: Verdict::Deny,
                by: DecidedBy::Session(self.closed()),
                is_exact: false,
            },
        });
        let mut decided = decided.and(closed);
        // This machine's loopback is open only by name.
        let is_exact = decided.is_exact || is_listed_exactly;
        if is_loopback(to.host) && decided.verdict != Verdict::Deny && !is_exact {
            decided = Decided {
                verdict: Verdict::Deny,
                by: DecidedBy::Session(
                    "this machine's own ports are open only if `network` lists them, as localhost:PORT"
                        .to_owned(),
                ),
                is_exact: false,
            };
        }
        ConnectionJudgement {
            to: host_and_port(to.host, to.port),
            verdict: decided.verdict,
            // An address shows by itself whether it is private.
            may_be_private: is_exact || (decided.verdict == Verdict::Ask && is_address(to.host)),
            by: decided.by,
            is_loopback: is_loopback(to.host),
        }
    }

    fn from(&self) -> &str {
        match self.network.from.as_str() {
            "" => "default",
            from => from,
        }
    }

    /// Says why a host is closed that no rule is about.
    fn closed(&self) -> String {
        match self.network.hosts.is_empty() {
            true => format!("commands have no network ({})", self.from()),
            false => format!("network lists other hosts ({})", self.from()),
        }
    }

    /// Returns the rule that would open a host.
    pub(crate) fn suggest_host(&self, host: &str, place: &RuleLocation) -> Option<Suggestion> {
        let mut draft = RuleDraft::new(Verdict::Allow, NETWORK, place.clone());
        draft.host = Some(host.to_owned());
        Rule::new(draft).ok().map(Suggestion::of)
    }
}

/// Returns the rules of a file that decide: the first that matches, and before it those that
/// do not open and may match.
fn deciding<'r>(file: &'r RuleFile, to: &Connection<'_>) -> Vec<&'r Rule> {
    let mut deciding = Vec::new();
    for rule in &file.rules {
        let is_about = rule.is_about_tool(NETWORK, Effect::Network, Effect::Network)
            && rule.is_about_connection(to.host, to.port);
        if !is_about {
            continue;
        }
        match rule.is_about_line(to.line) {
            Match::Yes => {
                deciding.push(rule);
                break;
            }
            Match::Maybe if rule.verdict() != Verdict::Allow => deciding.push(rule),
            Match::Maybe | Match::No => {}
        }
    }
    deciding
}

fn is_address(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok()
}

//! A single rule: what it applies to, and its verdict.

use super::line::{self, CommandLine};
use super::network_host::NetworkHost;
use super::pattern::{HostPattern, PathPattern};
use super::shell::Word;
use crate::Effect;
use std::fmt;
use std::path::Path;

/// The verdict of a rule, from lenient to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// The call runs without network, and the user decides whether its changes are kept.
    Review,
    /// The user is asked.
    Ask,
    /// The call is refused; approval cannot override this.
    Deny,
}

impl Verdict {
    /// Returns the name that rules use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Review => "review",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Location of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RuleLocation {
    /// The file, as shown in messages.
    pub file: String,
    /// Line number from 1; 0 if the source has no lines.
    pub line: u64,
}

/// Stands for the file of a rule that comes from the user's answer to a question.
const ANSWER: &str = "(suggested)";

impl RuleLocation {
    /// Returns the location of a rule that comes from the user's answer.
    pub(crate) fn of_answer() -> Self {
        Self {
            file: ANSWER.to_owned(),
            line: 0,
        }
    }

    pub(crate) fn is_answer(&self) -> bool {
        self.file == ANSWER
    }
}

impl fmt::Display for RuleLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// A rule as written, before [`Rule::new`] checks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleDraft {
    /// What to do with calls that match.
    pub verdict: Verdict,
    /// Name of the tool, or `*` for all.
    pub tool: String,
    /// Matches only calls with this effect.
    pub effect: Option<Effect>,
    /// Matches only simple commands that start with these words.
    pub command: Option<Vec<String>>,
    /// Matches only paths that match this glob, which is absolute or relative to the work
    /// folder.
    pub path: Option<String>,
    /// Matches only this host; `*.example.com` matches all hosts below a name.
    pub host: Option<String>,
    /// Examples that the rule must match.
    pub matching: Vec<String>,
    /// Examples that the rule must not match.
    pub not_matching: Vec<String>,
    /// Location of the rule.
    pub place: RuleLocation,
}

impl RuleDraft {
    /// Creates a rule about every call of a tool.
    pub fn new(verdict: Verdict, tool: impl Into<String>, place: RuleLocation) -> Self {
        Self {
            verdict,
            tool: tool.into(),
            effect: None,
            command: None,
            path: None,
            host: None,
            matching: Vec::new(),
            not_matching: Vec::new(),
            place,
        }
    }
}

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct BadRule {
    /// Location of the rule.
    pub place: RuleLocation,
    /// The reason why the rule is invalid.
    pub message: String,
}

/// A checked rule: its globs compile and its examples hold.
#[derive(Debug, Clone)]
pub struct Rule {
    verdict: Verdict,
    tool: String,
    effect: Option<Effect>,
    about: About,
    place: RuleLocation,
}

/// Whether a rule matches a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// Depends on a word that is not literal.
    Maybe,
    Yes,
}

/// Whether the words start with those of a rule, as far as that can be known.
fn begins_with(words: &[Word], wanted: &[String]) -> Match {
    let mut words = words.iter();
    let mut certain = true;
    for wanted in wanted {
        loop {
            let Some(word) = words.next() else {
                return Match::No;
            };
            if word.known() == Some(wanted) {
                break;
            }
            if word.can_be(wanted) {
                return Match::Maybe;
            }
            // A word that may expand to nothing lets the next one take its place.
            if !word.splits() && !word.is_pattern() {
                return Match::No;
            }
            certain = false;
        }
    }
    match certain {
        true => Match::Yes,
        false => Match::Maybe,
    }
}

/// The resources that a rule matches.
#[derive(Debug, Clone)]
enum About {
    Anything,
    Command(Vec<String>),
    Path(PathPattern),
    Host(HostPattern),
    /// Connections of commands, for [`NETWORK`](super::NETWORK).
    Connection {
        host: Option<NetworkHost>,
        command: Option<Vec<String>>,
    },
}

impl Rule {
    /// Checks a rule and its examples.
    ///
    /// # Errors
    /// When it combines command, path and host, a pattern is invalid, or an example fails.
    pub fn new(draft: RuleDraft) -> Result<Self, BadRule> {
        let place = draft.place.clone();
        Self::checked(draft).map_err(|message| BadRule { place, message })
    }

    fn checked(draft: RuleDraft) -> Result<Self, String> {
        let tool = draft.tool;
        if tool.is_empty() {
            return Err("the tool is missing: a name, or \"*\" for all".to_owned());
        }
        if tool != "*" && tool.contains('*') {
            return Err(format!(
                "\"{tool}\" is not a valid tool name: use a name, or \"*\" for all tools"
            ));
        }
        super::exception::check(draft.verdict, &tool)?;
        let command = &draft.command;
        if command
            .as_ref()
            .is_some_and(|words| words.is_empty() || words.iter().any(String::is_empty))
        {
            return Err("command must be one word or more".to_owned());
        }
        let about = match (draft.command, draft.path, draft.host) {
            (command, path, host) if tool == super::NETWORK => {
                let rule = (draft.verdict, draft.effect, path.is_some());
                super::network::check(rule, command.is_some(), host.as_deref())?;
                let host = host.map(|host| NetworkHost::parse(&host)).transpose()?;
                About::Connection { host, command }
            }
            (None, None, None) => About::Anything,
            (Some(words), None, None) => About::Command(words),
            (None, Some(glob), None) => About::Path(PathPattern::new(&glob)?),
            (None, None, Some(host)) => About::Host(HostPattern::new(&host)?),
            _ => {
                return Err(
                    "a rule is about a command, a path or a host; make one rule for each"
                        .to_owned(),
                );
            }
        };
        let rule = Self {
            verdict: draft.verdict,
            tool,
            effect: draft.effect,
            about,
            place: draft.place,
        };
        for (examples, wanted) in [(&draft.matching, true), (&draft.not_matching, false)] {
            for example in examples {
                rule.example(example, wanted)?;
            }
        }
        Ok(rule)
    }

    /// Checks one example.
    fn example(&self, example: &str, wanted: bool) -> Result<(), String> {
        let (matches, why) = match &self.about {
            About::Anything => {
                return Err(
                    "examples need a rule with command, path or host to be examples of".to_owned(),
                );
            }
            About::Command(_) => {
                let line = line::read(example, false);
                let why = line.limit().map(|why| format!(" (not covered: {why})"));
                (self.decides_line(&line), why)
            }
            About::Path(pattern) => {
                let example = pattern.example(Path::new(example));
                let is_about = example.is_some_and(|(absolute, below)| {
                    self.is_about_path(&absolute, below.as_deref())
                });
                (is_about, None)
            }
            About::Host(pattern) => (pattern.matches(example), None),
            About::Connection {
                host: Some(host), ..
            } => (host.covers_example(example), None),
            About::Connection {
                host: None,
                command: Some(_),
            } => {
                let line = line::read(example, false);
                (self.is_about_line(Some(&line)) != Match::No, None)
            }
            About::Connection { .. } => {
                return Err("examples need a rule with a host or a command".to_owned());
            }
        };
        if matches == wanted {
            return Ok(());
        }
        let (key, does) = if wanted {
            ("match", "does not match")
        } else {
            ("no_match", "matches")
        };
        Err(format!(
            "the {key} example \"{example}\" {does}{}",
            why.unwrap_or_default()
        ))
    }

    /// Whether the rule alone would decide about a line: to allow it, every command must
    /// match; to stop it, one is enough.
    fn decides_line(&self, line: &CommandLine) -> bool {
        let mut commands = line.commands.iter();
        if self.verdict == Verdict::Allow {
            line.limit().is_none()
                && !line.commands.is_empty()
                && commands.all(|one| {
                    one.is_transparent || self.is_about_command(&one.words) == Match::Yes
                })
        } else {
            commands.any(|one| self.is_about_command(&one.words) == Match::Yes)
        }
    }

    /// Whether the rule can apply to calls of a tool. `touching` is the effect of using the
    /// resource; it only matters for rules that do not allow.
    pub(super) fn is_about_tool(&self, tool: &str, effect: Effect, touching: Effect) -> bool {
        let named = self.tool == "*" || self.tool == tool;
        let of_effect = self.effect.is_none_or(|wanted| {
            wanted == effect || (self.verdict != Verdict::Allow && wanted == touching)
        });
        named && of_effect
    }

    /// Whether the rule applies to everything that a tool does.
    pub(super) fn is_about_anything(&self) -> bool {
        matches!(self.about, About::Anything)
    }

    pub(super) fn has_command(&self) -> bool {
        matches!(self.about, About::Command(_))
    }

    /// Whether a simple command starts with the words of the rule. To allow it, the program
    /// must be written exactly as in the rule; to stop it, its base name is enough.
    pub(super) fn is_about_command(&self, words: &[Word]) -> Match {
        let (About::Command(wanted)
        | About::Connection {
            command: Some(wanted),
            ..
        }) = &self.about
        else {
            return Match::No;
        };
        let (Some((program, rest)), Some((first, others))) =
            (words.split_first(), wanted.split_first())
        else {
            return Match::No;
        };
        let is_named = self.verdict != Verdict::Allow && program.program() == Some(first);
        if program.known() == Some(first) || is_named {
            begins_with(rest, others)
        } else {
            Match::No
        }
    }

    /// Whether the rule matches a path, given as absolute and, if it is below the work
    /// folder, as relative. A rule that does not allow a folder also covers everything in
    /// it.
    pub(super) fn is_about_path(&self, absolute: &Path, below: Option<&Path>) -> bool {
        match (&self.about, self.verdict) {
            (About::Path(pattern), Verdict::Allow) => pattern.matches(absolute, below),
            (About::Path(pattern), _) => pattern.covers(absolute, below),
            _ => false,
        }
    }

    /// Returns the path pattern of a rule about paths.
    pub(super) fn paths(&self) -> Option<&PathPattern> {
        match &self.about {
            About::Path(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// Returns the effect that the rule is limited to.
    pub(super) fn effect(&self) -> Option<Effect> {
        self.effect
    }

    pub(super) fn is_about_host(&self, host: &str) -> bool {
        matches!(&self.about, About::Host(pattern) if pattern.matches(host))
    }

    /// Whether the rule applies to a connection to this host, by any command. A rule that
    /// opens nothing may also be about every tool.
    pub(super) fn is_about_connection(&self, name: &str, port: u16) -> bool {
        match &self.about {
            About::Anything => true,
            About::Host(pattern) => pattern.matches(name),
            About::Connection { host, .. } => {
                host.as_ref().is_none_or(|host| host.covers(name, port))
            }
            About::Command(_) | About::Path(_) => false,
        }
    }

    /// Whether a command line contains the command of a rule about connections. To stop it,
    /// a line that cannot be read may contain any command.
    pub(super) fn is_about_line(&self, line: Option<&CommandLine>) -> Match {
        let About::Connection {
            command: Some(_), ..
        } = &self.about
        else {
            return Match::Yes;
        };
        let Some(line) = line else {
            return Match::No;
        };
        let commands = line.commands.iter();
        let found = commands.map(|one| self.is_about_command(&one.words));
        match found.max().unwrap_or(Match::No) {
            Match::No if line.unreadable.is_some() => Match::Maybe,
            found => found,
        }
    }

    /// Returns the host or hosts that a rule about connections names.
    pub(super) fn hosts(&self) -> Option<&NetworkHost> {
        match &self.about {
            About::Connection { host, .. } => host.as_ref(),
            _ => None,
        }
    }

    /// Returns the one host of a rule about connections, if it names one.
    pub(super) fn exact_host(&self) -> Option<&NetworkHost> {
        match &self.about {
            About::Connection { host, .. } => host.as_ref().filter(|host| host.is_exact()),
            _ => None,
        }
    }

    /// Returns the verdict.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Returns the name of the tool, or `*`.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Returns the location.
    #[must_use]
    pub fn location(&self) -> &RuleLocation {
        &self.place
    }
}

/// Formats the rule as in a configuration file.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ {}: {}", self.verdict, quoted(&self.tool))?;
        if let Some(effect) = self.effect {
            write!(f, ", effect: {}", effect.name())?;
        }
        match &self.about {
            About::Anything => {}
            About::Command(words) => write_command(f, words)?,
            About::Connection { host, command } => {
                if let Some(host) = host {
                    write!(f, ", host: {}", quoted(&host.to_string()))?;
                }
                if let Some(words) = command {
                    write_command(f, words)?;
                }
            }
            About::Path(pattern) => write!(f, ", path: {}", quoted(pattern.text()))?,
            About::Host(pattern) => write!(f, ", host: {}", quoted(&pattern.to_string()))?,
        }
        f.write_str(" }")
    }
}

/// Formats the words of a command as YAML.
fn write_command(f: &mut fmt::Formatter<'_>, words: &[String]) -> fmt::Result {
    // Text is split at blanks, so words with blanks need a list.
    let joined = words.join(" ");
    let same = joined
        .split_whitespace()
        .eq(words.iter().map(String::as_str));
    if same {
        return write!(f, ", command: {}", quoted(&joined));
    }
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    write!(f, ", command: [{}]", words.join(", "))
}

/// Formats text as YAML, quoted unless it cannot be mistaken for anything else.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ');
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(plain)
        && !text.ends_with(' ');
    // Words that YAML parsers treat as values.
    let value = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|value| text.eq_ignore_ascii_case(value));
    if word && !value {
        text.to_owned()
    } else {
        // JSON strings are valid YAML.
        serde_json::Value::from(text).to_string()
    }
}

//! One rule: what it is about, and what it says to that.

use super::line::{self, Line};
use super::pattern::{HostPattern, PathPattern};
use super::shell::Word;
use crate::Effect;
use std::fmt;
use std::path::Path;

/// What a rule says. The later one is the stricter one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// It may happen.
    Allow,
    /// A person is asked.
    Ask,
    /// It may not happen, whoever says yes.
    Deny,
}

impl Verdict {
    /// Its name, as rules write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
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

/// Where a rule stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The file, as messages name it.
    pub file: String,
    /// The line, from 1; 0 where there are no lines.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// A rule as somebody wrote it, before it is checked by [`Rule::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// What it says.
    pub verdict: Verdict,
    /// The tool, or `*`.
    pub tool: String,
    /// Only calls of this effect.
    pub effect: Option<Effect>,
    /// Only simple commands that begin with these words.
    pub command: Option<Vec<String>>,
    /// Only paths that this glob matches, from the work folder or absolute.
    pub path: Option<String>,
    /// Only this host; `*.example.com` for those below a name.
    pub host: Option<String>,
    /// Examples that it must be about.
    pub matching: Vec<String>,
    /// Examples that it must not be about.
    pub not_matching: Vec<String>,
    /// Where it stands.
    pub place: Place,
}

impl Draft {
    /// A rule about every call of a tool.
    pub fn new(verdict: Verdict, tool: impl Into<String>, place: Place) -> Self {
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

/// A rule that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {message}")]
pub struct BadRule {
    /// Where it stands.
    pub place: Place,
    /// What is wrong with it.
    pub message: String,
}

/// A rule that was checked: its globs compile and its examples hold.
#[derive(Debug, Clone)]
pub struct Rule {
    verdict: Verdict,
    tool: String,
    effect: Option<Effect>,
    about: About,
    place: Place,
}

/// Whether a rule is about a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    No,
    /// It depends on a word that is not literal.
    Maybe,
    Yes,
}

/// Whether words begin with those of a rule, as far as that is known.
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
            // A word that may disappear lets the next one take its place.
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

/// What a rule is about, beside the tool.
#[derive(Debug, Clone)]
enum About {
    Anything,
    Command(Vec<String>),
    Path(PathPattern),
    Host(HostPattern),
}

impl Rule {
    /// Checks a rule, and its examples against it.
    ///
    /// # Errors
    /// When it is about two things, a pattern is none, or an example fails.
    pub fn new(draft: Draft) -> Result<Self, BadRule> {
        let place = draft.place.clone();
        Self::checked(draft).map_err(|message| BadRule { place, message })
    }

    fn checked(draft: Draft) -> Result<Self, String> {
        let tool = draft.tool;
        if tool.is_empty() {
            return Err("the tool is missing: a name, or \"*\" for all".to_owned());
        }
        if tool != "*" && tool.contains('*') {
            return Err(format!(
                "\"{tool}\" is no tool: a name, or \"*\" for all of them"
            ));
        }
        let about = match (draft.command, draft.path, draft.host) {
            (None, None, None) => About::Anything,
            (Some(words), None, None) => {
                if words.is_empty() || words.iter().any(String::is_empty) {
                    return Err("command must be one word or more".to_owned());
                }
                About::Command(words)
            }
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
                let why = line
                    .obstacle
                    .as_ref()
                    .map(|why| format!(" (not analysed: {why})"));
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

    /// Whether the rule alone would settle a line: to allow it every command
    /// must be meant, to stop it one is enough.
    fn decides_line(&self, line: &Line) -> bool {
        let mut commands = line.commands.iter();
        if self.verdict == Verdict::Allow {
            line.obstacle.is_none()
                && !line.commands.is_empty()
                && commands.all(|words| self.is_about_command(words) == Match::Yes)
        } else {
            commands.any(|words| self.is_about_command(words) == Match::Yes)
        }
    }

    /// Whether it is about calls of a tool at all. `touching` is the effect of
    /// what is touched, which only counts against a call.
    pub(super) fn is_about_tool(&self, tool: &str, effect: Effect, touching: Effect) -> bool {
        let named = self.tool == "*" || self.tool == tool;
        let of_effect = self.effect.is_none_or(|wanted| {
            wanted == effect || (self.verdict != Verdict::Allow && wanted == touching)
        });
        named && of_effect
    }

    /// Whether it is about everything that a tool touches.
    pub(super) fn is_about_anything(&self) -> bool {
        matches!(self.about, About::Anything)
    }

    pub(super) fn has_command(&self) -> bool {
        matches!(self.about, About::Command(_))
    }

    /// Whether a simple command begins with its words. To allow one the program
    /// must be written as in the rule; to stop one its name is enough.
    pub(super) fn is_about_command(&self, words: &[Word]) -> Match {
        let About::Command(wanted) = &self.about else {
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

    /// Whether it is about a path: absolute, and below the work folder if it is. What
    /// is not allowed is not allowed with all that is in it.
    pub(super) fn is_about_path(&self, absolute: &Path, below: Option<&Path>) -> bool {
        match (&self.about, self.verdict) {
            (About::Path(pattern), Verdict::Allow) => pattern.matches(absolute, below),
            (About::Path(pattern), _) => pattern.covers(absolute, below),
            _ => false,
        }
    }

    /// What paths it is about, if it is about paths.
    pub(super) fn paths(&self) -> Option<&PathPattern> {
        match &self.about {
            About::Path(pattern) => Some(pattern),
            _ => None,
        }
    }

    /// Only calls of this effect, if it says so.
    pub(super) fn effect(&self) -> Option<Effect> {
        self.effect
    }

    pub(super) fn is_about_host(&self, host: &str) -> bool {
        matches!(&self.about, About::Host(pattern) if pattern.matches(host))
    }

    /// What it says.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The tool, or `*`.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// Where it stands.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }
}

/// As one would write it in a file.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{ {}: {}", self.verdict, quoted(&self.tool))?;
        if let Some(effect) = self.effect {
            write!(f, ", effect: {}", effect.name())?;
        }
        match &self.about {
            About::Anything => {}
            About::Command(words) => {
                // A text is split at blanks; other words need a list.
                let joined = words.join(" ");
                let same = joined
                    .split_whitespace()
                    .eq(words.iter().map(String::as_str));
                if same {
                    write!(f, ", command: {}", quoted(&joined))?;
                } else {
                    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                    write!(f, ", command: [{}]", words.join(", "))?;
                }
            }
            About::Path(pattern) => write!(f, ", path: {}", quoted(pattern.text()))?,
            About::Host(pattern) => write!(f, ", host: {}", quoted(&pattern.to_string()))?,
        }
        f.write_str(" }")
    }
}

/// A text as YAML, in quotes unless it cannot be taken for anything else.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ');
    let word = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/')
        && text.chars().all(plain)
        && !text.ends_with(' ');
    // Words that YAML, or a reader of it, takes for values.
    let value = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|value| text.eq_ignore_ascii_case(value));
    if word && !value {
        text.to_owned()
    } else {
        // A text of JSON is one of YAML.
        serde_json::Value::from(text).to_string()
    }
}

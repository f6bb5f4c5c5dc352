//! What all the rules together say about a call.

use super::line::{self, Line};
use super::pattern::lexical;
use super::rule::{Match, Place, Rule, Verdict};
use super::shell::Word;
use super::{Policy, Whose};
use crate::{Access, Effect, Resource};
use std::fmt;
use std::path::{Path, PathBuf};

/// A call, as the policy looks at it.
#[derive(Debug, Clone, Copy)]
pub struct Act<'a> {
    /// The tool.
    pub tool: &'a str,
    /// What it can do at most.
    pub effect: Effect,
    /// What the call will touch.
    pub resources: &'a [Resource],
    /// Where relative paths and globs start; absolute and real.
    pub work_dir: &'a Path,
    /// The folders that relative paths of rules start from, the person's first: a
    /// project that moves the work folder does not move what the person said.
    pub bases: &'a [PathBuf],
    /// The names of the paths among the resources: each as it is given there,
    /// and what the toolset means by that, and where it is with links followed.
    /// One without any is taken as it is given.
    pub names: &'a [(String, PathBuf)],
}

/// What is said about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The strictest of the parts.
    pub verdict: Verdict,
    /// What is said about each thing that the call touches.
    pub parts: Vec<Part>,
}

/// What is said about one thing that a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The thing.
    pub subject: Subject,
    /// What is said.
    pub verdict: Verdict,
    /// Who says it.
    pub by: By,
}

/// Something that is judged.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// The call as such: it names nothing that it touches.
    Call,
    /// A simple command: its words up to the first that is not literal, which is `…`.
    Command(Vec<String>),
    /// A command line that was not analysed, and why.
    Line(String, String),
    /// A path as it was given, and what for.
    Path(String, Access),
    /// Another machine.
    Host(String),
}

/// Who decided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum By {
    /// No rule; so it may happen.
    Nobody,
    /// A rule, as it is written, and where it stands.
    Rule(String, Place),
    /// A line that was not analysed, where this rule is about commands.
    NotAnalysed(Place),
    /// A rule that denies commands and could not be checked.
    Unreadable {
        /// The rule, as it is written.
        rule: String,
        /// Where it stands.
        place: Place,
        /// What could not be read.
        why: String,
    },
    /// The session, for this reason.
    Session(String),
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("no rule"),
            Self::Rule(rule, place) => write!(f, "{place} {rule}"),
            Self::NotAnalysed(place) => write!(f, "{place} is about commands"),
            Self::Unreadable { rule, place, why } => {
                write!(f, "{place} {rule} cannot be checked: {why}")
            }
            Self::Session(reason) => f.write_str(reason),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call => f.write_str("the call"),
            Self::Command(words) => write!(f, "command {}", spelled(words)),
            Self::Line(line, why) => write!(f, "line {line} (not analysed: {why})"),
            Self::Path(path, Access::Read) => write!(f, "read {path}"),
            Self::Path(path, Access::Write) => write!(f, "write {path}"),
            Self::Path(path, Access::Unlink) => write!(f, "remove {path}"),
            Self::Host(host) => write!(f, "host {host}"),
        }
    }
}

/// Stands for the words of a command that are not literal.
const CUT: &str = "…";

/// Words as one would type them.
fn spelled(words: &[String]) -> String {
    let plain = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '=' | ':' | ',' | '@' | '+')
    };
    let words: Vec<String> = words
        .iter()
        .map(|word| {
            if word == CUT || (!word.is_empty() && word.chars().all(plain)) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', r"'\''"))
            }
        })
        .collect();
    words.join(" ")
}

impl Subject {
    /// What touching it is, whatever the tool says of itself.
    fn effect(&self, tool: Effect) -> Effect {
        match self {
            Self::Call => tool,
            Self::Command(_) | Self::Line(..) => Effect::Execute,
            Self::Path(_, Access::Read) => Effect::Read,
            Self::Path(_, Access::Write | Access::Unlink) => Effect::Write,
            Self::Host(_) => Effect::Network,
        }
    }
}

impl Judgement {
    /// The parts with the strictest verdict.
    pub fn decisive(&self) -> impl Iterator<Item = &Part> {
        self.parts
            .iter()
            .filter(|part| part.verdict == self.verdict)
    }
}

impl Policy {
    /// Judges a call by all rules of all files.
    #[must_use]
    pub fn judge(&self, act: &Act<'_>) -> Judgement {
        let mut things = Vec::new();
        // A command with a path runs in that folder.
        let elsewhere = act
            .resources
            .iter()
            .any(|resource| matches!(resource, Resource::Path(..)));
        for resource in act.resources {
            match resource {
                Resource::Path(given, access) => {
                    things.push(Subject::Path(given.clone(), *access).into());
                }
                Resource::Command(text) => {
                    commands(text, line::read(text, elsewhere), &mut things);
                }
                Resource::Program(argv) => {
                    commands(&spelled(argv), line::program(argv, elsewhere), &mut things);
                }
                Resource::Host(host) => things.push(Subject::Host(host.clone()).into()),
                // One that talks to no host: what is left is the call itself.
                Resource::Channel(_) => {}
            }
        }
        if things.is_empty() {
            things.push(Subject::Call.into());
        }
        let parts: Vec<Part> = things
            .into_iter()
            .map(|thing| self.part(act, thing))
            .collect();
        let parts = without_lesser_reads(parts);
        let verdict = parts
            .iter()
            .map(|part| part.verdict)
            .max()
            .unwrap_or(Verdict::Allow);
        Judgement { verdict, parts }
    }

    fn part(&self, act: &Act<'_>, thing: Thing) -> Part {
        let mut verdict = Verdict::Allow;
        let mut by = By::Nobody;
        let mut say = |stricter: Verdict, who: &dyn Fn() -> By| {
            if by == By::Nobody || stricter > verdict {
                verdict = stricter;
                by = who();
            }
        };
        let Thing {
            subject,
            words,
            unreadable,
        } = thing;
        let paths = paths(act, &subject);
        let cannot_check = |rule: &Rule, why: &str| By::Unreadable {
            rule: rule.to_string(),
            place: rule.place().clone(),
            why: why.to_owned(),
        };
        for file in &self.files {
            match deciding(&file.rules, act, &subject, &words, &paths) {
                Some((rule, Match::Maybe)) => say(Verdict::Deny, &|| {
                    cannot_check(rule, "a word that it compares is not literal")
                }),
                Some((rule, _)) => say(rule.verdict(), &|| {
                    By::Rule(rule.to_string(), rule.place().clone())
                }),
                None => {}
            }
            if let Some(why) = &unreadable
                && let Some(rule) = denies_commands(&file.rules, act)
            {
                say(Verdict::Deny, &|| cannot_check(rule, why));
            }
        }
        if matches!(subject, Subject::Line(..))
            && let Some(rule) = self.about_commands(act)
        {
            say(Verdict::Ask, &|| By::NotAnalysed(rule.place().clone()));
        }
        let touching = subject.effect(act.effect);
        for (reason, effect) in &self.asked_first {
            if *effect == act.effect || *effect == touching {
                say(Verdict::Ask, &|| By::Session(reason.clone()));
            }
        }
        Part {
            subject,
            verdict,
            by,
        }
    }

    /// A rule about commands of this tool, in any file.
    fn about_commands(&self, act: &Act<'_>) -> Option<&Rule> {
        self.rules().find(|rule| {
            rule.has_command() && rule.is_about_tool(act.tool, act.effect, Effect::Execute)
        })
    }

    /// A rule that would allow a call which is asked about now, if it stood
    /// first in the person's own file; none where that would not help.
    #[must_use]
    pub fn suggest(&self, act: &Act<'_>, place: &Place) -> Option<Rule> {
        let judgement = self.judge(act);
        if judgement.verdict != Verdict::Ask {
            return None;
        }
        judgement.decisive().find_map(|part| {
            let rule = super::suggest::rule(act, &part.subject, place)?;
            let with = self.with_first(rule.clone(), Whose::Person);
            (with.judge(act).verdict == Verdict::Allow).then_some(rule)
        })
    }
}

/// Something to be judged, with what only the judge looks at.
struct Thing {
    subject: Subject,
    /// The words of a command.
    words: Vec<Word>,
    /// Why not every command of a line is known.
    unreadable: Option<String>,
}

impl From<Subject> for Thing {
    fn from(subject: Subject) -> Self {
        Self {
            subject,
            words: Vec::new(),
            unreadable: None,
        }
    }
}

/// Drops the reading of a file that is also written, unless the rules are stricter about
/// reading it.
fn without_lesser_reads(mut parts: Vec<Part>) -> Vec<Part> {
    let written: Vec<(String, Verdict)> = parts
        .iter()
        .filter_map(|part| match &part.subject {
            Subject::Path(path, Access::Write) => Some((path.clone(), part.verdict)),
            _ => None,
        })
        .collect();
    parts.retain(|part| {
        let Subject::Path(read, Access::Read) = &part.subject else {
            return true;
        };
        let mut written = written.iter();
        !written.any(|(path, verdict)| path == read && *verdict >= part.verdict)
    });
    parts
}

/// The parts of a command line.
fn commands(text: &str, line: Line, things: &mut Vec<Thing>) {
    if let Some(why) = line.obstacle {
        things.push(Thing {
            unreadable: line.unreadable,
            ..Subject::Line(text.to_owned(), why).into()
        });
    }
    things.extend(line.commands.into_iter().map(|words| {
        let known = words.iter().map_while(Word::known).map(str::to_owned);
        let mut shown: Vec<String> = known.collect();
        if shown.len() < words.len() {
            shown.push(CUT.to_owned());
        }
        Thing {
            words,
            ..Subject::Command(shown).into()
        }
    }));
}

/// The first rule of a file that denies some commands of the tool, unless one before it
/// already decides about all of them.
fn denies_commands<'r>(rules: &'r [Rule], act: &Act<'_>) -> Option<&'r Rule> {
    rules
        .iter()
        .filter(|rule| rule.is_about_tool(act.tool, act.effect, Effect::Execute))
        .take_while(|rule| !rule.is_about_anything())
        .find(|rule| rule.has_command() && rule.verdict() == Verdict::Deny)
}

/// All the names of a path: absolute ones, each once.
fn paths(act: &Act<'_>, subject: &Subject) -> Vec<PathBuf> {
    let Subject::Path(given, _) = subject else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = Vec::new();
    for (_, path) in act.names.iter().filter(|(name, _)| name == given) {
        let path = lexical(path);
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        paths.push(lexical(&act.work_dir.join(given)));
    }
    paths
}

/// What one file says: the first rule about the subject. A path with several
/// names is judged by each, and the strictest counts. A rule that may be about a command
/// counts if it denies it.
fn deciding<'r>(
    rules: &'r [Rule],
    act: &Act<'_>,
    subject: &Subject,
    words: &[Word],
    paths: &[PathBuf],
) -> Option<(&'r Rule, Match)> {
    let touching = subject.effect(act.effect);
    let certain = |rule| (rule, Match::Yes);
    let mut rules = rules
        .iter()
        .filter(|rule| rule.is_about_tool(act.tool, act.effect, touching));
    match subject {
        Subject::Path(..) => paths
            .iter()
            .filter_map(|path| {
                let bases = act.bases.iter().map(PathBuf::as_path).chain([act.work_dir]);
                let named = Named::new(path, bases);
                rules
                    .clone()
                    .find(|rule| rule.is_about_anything() || named.is_meant_by(rule))
            })
            .reduce(|one, other| {
                if other.verdict() > one.verdict() {
                    other
                } else {
                    one
                }
            })
            .map(certain),
        Subject::Command(_) => rules.find_map(|rule| {
            let matches = match rule.is_about_anything() {
                true => Match::Yes,
                false => rule.is_about_command(words),
            };
            match matches {
                Match::Yes => Some((rule, Match::Yes)),
                Match::Maybe if rule.verdict() == Verdict::Deny => Some((rule, Match::Maybe)),
                _ => None,
            }
        }),
        Subject::Host(host) => rules
            .find(|rule| rule.is_about_anything() || rule.is_about_host(host))
            .map(certain),
        Subject::Call | Subject::Line(..) => {
            rules.find(|rule| rule.is_about_anything()).map(certain)
        }
    }
}

/// A path, and what it is called from each folder that relative globs start from.
pub(super) struct Named<'a> {
    path: &'a Path,
    below: Vec<&'a Path>,
}

impl<'a> Named<'a> {
    pub(super) fn new(path: &'a Path, bases: impl Iterator<Item = &'a Path>) -> Self {
        let below = bases.filter_map(|base| path.strip_prefix(base).ok());
        Self {
            path,
            below: below.collect(),
        }
    }

    /// What is allowed is allowed where the person meant it; what is not, is not
    /// wherever it could be meant.
    pub(super) fn is_meant_by(&self, rule: &Rule) -> bool {
        match rule.verdict() {
            Verdict::Allow => rule.is_about_path(self.path, self.below.first().copied()),
            _ if self.below.is_empty() => rule.is_about_path(self.path, None),
            _ => self
                .below
                .iter()
                .any(|below| rule.is_about_path(self.path, Some(below))),
        }
    }
}

//! Applying all rules to a call.

use super::line::{self, CommandLine};
use super::pattern::lexical;
use super::rule::{Match, Rule, RuleLocation, Verdict};
use super::shell::Word;
use super::{Policy, RuleOwner};
use crate::{Access, Effect, Resource};
use std::fmt;
use std::path::{Path, PathBuf};

/// A call as the policy sees it.
#[derive(Debug, Clone, Copy)]
pub struct PolicyInput<'a> {
    /// Name of the tool.
    pub tool: &'a str,
    /// The most that the tool can do.
    pub effect: Effect,
    /// Resources that the call uses.
    pub resources: &'a [Resource],
    /// Folder that relative paths and globs start from; absolute and real.
    pub work_dir: &'a Path,
    /// Folders that relative paths in rules start from, the user's first. If a project
    /// moves the work folder, the user's rules still apply where they were meant.
    pub bases: &'a [PathBuf],
    /// Names of the paths among the resources: each path as given, paired with the path
    /// that the toolset means by it, and with the real path. A path without an entry is
    /// used as given.
    pub names: &'a [(String, PathBuf)],
}

/// The decision of the rules about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The strictest verdict of the parts.
    pub verdict: Verdict,
    /// The decision about each part of the call.
    pub parts: Vec<JudgedPart>,
}

/// The decision about one part of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedPart {
    /// The part of the call.
    pub subject: Subject,
    /// Verdict for this part.
    pub verdict: Verdict,
    /// The rule or setting that decided.
    pub by: DecidedBy,
}

/// A part of a call that rules decide about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Subject {
    /// The call itself, if it names no resource.
    Call,
    /// A simple command: its words up to the first one that is not literal, shown as `…`.
    Command(Vec<String>),
    /// A command line that was not analysed, and why.
    Line(String, String),
    /// A path as given, and how it is accessed.
    Path(String, Access),
    /// Name or address of another machine.
    Host(String),
}

/// The rule or setting that decided about a part of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecidedBy {
    /// No rule matched, so it is allowed.
    Default,
    /// A rule, as written, and its location.
    Rule(String, RuleLocation),
    /// A command line was not analysed, and this rule is about commands.
    NotAnalysed(RuleLocation),
    /// A rule that denies commands could not be checked.
    Unreadable {
        /// The rule, as written.
        rule: String,
        /// Location of the rule.
        place: RuleLocation,
        /// The part that could not be analysed.
        why: String,
    },
    /// A setting of the session, for this reason.
    Session(String),
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("no rule"),
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

/// Stands for the words of a command from the first one that is not literal.
const CUT: &str = "…";

/// Formats words as a user would type them.
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
    /// Returns the effect of using this resource, whatever effect the tool declares.
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
    /// Returns the parts with the strictest verdict.
    pub fn decisive(&self) -> impl Iterator<Item = &JudgedPart> {
        self.parts
            .iter()
            .filter(|part| part.verdict == self.verdict)
    }
}

impl Policy {
    /// Applies all rules of all files to a call.
    #[must_use]
    pub fn judge(&self, act: &PolicyInput<'_>) -> Judgement {
        let mut things = Vec::new();
        // A command together with a path runs in that folder.
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
                // A channel without a host: only the call itself is checked.
                Resource::Channel(_) => {}
            }
        }
        if things.is_empty() {
            things.push(Subject::Call.into());
        }
        let parts: Vec<JudgedPart> = things
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

    fn part(&self, act: &PolicyInput<'_>, thing: Thing) -> JudgedPart {
        let mut verdict = Verdict::Allow;
        let mut by = DecidedBy::Default;
        let mut say = |stricter: Verdict, who: &dyn Fn() -> DecidedBy| {
            if by == DecidedBy::Default || stricter > verdict {
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
        let cannot_check = |rule: &Rule, why: &str| DecidedBy::Unreadable {
            rule: rule.to_string(),
            place: rule.location().clone(),
            why: why.to_owned(),
        };
        for file in &self.files {
            match deciding(&file.rules, act, &subject, &words, &paths) {
                Some((rule, Match::Maybe)) => say(Verdict::Deny, &|| {
                    cannot_check(rule, "a word that it compares is not literal")
                }),
                Some((rule, _)) => say(rule.verdict(), &|| {
                    DecidedBy::Rule(rule.to_string(), rule.location().clone())
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
            say(Verdict::Ask, &|| {
                DecidedBy::NotAnalysed(rule.location().clone())
            });
        }
        let touching = subject.effect(act.effect);
        for (reason, effect) in &self.asked_first {
            if *effect == act.effect || *effect == touching {
                say(Verdict::Ask, &|| DecidedBy::Session(reason.clone()));
            }
        }
        JudgedPart {
            subject,
            verdict,
            by,
        }
    }

    /// Returns a rule about commands of this tool, from any file.
    fn about_commands(&self, act: &PolicyInput<'_>) -> Option<&Rule> {
        self.rules().find(|rule| {
            rule.has_command() && rule.is_about_tool(act.tool, act.effect, Effect::Execute)
        })
    }

    /// Returns a rule that would allow a call which needs approval now, if it were the
    /// first rule of the user's file; `None` if no rule would help.
    #[must_use]
    pub fn suggest(&self, act: &PolicyInput<'_>, place: &RuleLocation) -> Option<Rule> {
        let judgement = self.judge(act);
        if !matches!(judgement.verdict, Verdict::Review | Verdict::Ask) {
            return None;
        }
        judgement.decisive().find_map(|part| {
            let rule = super::suggest::rule(act, &part.subject, place)?;
            let with = self.with_first(rule.clone(), RuleOwner::User);
            (with.judge(act).verdict == Verdict::Allow).then_some(rule)
        })
    }
}

/// A part of a call, with details that only this module uses.
struct Thing {
    subject: Subject,
    /// Words of a command.
    words: Vec<Word>,
    /// Reason why not all commands of the line are known.
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

/// Drops the read access to a file that is also written, unless the rules are stricter
/// about reading it.
fn without_lesser_reads(mut parts: Vec<JudgedPart>) -> Vec<JudgedPart> {
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

/// Adds the parts of a command line.
fn commands(text: &str, line: CommandLine, things: &mut Vec<Thing>) {
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

/// Returns the first rule of a file that denies some commands of the tool, unless an
/// earlier rule decides about all of them.
fn denies_commands<'r>(rules: &'r [Rule], act: &PolicyInput<'_>) -> Option<&'r Rule> {
    rules
        .iter()
        .filter(|rule| rule.is_about_tool(act.tool, act.effect, Effect::Execute))
        .take_while(|rule| !rule.is_about_anything())
        .find(|rule| rule.has_command() && rule.verdict() == Verdict::Deny)
}

/// Returns all absolute names of a path, without duplicates.
fn paths(act: &PolicyInput<'_>, subject: &Subject) -> Vec<PathBuf> {
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

/// Returns the rule of one file that decides: the first that matches. A path with several
/// names is checked under each, and the strictest verdict counts. A rule that only may
/// match a command counts if it denies.
fn deciding<'r>(
    rules: &'r [Rule],
    act: &PolicyInput<'_>,
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

/// A path, and its form relative to each folder that globs start from.
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

    /// Whether a rule applies to this path. A rule that allows only applies relative to the
    /// user's folder; any other rule applies relative to every folder.
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

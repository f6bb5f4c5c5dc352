//! Applying all rules to a call.

use super::Policy;
use super::danger::{self, Danger};
use super::line::{self, CommandLine, FoundCommand};
use super::pattern::lexical;
use super::rule::{Match, Rule, RuleLocation, Verdict};
use super::shell::Word;
use super::written::written;
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
    /// A command line that may do more than its commands tell, and why.
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
    /// A command line may do more than its commands tell, and this rule is about commands.
    NotAnalysed(RuleLocation),
    /// This rule allows a command, but not those that it runs or whose output it is given.
    Inner(RuleLocation),
    /// A rule about commands could not be checked.
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
    /// No rule is about the command, and it needs a second look for this reason.
    Danger(Danger),
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("no rule"),
            Self::Rule(rule, place) => write!(f, "{place} {rule}"),
            Self::NotAnalysed(place) => write!(f, "{place} is about commands"),
            Self::Inner(place) => write!(f, "{place} does not cover commands inside others"),
            Self::Unreadable { rule, place, why } => {
                write!(f, "{place} {rule} cannot be checked: {why}")
            }
            Self::Session(reason) => f.write_str(reason),
            Self::Danger(danger) => write!(f, "built-in default: {danger}"),
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call => f.write_str("the call"),
            Self::Command(words) => write!(f, "command {}", spelled(words)),
            Self::Line(line, why) => write!(f, "line {line} ({why})"),
            Self::Path(path, Access::Read) => write!(f, "read {path}"),
            Self::Path(path, Access::Write) => write!(f, "write {path}"),
            Self::Path(path, Access::Unlink) => write!(f, "remove {path}"),
            Self::Host(host) => write!(f, "host {host}"),
        }
    }
}

/// Stands for the words of a command from the first one that is not literal.
pub(super) const CUT: &str = "…";

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
        let mut parts = Vec::new();
        // A command together with a path runs in that folder.
        let elsewhere = act
            .resources
            .iter()
            .any(|resource| matches!(resource, Resource::Path(..)));
        for resource in act.resources {
            match resource {
                Resource::Path(given, access) => {
                    parts.push(self.part(act, Subject::Path(given.clone(), *access)));
                }
                Resource::Command(text) => {
                    self.line(act, text, line::read(text, elsewhere), &mut parts);
                }
                Resource::Program(argv) => {
                    let text = spelled(argv);
                    self.line(act, &text, line::program(argv, elsewhere), &mut parts);
                }
                Resource::Host(host) => parts.push(self.part(act, Subject::Host(host.clone()))),
                // A channel without a host: only the call itself is checked.
                Resource::Channel(_) => {}
            }
        }
        if parts.is_empty() {
            parts.push(self.part(act, Subject::Call));
        }
        let parts = without_lesser_reads(parts);
        let verdict = parts
            .iter()
            .map(|part| part.verdict)
            .max()
            .unwrap_or(Verdict::Allow);
        Judgement { verdict, parts }
    }

    /// Judges a path, a host, or the call itself.
    fn part(&self, act: &PolicyInput<'_>, subject: Subject) -> JudgedPart {
        let mut said = Said::default();
        let paths = paths(act, &subject);
        for file in &self.files {
            if let Some(rule) = deciding(&file.rules, act, &subject, &paths) {
                said.by_rule(rule);
            }
        }
        self.finished(act, subject, said)
    }

    /// Judges the commands of a line.
    fn line(
        &self,
        act: &PolicyInput<'_>,
        text: &str,
        line: CommandLine,
        parts: &mut Vec<JudgedPart>,
    ) {
        let (doubt, excess) = written(act.work_dir, &line);
        let doubt = line.doubt.or(doubt.map(str::to_owned));
        if let Some(why) = line.unreadable.as_ref().or(doubt.as_ref()) {
            let said = self.whole_line(act, why, line.unreadable.is_some());
            let subject = Subject::Line(text.to_owned(), why.clone());
            parts.push(self.finished(act, subject, said));
        }
        let said: Vec<Said> = line
            .commands
            .iter()
            .map(|one| self.command(act, one))
            .collect();
        let allowed = said.iter().find_map(|said| said.allowed_by.clone());
        // The rule that allows each command, or the one that only runs it.
        let mut covers: Vec<Option<RuleLocation>> = Vec::new();
        for (command, mut said) in line.commands.iter().zip(said) {
            let parent = command.parent.and_then(|at| covers.get(at)?.clone());
            let is_open = said.by == DecidedBy::Default;
            // A rule that allows a command covers neither the commands that it runs nor
            // those whose output it is given.
            let inner = parent
                .clone()
                .or(allowed.clone().filter(|_| command.substituted));
            covers.push(match command.is_transparent && is_open {
                true => parent,
                false => said.allowed_by.clone(),
            });
            if command.is_transparent && is_open {
                continue;
            }
            if let Some(place) = inner.filter(|_| is_open) {
                said.say(Verdict::Ask, || DecidedBy::Inner(place));
            }
            let subject = Subject::Command(shown(&command.words));
            let mut part = self.finished(act, subject, said);
            let runner = command.parent.and_then(|at| line.commands.get(at));
            let runner = runner.map(|runner| runner.words.as_slice());
            if let (DecidedBy::Default, Some(danger)) =
                (&part.by, danger::of(&command.words, runner))
            {
                part.by = DecidedBy::Danger(danger);
            }
            parts.push(part);
        }
        let Some(place) = allowed else {
            return;
        };
        if let Some(why) = line.excess.or(excess.map(str::to_owned)) {
            parts.push(JudgedPart {
                subject: Subject::Line(text.to_owned(), why),
                verdict: Verdict::Ask,
                by: DecidedBy::NotAnalysed(place),
            });
        }
    }

    /// Judges a line of which not every effect is known.
    fn whole_line(&self, act: &PolicyInput<'_>, why: &str, is_unreadable: bool) -> Said {
        let mut said = Said::default();
        for file in &self.files {
            let about = |rule: &&Rule| rule.is_about_tool(act.tool, act.effect, Effect::Execute);
            let mut rules = file.rules.iter().filter(about);
            if let Some(rule) = rules.clone().find(|rule| rule.is_about_anything()) {
                said.by_rule(rule);
            }
            // The first rule about everything decides, so that later ones do not matter.
            let reached = rules.by_ref().take_while(|rule| !rule.is_about_anything());
            for rule in reached.filter(|rule| rule.has_command()) {
                match rule.verdict() {
                    stricter if is_unreadable && stricter != Verdict::Allow => {
                        said.say(stricter, || cannot_check(rule, why));
                    }
                    _ => {
                        let by = || DecidedBy::NotAnalysed(rule.location().clone());
                        said.say(Verdict::Ask, by);
                    }
                }
            }
        }
        said
    }

    /// Judges a simple command.
    fn command(&self, act: &PolicyInput<'_>, command: &FoundCommand) -> Said {
        const WHY: &str = "a word that it compares is not literal";
        let mut said = Said::default();
        for file in &self.files {
            let about = |rule: &&Rule| rule.is_about_tool(act.tool, act.effect, Effect::Execute);
            // Rules that match depending on a word that is not known.
            let mut perhaps = Vec::new();
            let mut certain = None;
            for rule in file.rules.iter().filter(about) {
                let matches = match rule.is_about_anything() {
                    true if command.is_transparent => Match::No,
                    true => Match::Yes,
                    false => rule.is_about_command(&command.words),
                };
                match matches {
                    Match::Yes => {
                        certain = Some(rule);
                        break;
                    }
                    Match::Maybe => perhaps.push(rule),
                    Match::No => {}
                }
            }
            if let Some(rule) = certain {
                said.by_rule(rule);
            }
            for rule in perhaps {
                match rule.verdict() {
                    Verdict::Allow if certain.is_some() => {}
                    Verdict::Allow => said.say(Verdict::Ask, || cannot_check(rule, WHY)),
                    verdict => said.say(verdict, || cannot_check(rule, WHY)),
                }
            }
        }
        said
    }

    /// Adds what is asked about without a rule.
    fn finished(&self, act: &PolicyInput<'_>, subject: Subject, mut said: Said) -> JudgedPart {
        let touching = subject.effect(act.effect);
        for (reason, effect) in &self.asked_first {
            if *effect == act.effect || *effect == touching {
                said.say(Verdict::Ask, || DecidedBy::Session(reason.clone()));
            }
        }
        JudgedPart {
            subject,
            verdict: said.verdict,
            by: said.by,
        }
    }
}

/// The strictest verdict so far about a part of a call.
struct Said {
    verdict: Verdict,
    by: DecidedBy,
    /// The rule about commands that allows it.
    allowed_by: Option<RuleLocation>,
}

impl Default for Said {
    fn default() -> Self {
        Self {
            verdict: Verdict::Allow,
            by: DecidedBy::Default,
            allowed_by: None,
        }
    }
}

impl Said {
    fn say(&mut self, verdict: Verdict, by: impl FnOnce() -> DecidedBy) {
        if self.by == DecidedBy::Default || verdict > self.verdict {
            self.verdict = verdict;
            self.by = by();
        }
    }

    fn by_rule(&mut self, rule: &Rule) {
        if rule.verdict() == Verdict::Allow && rule.has_command() {
            self.allowed_by = Some(rule.location().clone());
        }
        self.say(rule.verdict(), || {
            DecidedBy::Rule(rule.to_string(), rule.location().clone())
        });
    }
}

fn cannot_check(rule: &Rule, why: &str) -> DecidedBy {
    DecidedBy::Unreadable {
        rule: rule.to_string(),
        place: rule.location().clone(),
        why: why.to_owned(),
    }
}

/// Returns the words of a command that are known.
fn shown(words: &[Word]) -> Vec<String> {
    let known = words.iter().map_while(Word::known).map(str::to_owned);
    let mut shown: Vec<String> = known.collect();
    if shown.len() < words.len() {
        shown.push(CUT.to_owned());
    }
    shown
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
/// names is checked under each, and the strictest verdict counts.
fn deciding<'r>(
    rules: &'r [Rule],
    act: &PolicyInput<'_>,
    subject: &Subject,
    paths: &[PathBuf],
) -> Option<&'r Rule> {
    let touching = subject.effect(act.effect);
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
            }),
        Subject::Host(host) => {
            rules.find(|rule| rule.is_about_anything() || rule.is_about_host(host))
        }
        _ => rules.find(|rule| rule.is_about_anything()),
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

//! What the rules close of what no call names: what a walk finds, and what commands
//! could read. A path is judged as if the call had named it.

use super::judge::Named;
use super::pattern::PathPattern;
use super::rule::{Rule, Verdict};
use super::{Place, Policy};
use crate::Effect;
use haft_ops::Scope;
use haft_ops::glob::Reached;
use haft_ops::scope::closing::{Closable, Closed, Closing, Why};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The rules of each file that are about the paths of one tool.
#[derive(Debug, Clone)]
pub(crate) struct PathRules {
    files: Vec<Vec<Rule>>,
    /// Where relative globs start, the person's folder first.
    bases: Vec<PathBuf>,
    /// Whether a rule that asks closes.
    asks: Asks,
    /// By which other names a real path is known.
    scope: Option<Scope>,
    /// Where links on the way to what rules name lead.
    aliases: Vec<Alias>,
}

/// A real path, and how a rule names it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Alias {
    real: PathBuf,
    named: PathBuf,
}

impl Alias {
    /// How the rule names a path that lies there.
    pub(crate) fn name(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.real).ok()?;
        let is_itself = below.as_os_str().is_empty();
        Some(if is_itself {
            self.named.clone()
        } else {
            self.named.join(below)
        })
    }

    /// The links on the way to what the rules name before any wildcard. One to a
    /// folder around the work folder would give everything there a second name, and
    /// counts for nothing.
    fn of<'r>(
        rules: impl Iterator<Item = &'r Rule>,
        bases: &[PathBuf],
        scope: &Scope,
    ) -> Vec<Self> {
        let mut aliases: Vec<Self> = Vec::new();
        let on_disk = scope.is_on_disk();
        for rule in rules.filter(|rule| rule.verdict() != Verdict::Allow) {
            let Some(pattern) = rule.paths().filter(|one| on_disk || !one.is_absolute()) else {
                continue;
            };
            let (literal, _) = pattern.literal();
            // A tree of its own begins elsewhere than the machine's.
            let bases_here = bases
                .iter()
                .filter(|base| on_disk || *base != scope.work_dir());
            for named in bases_here.map(|base| base.join(&literal)) {
                let Some(real) = haft_ops::scope::real(&named) else {
                    continue;
                };
                let is_around = bases.iter().any(|base| base.starts_with(&real));
                let alias = Self { real, named };
                if alias.real != alias.named && !is_around && !aliases.contains(&alias) {
                    aliases.push(alias);
                }
            }
        }
        aliases
    }
}

/// What becomes of a path that a rule asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asks {
    /// It is closed, unless the rule is one that was asked about for the call itself:
    /// by the number of the file and of the rule in it.
    Close(Vec<(usize, usize)>),
    /// It is open.
    Open,
}

impl PathRules {
    /// What closes paths to a tool that reads. Nothing, if no rule does.
    pub(crate) fn reading(
        policy: &Policy,
        tool: &str,
        effect: Effect,
        bases: Vec<PathBuf>,
        scope: &Scope,
    ) -> Option<Self> {
        let is_about = |rule: &&Rule| rule.is_about_tool(tool, effect, Effect::Read);
        let rules = Self {
            files: policy.kept(is_about),
            bases,
            asks: Asks::Close(Vec::new()),
            scope: None,
            aliases: Vec::new(),
        };
        let closes = |rule: &Rule| rule.verdict() != Verdict::Allow && rule.paths().is_some();
        let any = rules.files.iter().flatten().any(closes);
        any.then(|| rules.with_aliases(scope))
    }

    /// What closes paths to the commands of a tool; to all commands if there is none.
    /// Commands name no paths, so that a rule about every call of a tool says nothing
    /// about them here, and nobody can be asked about one.
    pub(crate) fn commands(
        policy: &Policy,
        tool: Option<&str>,
        bases: Vec<PathBuf>,
        scope: Scope,
    ) -> Option<Self> {
        let is_about = |rule: &&Rule| {
            is_about_reading(rule) && (rule.tool() == "*" || Some(rule.tool()) == tool)
        };
        // Commands are on the disk. A tree of its own begins elsewhere than the machine's.
        let mut bases = bases;
        if !scope.is_on_disk() {
            bases.retain(|base| base == scope.work_dir() || base.parent().is_some());
        }
        let rules = Self::without_calls(policy.kept(is_about), Asks::Open, bases, scope);
        let denies = |rule: &Rule| rule.verdict() == Verdict::Deny;
        let any = rules.files.iter().flatten().any(denies);
        any.then_some(rules)
    }

    /// What closes files to a prompt that they would become part of without any call.
    /// Only rules about the paths of all tools count, as for commands. Nobody is asked,
    /// so that a rule that asks closes.
    pub(crate) fn prompt(policy: &Policy, bases: Vec<PathBuf>, scope: Scope) -> Option<Self> {
        let is_about = |rule: &&Rule| is_about_reading(rule) && rule.tool() == "*";
        let asks = Asks::Close(Vec::new());
        let rules = Self::without_calls(policy.kept(is_about), asks, bases, scope);
        let closes = |rule: &Rule| rule.verdict() != Verdict::Allow;
        let any = rules.files.iter().flatten().any(closes);
        any.then_some(rules)
    }

    /// For paths that no call names.
    fn without_calls(files: Vec<Vec<Rule>>, asks: Asks, bases: Vec<PathBuf>, scope: Scope) -> Self {
        let rules = Self {
            files,
            bases,
            asks,
            scope: Some(scope.clone()),
            aliases: Vec::new(),
        };
        rules.with_aliases(&scope)
    }

    fn with_aliases(mut self, scope: &Scope) -> Self {
        self.aliases = Alias::of(self.files.iter().flatten(), &self.bases, scope);
        self
    }

    /// What is asked about is open: somebody says yes to all of it.
    pub(crate) fn with_all_approved(mut self) -> Self {
        self.asks = Asks::Open;
        self
    }

    /// What the rules ask about that asked about these names is open: somebody said
    /// yes to the call that names them.
    pub(crate) fn with_approved(mut self, names: &[&Path]) -> Self {
        let decided: Vec<_> = names.iter().flat_map(|name| self.deciding(name)).collect();
        let numbers = decided.iter().map(|decided| (decided.file, decided.number));
        self.asks = Asks::Close(numbers.collect());
        self
    }

    /// The globs that close something, and where they are written.
    pub(crate) fn closing(&self) -> impl Iterator<Item = (&str, &Place)> {
        let denies = |rule: &&Rule| rule.verdict() == Verdict::Deny;
        let rules = self.files.iter().flatten().filter(denies);
        rules.filter_map(|rule| Some((rule.paths()?.text(), rule.place())))
    }

    /// The rule of each file that decides about a path.
    fn deciding<'r>(&'r self, path: &'r Path) -> impl Iterator<Item = Decided<'r>> {
        let named = Named::new(path, self.bases.iter().map(PathBuf::as_path));
        let files = self.files.iter().enumerate();
        files.filter_map(move |(file, rules)| {
            let is_about = |rule: &Rule| rule.is_about_anything() || named.is_meant_by(rule);
            let number = rules.iter().position(is_about)?;
            let (before, rule) = (rules.get(..number)?, rules.get(number)?);
            Some(Decided {
                file,
                number,
                rule,
                before,
            })
        })
    }

    fn why(&self, decided: &Decided<'_>) -> Option<Why> {
        match (decided.rule.verdict(), &self.asks) {
            (Verdict::Deny, _) => Some(Why::Denied),
            (Verdict::Ask, Asks::Close(approved)) => {
                let is_approved = approved.contains(&(decided.file, decided.number));
                (!is_approved).then_some(Why::Asks)
            }
            (Verdict::Ask, Asks::Open) | (Verdict::Allow, _) => None,
        }
    }

    /// Whether a rule may be about anything below a folder.
    fn reaches_below(&self, rule: &Rule, folder: &Path) -> bool {
        let Some(pattern) = rule.paths() else {
            return rule.is_about_anything();
        };
        let mut reached = self.reached(pattern, folder).flatten();
        match rule.verdict() {
            Verdict::Allow => reached.any(|reached| reached.below),
            _ => reached.any(|reached| reached.below || reached.matched),
        }
    }

    /// Where in a glob a folder leads, from each base.
    fn reached<'r>(
        &'r self,
        pattern: &'r PathPattern,
        folder: &'r Path,
    ) -> impl Iterator<Item = Option<Reached>> + 'r {
        let bases = if pattern.is_absolute() {
            None
        } else {
            Some(self.bases.iter())
        };
        let absolute = pattern.is_absolute().then(|| pattern.reached(folder, None));
        let relative = bases.into_iter().flatten().map(move |base| {
            let below = match folder.strip_prefix(base) {
                Ok(below) => below,
                Err(_) if base.starts_with(folder) => Path::new(""),
                Err(_) => return None,
            };
            pattern.reached(folder, Some(below))
        });
        absolute.into_iter().chain(relative)
    }

    /// All names of a path, each once: by links on the way that rules name, and in a
    /// tree of its own, which has others than the disk.
    fn with_seen<'p>(&self, names: &[&'p Path]) -> Vec<Cow<'p, Path>> {
        let mut all: Vec<Cow<'p, Path>> = Vec::with_capacity(names.len());
        let mut add = |name: Cow<'p, Path>| {
            if !all.contains(&name) {
                all.push(name);
            }
        };
        for name in names {
            add(Cow::Borrowed(name));
            for named in self.aliases.iter().filter_map(|alias| alias.name(name)) {
                add(Cow::Owned(named));
            }
            let Some(seen) = self.scope.as_ref().map(|scope| scope.seen(name)) else {
                continue;
            };
            if seen != *name {
                let below = seen.strip_prefix("/").ok();
                let first = self.bases.first();
                if let (Some(below), Some(first)) = (below, first) {
                    add(Cow::Owned(first.join(below)));
                }
                add(Cow::Owned(seen.into_owned()));
            }
        }
        all
    }

    /// Whether what a rule that closes something names lies below a folder, by a link.
    fn leads_below<'r>(&'r self, folder: &'r Path) -> impl Iterator<Item = &'r Alias> {
        let aliases = self.aliases.iter();
        aliases.filter(move |alias| alias.real.starts_with(folder))
    }

    fn may_close(&self, rule: &Rule) -> bool {
        match rule.verdict() {
            Verdict::Deny => true,
            Verdict::Ask => self.asks != Asks::Open,
            Verdict::Allow => false,
        }
    }
}

/// A rule that decides about a path, and those before it in its file.
struct Decided<'r> {
    file: usize,
    number: usize,
    rule: &'r Rule,
    before: &'r [Rule],
}

impl Closing for PathRules {
    fn closes(&self, names: &[&Path]) -> Option<Closed> {
        let mut closed: Option<Closed> = None;
        for name in self.with_seen(names) {
            for decided in self.deciding(&name) {
                let Some(why) = self.why(&decided) else {
                    continue;
                };
                let opens = |rule: &Rule| {
                    rule.verdict() != Verdict::Deny && self.reaches_below(rule, &name)
                };
                let open_inside = decided.before.iter().any(opens);
                closed = Some(match closed {
                    None => Closed { why, open_inside },
                    Some(before) => Closed {
                        why: if before.why == Why::Denied {
                            before.why
                        } else {
                            why
                        },
                        open_inside: before.open_inside && open_inside,
                    },
                });
            }
        }
        closed
    }

    fn closes_below(&self, names: &[&Path]) -> bool {
        let names = self.with_seen(names);
        let mut rules = self.files.iter().flatten();
        let mut led = names.iter().flat_map(|name| self.leads_below(name));
        rules.any(|rule| {
            let mut names = names.iter();
            self.may_close(rule) && names.any(|name| self.reaches_below(rule, name))
        }) || led.next().is_some()
    }

    fn standing(&self, names: &[&Path]) -> u64 {
        let mut hasher = DefaultHasher::new();
        for name in self.with_seen(names) {
            let is_above = self.bases.iter().any(|base| base.starts_with(&name));
            let led: Vec<&Alias> = self.leads_below(&name).collect();
            // What lies at a certain path matters there.
            if is_above || !led.is_empty() {
                (&name, led).hash(&mut hasher);
            }
            let patterns = self.files.iter().flatten().filter_map(Rule::paths);
            for pattern in patterns {
                for reached in self.reached(pattern, &name) {
                    reached.hash(&mut hasher);
                }
            }
        }
        hasher.finish()
    }

    fn places(&self) -> Vec<Closable> {
        let mut places: Vec<Closable> = Vec::new();
        let denies = |rule: &&Rule| rule.verdict() == Verdict::Deny;
        for rule in self.files.iter().flatten().filter(denies) {
            let Some(pattern) = rule.paths() else {
                continue;
            };
            let (literal, extent) = pattern.literal();
            let named = self.bases.iter().map(|base| base.join(&literal));
            for path in named.chain(self.in_tree(&Path::new("/").join(&literal))) {
                let place = Closable {
                    path,
                    extent,
                    rule: format!("{} {rule}", rule.place()),
                };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        places
    }

    fn version(&self) -> u64 {
        self.fingerprint()
    }

    fn ways(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.aliases.hash(&mut hasher);
        hasher.finish()
    }
}

impl PathRules {
    /// The rules as they are written, and where they start.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for rules in &self.files {
            rules.len().hash(&mut hasher);
            for rule in rules {
                rule.to_string().hash(&mut hasher);
            }
        }
        self.bases.hash(&mut hasher);
        hasher.finish()
    }

    /// Where a path of a tree of its own is on the disk, and the folders of the disk
    /// that lie below it in that tree.
    fn in_tree(&self, named: &Path) -> Vec<PathBuf> {
        let tree = self.scope.as_ref().filter(|scope| !scope.is_on_disk());
        let Some(scope) = tree else {
            return Vec::new();
        };
        let path = named
            .to_str()
            .and_then(|named| scope.resolve(named, haft_ops::Access::Read).ok())
            .filter(|path| path.root().dir().is_some());
        let itself = path.map(|path| path.real().to_owned());
        let folders = scope.mounted_folders().into_iter();
        let below = folders.filter(|(at, _)| at.starts_with(named));
        itself
            .into_iter()
            .chain(below.map(|(_, real)| real))
            .collect()
    }
}

/// Whether a rule is about what commands may read.
fn is_about_reading(rule: &Rule) -> bool {
    let reads = rule.effect().is_none_or(|effect| effect == Effect::Read);
    rule.paths().is_some() && reads
}

impl Policy {
    /// The rules of each file that something is true of, in their order.
    fn kept(&self, is_about: impl Fn(&&Rule) -> bool) -> Vec<Vec<Rule>> {
        let files = self.files.iter();
        files
            .map(|file| file.rules.iter().filter(&is_about).cloned().collect())
            .collect()
    }

    /// Whether a rule hides paths from commands. Of the tools that rules name, it is
    /// asked which run any.
    #[must_use]
    pub fn hides_from_commands(&self, runs_commands: impl Fn(&str) -> bool) -> bool {
        self.rules().any(|rule| {
            rule.verdict() == Verdict::Deny
                && is_about_reading(rule)
                && (rule.tool() == "*" || runs_commands(rule.tool()))
        })
    }

    /// The other names of what rules about paths name, by links on the way.
    pub(crate) fn aliases(&self, bases: &[PathBuf], scope: &Scope) -> Vec<Alias> {
        Alias::of(self.rules(), bases, scope)
    }

    /// Whether any rule is about paths.
    pub(crate) fn has_paths(&self) -> bool {
        self.rules().any(|rule| rule.paths().is_some())
    }
}

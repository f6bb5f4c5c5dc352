//! Applying rules to paths that no call names: search results, and files that commands
//! could read. A path is judged as if the call had named it.

use super::judge::Named;
use super::pattern::PathPattern;
use super::rule::{Rule, Verdict};
use super::{Policy, RuleLocation};
use crate::Effect;
use haft_ops::Scope;
use haft_ops::glob::Reached;
use haft_ops::scope::filter::{Exclusion, ExclusionReason, FilterTarget, PathFilter};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The rules of each file about the paths of one tool.
#[derive(Debug, Clone)]
pub(crate) struct PathRules {
    files: Vec<Vec<Rule>>,
    /// Folders that relative globs start from, the user's first.
    bases: Vec<PathBuf>,
    /// How to treat a path that a rule asks about.
    asks: Asks,
    /// Finds other names of a real path.
    scope: Option<Scope>,
    /// Links on the way to paths that rules name.
    aliases: Vec<Alias>,
}

/// A real path and the name that a rule uses for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Alias {
    real: PathBuf,
    named: PathBuf,
}

impl Alias {
    /// Returns the name that the rule would use for a path below it.
    pub(crate) fn name(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.real).ok()?;
        let is_itself = below.as_os_str().is_empty();
        Some(if is_itself {
            self.named.clone()
        } else {
            self.named.join(below)
        })
    }

    /// Finds links on the way to the literal part of the rules' globs, on the disk and in a
    /// virtual tree. Links inside the work folder that lead to it or to a parent are ignored,
    /// because they would give everything a second name.
    fn of<'r>(
        rules: impl Iterator<Item = &'r Rule>,
        bases: &[PathBuf],
        scope: &Scope,
    ) -> Vec<Self> {
        let mut aliases: Vec<Self> = Vec::new();
        let on_disk = scope.is_on_disk();
        let on_disk_bases = || {
            let is_tree = |base: &&PathBuf| base.parent().is_none() && !on_disk;
            bases.iter().filter(move |base| !is_tree(base))
        };
        for rule in rules.filter(|rule| rule.verdict() != Verdict::Allow) {
            let Some(pattern) = rule.paths() else {
                continue;
            };
            let (literal, _) = pattern.literal();
            let named = on_disk_bases().map(|base| base.join(&literal));
            let found = named.filter_map(|named| {
                let real = haft_ops::scope::real(&named)?;
                let is_inside = named.starts_with(scope.work_dir());
                Some((Self { real, named }, is_inside))
            });
            let in_tree = Path::new("/").join(&literal);
            let tree = on_disk_path(scope, &in_tree).filter(|_| literal.file_name().is_some());
            let tree = tree.map(|real| {
                let named = in_tree;
                (Self { real, named }, true)
            });
            for (alias, is_inside) in found.chain(tree) {
                let leads_up = on_disk_bases().any(|base| base.starts_with(&alias.real));
                if alias.real != alias.named
                    && !(leads_up && is_inside)
                    && !aliases.contains(&alias)
                {
                    aliases.push(alias);
                }
            }
        }
        aliases
    }
}

/// How to treat a path that a rule asks about.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Asks {
    /// Closed, unless the rule has already asked about the call itself. Each rule is given
    /// as the index of the file and of the rule in it.
    Close(Vec<(usize, usize)>),
    /// Always open, because everything is approved.
    Open,
}

impl PathRules {
    /// Returns the rules that close paths to a tool that reads; `None` if no rule does.
    pub(crate) fn reading(
        policy: &Policy,
        tool: &str,
        effect: Effect,
        bases: Vec<PathBuf>,
        scope: &Scope,
    ) -> Option<Self> {
        let is_about = |rule: &&Rule| rule.is_about_tool(tool, effect, Effect::Read);
        let rules = Self {
            files: policy.filtered(is_about),
            bases,
            asks: Asks::Close(Vec::new()),
            scope: None,
            aliases: Vec::new(),
        };
        let closes = |rule: &Rule| rule.verdict() > Verdict::Review && rule.paths().is_some();
        let any = rules.files.iter().flatten().any(closes);
        any.then(|| rules.with_aliases(scope))
    }

    /// Returns the rules that close paths to the commands of a tool, or to all commands
    /// without a tool. Commands do not declare paths, so a rule about every call of a tool
    /// does not count here, and a rule that asks cannot be answered.
    pub(crate) fn commands(
        policy: &Policy,
        tool: Option<&str>,
        bases: Vec<PathBuf>,
        scope: Scope,
    ) -> Option<Self> {
        let is_about = |rule: &&Rule| {
            is_about_reading(rule) && (rule.tool() == "*" || Some(rule.tool()) == tool)
        };
        // Commands run on the disk, and a virtual tree has other paths than the disk.
        let mut bases = bases;
        if !scope.is_on_disk() {
            bases.retain(|base| base == scope.work_dir() || base.parent().is_some());
        }
        let rules = Self::without_calls(policy.filtered(is_about), Asks::Open, bases, scope);
        let denies = |rule: &Rule| rule.verdict() == Verdict::Deny;
        let any = rules.files.iter().flatten().any(denies);
        any.then_some(rules)
    }

    /// Returns the rules that close files to a prompt which they would become part of
    /// without a call. Only rules about the paths of all tools count, as for commands. A
    /// rule that asks closes, because there is no call to ask about.
    pub(crate) fn prompt(policy: &Policy, bases: Vec<PathBuf>, scope: Scope) -> Option<Self> {
        let is_about = |rule: &&Rule| is_about_reading(rule) && rule.tool() == "*";
        let asks = Asks::Close(Vec::new());
        let rules = Self::without_calls(policy.filtered(is_about), asks, bases, scope);
        let closes = |rule: &Rule| rule.verdict() > Verdict::Review;
        let any = rules.files.iter().flatten().any(closes);
        any.then_some(rules)
    }

    /// Creates rules for paths that no call names.
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

    /// Opens everything that rules ask about, because everything is approved.
    pub(crate) fn with_all_approved(mut self) -> Self {
        self.asks = Asks::Open;
        self
    }

    /// Opens the paths whose rules also asked about these names, because the user approved
    /// the call that names them.
    pub(crate) fn with_approved(mut self, names: &[&Path]) -> Self {
        let decided: Vec<_> = names.iter().flat_map(|name| self.deciding(name)).collect();
        let numbers = decided.iter().map(|decided| (decided.file, decided.number));
        self.asks = Asks::Close(numbers.collect());
        self
    }

    /// Returns the globs that close something, and their locations.
    pub(crate) fn denying(&self) -> impl Iterator<Item = (&str, &RuleLocation)> {
        let denies = |rule: &&Rule| rule.verdict() == Verdict::Deny;
        let rules = self.files.iter().flatten().filter(denies);
        rules.filter_map(|rule| Some((rule.paths()?.text(), rule.location())))
    }

    /// Returns the rule of each file that decides about a path.
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

    fn why(&self, decided: &Decided<'_>) -> Option<ExclusionReason> {
        match (decided.rule.verdict(), &self.asks) {
            (Verdict::Deny, _) => Some(ExclusionReason::Denied),
            (Verdict::Ask, Asks::Close(approved)) => {
                let is_approved = approved.contains(&(decided.file, decided.number));
                (!is_approved).then_some(ExclusionReason::NeedsApproval)
            }
            (Verdict::Ask, Asks::Open) | (Verdict::Allow | Verdict::Review, _) => None,
        }
    }

    /// Whether a rule may match anything below a folder.
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

    /// Returns how far into the glob of a rule a folder leads, from each base.
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

    /// Returns all names of a path without duplicates: by links that rules name, and in a
    /// virtual tree, which has other paths than the disk.
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
            let Some(seen) = self.scope.as_ref().map(|scope| scope.visible_path(name)) else {
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

    /// Returns the links below a folder that lead to paths closed by a rule.
    fn leads_below<'r>(&'r self, folder: &'r Path) -> impl Iterator<Item = &'r Alias> {
        let aliases = self.aliases.iter();
        aliases.filter(move |alias| alias.real.starts_with(folder))
    }

    fn may_close(&self, rule: &Rule) -> bool {
        match rule.verdict() {
            Verdict::Deny => true,
            Verdict::Ask => self.asks != Asks::Open,
            // A review is about changes, so it closes nothing to a reader.
            Verdict::Allow | Verdict::Review => false,
        }
    }
}

/// A rule that decides about a path, and the rules before it in its file.
struct Decided<'r> {
    file: usize,
    number: usize,
    rule: &'r Rule,
    before: &'r [Rule],
}

impl PathFilter for PathRules {
    fn excludes(&self, names: &[&Path]) -> Option<Exclusion> {
        let mut closed: Option<Exclusion> = None;
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
                    None => Exclusion { why, open_inside },
                    Some(before) => Exclusion {
                        why: if before.why == ExclusionReason::Denied {
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

    fn excludes_below(&self, names: &[&Path]) -> bool {
        let names = self.with_seen(names);
        let mut rules = self.files.iter().flatten();
        let mut led = names.iter().flat_map(|name| self.leads_below(name));
        rules.any(|rule| {
            let mut names = names.iter();
            self.may_close(rule) && names.any(|name| self.reaches_below(rule, name))
        }) || led.next().is_some()
    }

    fn hash_below(&self, names: &[&Path]) -> u64 {
        let mut hasher = DefaultHasher::new();
        for name in self.with_seen(names) {
            let is_above = self.bases.iter().any(|base| base.starts_with(&name));
            let led: Vec<&Alias> = self.leads_below(&name).collect();
            // The content of that path matters there.
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

    fn targets(&self) -> Vec<FilterTarget> {
        let mut targets: Vec<FilterTarget> = Vec::new();
        let denies = |rule: &&Rule| rule.verdict() == Verdict::Deny;
        for rule in self.files.iter().flatten().filter(denies) {
            let Some(pattern) = rule.paths() else {
                continue;
            };
            let (literal, extent) = pattern.literal();
            let named = self.bases.iter().map(|base| base.join(&literal));
            for path in named.chain(self.in_tree(&Path::new("/").join(&literal))) {
                let target = FilterTarget {
                    path,
                    extent,
                    rule: format!("{} {rule}", rule.location()),
                };
                if !targets.contains(&target) {
                    targets.push(target);
                }
            }
        }
        targets
    }

    fn version(&self) -> u64 {
        self.fingerprint()
    }

    fn links_version(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.aliases.hash(&mut hasher);
        hasher.finish()
    }
}

impl PathRules {
    /// Returns a hash of the rules as written and of the folders they start from.
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

    /// Returns where a path of a virtual tree is on disk, and the folders on disk that are
    /// mounted below it.
    fn in_tree(&self, named: &Path) -> Vec<PathBuf> {
        let tree = self.scope.as_ref().filter(|scope| !scope.is_on_disk());
        let Some(scope) = tree else {
            return Vec::new();
        };
        let itself = on_disk_path(scope, named);
        let folders = scope.mounted_folders().into_iter();
        let below = folders.filter(|(at, _)| at.starts_with(named));
        itself
            .into_iter()
            .chain(below.map(|(_, real)| real))
            .collect()
    }
}

/// Returns where a path of a virtual tree is on disk. Returns `None` if the scope is not a tree,
/// or the path is stored elsewhere.
fn on_disk_path(scope: &Scope, named: &Path) -> Option<PathBuf> {
    let named = named.to_str().filter(|_| !scope.is_on_disk())?;
    let path = scope.resolve(named, haft_ops::Access::Read).ok()?;
    path.root().dir().is_some().then(|| path.real().to_owned())
}

/// Whether a rule limits what commands may read.
fn is_about_reading(rule: &Rule) -> bool {
    let reads = rule.effect().is_none_or(|effect| effect == Effect::Read);
    rule.paths().is_some() && reads
}

impl Policy {
    /// Returns the rules of each file that satisfy a condition, in order.
    fn filtered(&self, is_about: impl Fn(&&Rule) -> bool) -> Vec<Vec<Rule>> {
        let files = self.files.iter();
        files
            .map(|file| file.rules.iter().filter(&is_about).cloned().collect())
            .collect()
    }

    /// Whether a rule hides paths from commands. `runs_commands` tells whether a tool that
    /// a rule names runs commands.
    #[must_use]
    pub fn hides_from_commands(&self, runs_commands: impl Fn(&str) -> bool) -> bool {
        self.rules().any(|rule| {
            rule.verdict() == Verdict::Deny
                && is_about_reading(rule)
                && (rule.tool() == "*" || runs_commands(rule.tool()))
        })
    }

    /// Returns other names of paths in rules, by links on the way.
    pub(crate) fn aliases(&self, bases: &[PathBuf], scope: &Scope) -> Vec<Alias> {
        Alias::of(self.rules(), bases, scope)
    }

    /// Whether any rule is about paths.
    pub(crate) fn has_paths(&self) -> bool {
        self.rules().any(|rule| rule.paths().is_some())
    }
}

//! What the rules of a session close beyond what its calls name.

use super::{Approve, Runtime, Session};
use crate::external::plugin::Programs;
use crate::policy::{PathRules, lexical};
use crate::{Effect, Place, Policy};
use haft_ops::exec::Surroundings;
use haft_ops::scope::closing::Why;
use haft_ops::scope::{Closing, FileRules, Places, Reading, Writing};
use haft_ops::{Access, FilePath, Scope};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is known of a path.
#[derive(Clone, Copy)]
pub(crate) enum Known<'a> {
    /// The call names it so, and was judged by that: what a person was asked about for
    /// it, they said yes to.
    Approved(&'a str),
    /// It was given so while the call ran.
    Given(&'a str),
    /// It was found.
    Found,
}

impl Session {
    /// Where relative paths of rules start.
    pub(super) fn rule_bases(&self) -> Vec<PathBuf> {
        let mut bases = self.bases.clone();
        let work_dir = self.scope.work_dir();
        if !bases.iter().any(|base| base == work_dir) {
            bases.push(work_dir.to_owned());
        }
        bases
    }

    /// A path that a call of a tool names or finds: what is found from it is judged as
    /// if the call had named it.
    pub(crate) fn judged(&self, tool: &str, path: FilePath, known: Known<'_>) -> FilePath {
        let policy = self.approval.policy();
        if !policy.has_paths() {
            return path;
        }
        let effect = self
            .tools
            .get(tool)
            .map_or(Effect::Read, |tool| tool.effect());
        let Some(rules) = PathRules::reading(&policy, tool, effect, self.rule_bases(), &self.scope)
        else {
            return path;
        };
        let named = match known {
            Known::Approved(given) | Known::Given(given) => {
                let meant = self.paths.meant(&self.scope, given);
                lexical(&self.scope.work_dir().join(meant))
            }
            Known::Found => path.place().to_owned(),
        };
        let rules = match known {
            _ if self.approval.approve == Approve::Auto => rules.with_all_approved(),
            Known::Approved(_) => rules.with_approved(&[&named, path.real()]),
            Known::Given(_) | Known::Found => rules,
        };
        path.judged_by(Arc::new(rules), named)
    }

    /// The rules about files that become part of a prompt without any call.
    fn prompt_rules(&self) -> Option<Arc<dyn Closing>> {
        let policy = self.approval.policy();
        let rules = PathRules::prompt(&policy, self.rule_bases(), self.scope.clone())?;
        Some(match self.approval.approve {
            Approve::Auto => Arc::new(rules.with_all_approved()),
            _ => Arc::new(rules),
        })
    }

    /// Why a tool is left out: the rules close one of the files that its description comes
    /// from, and the description would become part of the prompt.
    pub(super) fn kept_from_prompt(&self, files: &[PathBuf]) -> Option<String> {
        let rules = self.prompt_rules().filter(|_| !files.is_empty())?;
        let closed = files.iter().find_map(|file| {
            let real = haft_ops::scope::real(file).unwrap_or_else(|| file.clone());
            let closed = rules.closes(&[file, &real])?;
            Some((file, closed.why))
        });
        closed.map(|(file, why)| {
            let does = match why {
                Why::Denied => "denies",
                Why::Asks => "asks about",
            };
            format!(
                "the policy {does} {}, and what the tool says of itself would become part of \
                 the prompt; allow the path to \"*\" before that rule to use the tool",
                file.display()
            )
        })
    }

    fn command_rules(&self, tool: Option<&str>) -> Option<PathRules> {
        let policy = self.approval.policy();
        if !policy.has_paths() {
            return None;
        }
        PathRules::commands(&policy, tool, self.rule_bases(), self.scope.clone())
    }

    /// The surroundings of commands of a tool, from which is hidden what the rules
    /// close to them.
    pub(crate) fn closed_to(&self, tool: &str, surroundings: &Surroundings) -> Surroundings {
        let mut surroundings = surroundings.clone();
        let rules = self.command_rules(Some(tool));
        surroundings.closing = rules.map(|rules| Arc::new(rules) as Arc<dyn Closing>);
        surroundings
    }

    /// What is hidden from the commands of a tool: each glob, and where it is written.
    pub(crate) fn hidden_from(&self, tool: &str) -> Vec<(String, Place)> {
        let rules = self.command_rules(Some(tool));
        let hidden = rules.iter().flat_map(PathRules::closing);
        hidden
            .map(|(glob, place)| (glob.to_owned(), place.clone()))
            .collect()
    }
}

impl Runtime {
    /// A folder of the work folder, for who shows what is in it to a person or a model
    /// apart from any call: what is closed to all tools is left out.
    #[must_use]
    pub fn shown_from(&self, folder: FilePath) -> FilePath {
        self.session.judged("", folder, Known::Found)
    }

    /// The files in and below a folder as far as they may become part of a prompt
    /// without any call. Links out of the folder are not followed. Secret places and
    /// haft's own folders are closed in every mode, unless the folder lies in one of
    /// haft's own; so is what the rules deny to all tools, or ask about.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn prompt_files(&self, folder: &Path) -> haft_ops::Result<PromptFiles> {
        let session = &self.session;
        let places = &session.origin.ground.places;
        let real = haft_ops::scope::real(folder).unwrap_or_else(|| folder.to_owned());
        let is_elsewhere = |own: &&PathBuf| {
            let own = haft_ops::scope::real(own);
            own.is_none_or(|own| !real.starts_with(own))
        };
        let scope = Scope::disk(Places {
            work_dir: folder.to_owned(),
            roots: Vec::new(),
            readable: Vec::new(),
            home: places.home.clone(),
            git_configs: Vec::new(),
            own: places.own.iter().filter(is_elsewhere).cloned().collect(),
            protect: Vec::new(),
            temp: None,
            rules: FileRules {
                reading: Reading::Roots,
                writing: Writing::Nothing,
            },
        })?;
        Ok(PromptFiles {
            scope,
            rules: session.prompt_rules(),
        })
    }

    /// A file of the session that is to become part of a prompt without any call. If the
    /// rules keep it from that, [`FilePath::closed`] says so.
    #[must_use]
    pub fn for_prompt(&self, path: FilePath) -> FilePath {
        let named = path.place().to_owned();
        match self.session.prompt_rules() {
            Some(rules) => path.judged_by(rules, named),
            None => path,
        }
    }

    /// The person's home folder, if the session knows it.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.session.origin.ground.places.home.as_deref()
    }
}

/// The files below a folder that may become part of a prompt.
#[derive(Debug, Clone)]
pub struct PromptFiles {
    scope: Scope,
    rules: Option<Arc<dyn Closing>>,
}

impl PromptFiles {
    /// A file by its path from the folder, or an absolute path in it. What the rules
    /// close is [`FilePath::closed`].
    ///
    /// # Errors
    /// As [`Scope::resolve`].
    pub fn resolve(&self, file: &Path) -> haft_ops::Result<FilePath> {
        let given = file.to_string_lossy();
        let path = self.scope.resolve_as(&given, file, Access::Read)?;
        Ok(match &self.rules {
            Some(rules) => {
                let named = lexical(&self.scope.work_dir().join(file));
                path.judged_by(Arc::clone(rules), named)
            }
            None => path,
        })
    }

    /// Where files may be.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// How programs are run that are no tool of their own: what is closed to all tools is
/// hidden from them.
pub(super) fn programs(
    programs: Option<Programs>,
    policy: &Policy,
    bases: &[PathBuf],
    scope: &Scope,
) -> Option<Programs> {
    let mut programs = programs?;
    let rules = PathRules::commands(policy, None, bases.to_owned(), scope.clone());
    let rules = rules.map(|rules| Arc::new(rules) as Arc<dyn Closing>);
    for run in [&mut programs.own, &mut programs.guests, &mut programs.alone] {
        let mut closed = (**run).clone();
        closed.closing.clone_from(&rules);
        *run = Arc::new(closed);
    }
    Some(programs)
}

#[cfg(test)]
mod tests;

//! Applying rules about paths beyond those that a call names: to search results, commands
//! and prompts.

use super::{Approve, Runtime, Session};
use crate::external::plugin::Programs;
use crate::policy::{PathRules, lexical};
use crate::{Effect, Policy, RuleLocation};
use haft_ops::exec::ExecContext;
use haft_ops::scope::filter::ExclusionReason;
use haft_ops::scope::{FileRules, PathFilter, Reading, ScopeConfig, Writing};
use haft_ops::{Access, FilePath, Scope};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The way in which a call came to use a path.
#[derive(Clone, Copy)]
pub(crate) enum Known<'a> {
    /// Named in the arguments as given here, and checked with them: any question about it
    /// has been answered with yes.
    Approved(&'a str),
    /// Given as written here while the call ran.
    Given(&'a str),
    /// Found, for example by a search.
    Found,
}

impl Session {
    /// Returns the folders that relative paths in rules start from.
    pub(super) fn rule_bases(&self) -> Vec<PathBuf> {
        let mut bases = self.shared.bases.clone();
        let work_dir = self.scope.work_dir();
        if !bases.iter().any(|base| base == work_dir) {
            bases.push(work_dir.to_owned());
        }
        bases
    }

    /// Attaches the policy to a path that a tool names or finds: paths found below it are
    /// checked as if the call had named them.
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
                let interpreted = self.shared.toolset.paths.interpret(&self.scope, given);
                lexical(&self.scope.work_dir().join(interpreted))
            }
            Known::Found => path.virtual_path().to_owned(),
        };
        let rules = match known {
            _ if self.approval.approve == Approve::Auto => rules.with_all_approved(),
            Known::Approved(_) => rules.with_approved(&[&named, path.real()]),
            Known::Given(_) | Known::Found => rules,
        };
        path.with_filter(Arc::new(rules), named)
    }

    /// Returns the rules for files that become part of a prompt without a call.
    fn prompt_rules(&self) -> Option<Arc<dyn PathFilter>> {
        let policy = self.approval.policy();
        let rules = PathRules::prompt(&policy, self.rule_bases(), self.scope.clone())?;
        Some(match self.approval.approve {
            Approve::Auto => Arc::new(rules.with_all_approved()),
            _ => Arc::new(rules),
        })
    }

    /// Returns why a tool is not loaded: a rule closes one of the files that its
    /// description comes from, and the description would become part of the prompt.
    pub(super) fn kept_from_prompt(&self, files: &[PathBuf]) -> Option<String> {
        let rules = self.prompt_rules().filter(|_| !files.is_empty())?;
        let closed = files.iter().find_map(|file| {
            let real = haft_ops::scope::real(file).unwrap_or_else(|| file.clone());
            let closed = rules.excludes(&[file, &real])?;
            Some((file, closed.why))
        });
        closed.map(|(file, why)| {
            let does = match why {
                ExclusionReason::Denied => "denies",
                ExclusionReason::NeedsApproval => "asks about",
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

    /// Returns the environment for commands of a tool, with everything hidden that the
    /// rules close to them.
    pub(crate) fn with_denied_paths_hidden(
        &self,
        tool: &str,
        exec_context: &ExecContext,
    ) -> ExecContext {
        let mut exec_context = exec_context.clone();
        let rules = self.command_rules(Some(tool));
        exec_context.filter = rules.map(|rules| Arc::new(rules) as Arc<dyn PathFilter>);
        exec_context
    }

    /// Returns what is hidden from the commands of a tool: each glob and its location.
    pub(crate) fn hidden_from(&self, tool: &str) -> Vec<(String, RuleLocation)> {
        let rules = self.command_rules(Some(tool));
        let hidden = rules.iter().flat_map(PathRules::denying);
        hidden
            .map(|(glob, place)| (glob.to_owned(), place.clone()))
            .collect()
    }
}

impl Runtime {
    /// Returns a folder for showing its content to the user or the model outside any call.
    /// Paths that are closed to all tools are left out.
    #[must_use]
    pub fn shown_from(&self, folder: FilePath) -> FilePath {
        self.session.judged("", folder, Known::Found)
    }

    /// Returns the files below a folder that may become part of a prompt without a call.
    /// Links out of the folder are not followed. Secret paths and haft's own folders are
    /// closed in every mode, unless the folder is inside one of haft's own. Files that a
    /// rule denies to all tools, or asks about, are closed too.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn prompt_files(&self, folder: &Path) -> haft_ops::Result<PromptFiles> {
        let session = &self.session;
        let config = &session.shared.origin.setup.scope_config;
        let real = haft_ops::scope::real(folder).unwrap_or_else(|| folder.to_owned());
        let is_elsewhere = |own: &&PathBuf| {
            let own = haft_ops::scope::real(own);
            own.is_none_or(|own| !real.starts_with(own))
        };
        let scope = Scope::disk(ScopeConfig {
            work_dir: folder.to_owned(),
            roots: Vec::new(),
            readable: Vec::new(),
            home: config.home.clone(),
            git_configs: Vec::new(),
            own: config.own.iter().filter(is_elsewhere).cloned().collect(),
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

    /// Checks a file that is to become part of a prompt without a call. If the rules forbid
    /// it, [`FilePath::exclusion`] says so.
    #[must_use]
    pub fn for_prompt(&self, path: FilePath) -> FilePath {
        let named = path.virtual_path().to_owned();
        match self.session.prompt_rules() {
            Some(rules) => path.with_filter(rules, named),
            None => path,
        }
    }

    /// Returns the user's home folder, if known.
    #[must_use]
    pub fn home(&self) -> Option<&Path> {
        self.session
            .shared
            .origin
            .setup
            .scope_config
            .home
            .as_deref()
    }
}

/// Files below a folder that may become part of a prompt.
#[derive(Debug, Clone)]
pub struct PromptFiles {
    scope: Scope,
    rules: Option<Arc<dyn PathFilter>>,
}

impl PromptFiles {
    /// Checks a file, given relative to the folder or as an absolute path inside it. If the
    /// rules forbid it, [`FilePath::exclusion`] says so.
    ///
    /// # Errors
    /// As [`Scope::resolve`].
    pub fn resolve(&self, file: &Path) -> haft_ops::Result<FilePath> {
        let given = file.to_string_lossy();
        let path = self.scope.resolve_as(&given, file, Access::Read)?;
        Ok(match &self.rules {
            Some(rules) => {
                let named = lexical(&self.scope.work_dir().join(file));
                path.with_filter(Arc::clone(rules), named)
            }
            None => path,
        })
    }

    /// Returns the scope: roots and path rules.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }
}

/// Returns how to run programs, with everything hidden that is closed to all tools.
pub(super) fn programs(
    programs: Option<Programs>,
    policy: &Policy,
    bases: &[PathBuf],
    scope: &Scope,
) -> Option<Programs> {
    let mut programs = programs?;
    let rules = PathRules::commands(policy, None, bases.to_owned(), scope.clone());
    let rules = rules.map(|rules| Arc::new(rules) as Arc<dyn PathFilter>);
    for run in [
        &mut programs.own,
        &mut programs.guests,
        &mut programs.scratch_only,
    ] {
        let mut closed = (**run).clone();
        closed.filter.clone_from(&rules);
        *run = Arc::new(closed);
    }
    Some(programs)
}

#[cfg(test)]
mod tests;

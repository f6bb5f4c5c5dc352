//! Rules about exceptions: access beyond the sandbox that the user grants to commands.
//!
//! Rules name them like tools: `outside_write` with a path, `unsandboxed` with a command;
//! `network` has a module of its own. Without a rule the user is asked. Only the user's own
//! rules that name the exception can allow it: neither a project's rules nor a rule about
//! every tool widens the sandbox. No rule allows `unsandboxed`: what a command line does
//! outside depends on files that commands can change, so the user sees each one.

use super::judge::{DecidedBy, Judgement, PolicyInput};
use super::rule::{RuleLocation, Verdict};
use super::suggest::Suggestion;
use super::{Policy, RuleFile, RuleOwner};
use crate::{Effect, Resource};
use std::path::{Path, PathBuf};

/// Name that rules about commands outside the sandbox use for the tool. They can only ask or
/// deny.
pub const UNSANDBOXED: &str = "unsandboxed";

/// Name that rules about folders outside the work folder, which commands may write, use for
/// the tool.
pub const OUTSIDE_WRITE: &str = "outside_write";

/// Checks what is special about rules for exceptions.
pub(super) fn check(verdict: Verdict, tool: &str) -> Result<(), String> {
    let is_exception = [UNSANDBOXED, OUTSIDE_WRITE].contains(&tool);
    match verdict {
        Verdict::Allow if tool == UNSANDBOXED => Err(
            "commands outside the sandbox are asked about one by one: use ask or deny".to_owned(),
        ),
        Verdict::Review if is_exception => Err(format!(
            "{tool} cannot be reviewed afterwards: use ask or deny"
        )),
        _ => Ok(()),
    }
}

impl Policy {
    /// Decides whether commands may run outside the sandbox.
    pub(crate) fn judge_unsandboxed(&self, act: &PolicyInput<'_>) -> Judgement {
        let commands: Vec<Resource> = act
            .resources
            .iter()
            .filter(|one| matches!(one, Resource::Command(_) | Resource::Program(_)))
            .cloned()
            .collect();
        let act = PolicyInput {
            tool: UNSANDBOXED,
            effect: Effect::Execute,
            resources: &commands,
            ..*act
        };
        self.judge_exception(&act, "it would run outside the sandbox")
    }

    /// Decides whether commands may write a folder outside the work folder.
    pub(crate) fn judge_outside_write(&self, act: &PolicyInput<'_>, folder: &str) -> Judgement {
        let resources = [Resource::Path(folder.to_owned(), crate::Access::Write)];
        let act = PolicyInput {
            tool: OUTSIDE_WRITE,
            effect: Effect::Write,
            resources: &resources,
            ..*act
        };
        self.judge_exception(&act, "it is outside the work folder")
    }

    fn judge_exception(&self, act: &PolicyInput<'_>, reason: &str) -> Judgement {
        let mut judgement = self.for_exceptions().judge(act);
        for part in &mut judgement.parts {
            if matches!(part.by, DecidedBy::Default | DecidedBy::Danger(_)) {
                part.verdict = Verdict::Ask;
                part.by = DecidedBy::Session(reason.to_owned());
            }
            // There is nothing to review afterwards.
            if part.verdict == Verdict::Review {
                part.verdict = Verdict::Ask;
            }
        }
        let verdicts = judgement.parts.iter().map(|part| part.verdict);
        judgement.verdict = verdicts.max().unwrap_or(Verdict::Ask);
        judgement
    }

    /// Returns the rules that can decide about exceptions.
    fn for_exceptions(&self) -> Self {
        let files = self.files.iter().map(|file| {
            let rules = file.rules.iter().filter(|rule| {
                rule.verdict() != Verdict::Allow
                    || (file.owner == RuleOwner::User && rule.tool() != "*")
            });
            RuleFile {
                owner: file.owner,
                rules: rules.cloned().collect(),
            }
        });
        Self::new(files.collect())
    }

    /// Returns the folders that the user's rules let every command write.
    pub(crate) fn outside_folders(&self, act: &PolicyInput<'_>) -> Vec<PathBuf> {
        let named = self
            .rules()
            .filter(|rule| rule.tool() == OUTSIDE_WRITE && rule.verdict() == Verdict::Allow);
        let folders = named.filter_map(|rule| {
            let glob = rule.paths()?.text();
            let folder = glob.strip_suffix("/**").unwrap_or(glob);
            Path::new(folder).is_absolute().then_some(folder)
        });
        let folders = folders.filter(|folder| {
            let judged = self.judge_outside_write(act, folder);
            judged.verdict == Verdict::Allow && haft_ops::scope::is_folder(Path::new(folder))
        });
        folders.map(PathBuf::from).collect()
    }

    /// Returns the rule that would let commands write a folder from now on.
    pub(crate) fn suggest_outside_write(
        &self,
        act: &PolicyInput<'_>,
        folder: &str,
        place: &RuleLocation,
    ) -> Option<Suggestion> {
        let judged = self.judge_outside_write(act, folder);
        let act = PolicyInput {
            tool: OUTSIDE_WRITE,
            ..*act
        };
        Suggestion::about(&act, &judged, place)
    }
}

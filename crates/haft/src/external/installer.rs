//! The person or project that installed a program, and how the program is isolated from
//! commands because of that.

use super::plugin::Programs;
use crate::runtime::Builder;
use crate::{Content, Error, Reply, Runtime};
use haft_ops::exec::{ExecContext, Isolation};
use haft_ops::executor::sandbox::Execution;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

/// The person or project that installed a program, which decides how it is sandboxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installer {
    /// The user. The program keeps network access, has its own `/tmp`, and cannot start
    /// programs in the work folder or the roots, except in folders that are
    /// [startable](Builder::startable).
    User,
    /// The user, who also allows it to start programs in any of these folders.
    UserTrustingFolders,
    /// A project. The program has network access only if commands do, and shares their
    /// `/tmp`.
    Project,
}

impl Installer {
    /// Whether a project installed it.
    #[must_use]
    pub fn is_project(self) -> bool {
        self == Self::Project
    }
}

/// Messages that programs print when the kernel refuses to start a program or load a
/// library.
const REFUSALS: [&str; 4] = [
    "ermission denied",
    "EACCES",
    "failed to map segment",
    "PermissionError",
];

/// Messages that programs print when a file does not exist.
const MISSING: [&str; 5] = [
    "o such file",
    "ENOENT",
    "not found",
    "does not exist",
    "doesn't exist",
];

impl Programs {
    pub(crate) fn of(&self, installer: Installer) -> &Arc<ExecContext> {
        match installer {
            Installer::User | Installer::UserTrustingFolders => &self.own,
            Installer::Project => &self.guests,
        }
    }

    /// Returns the environment and sandbox for a program of this name.
    pub(crate) fn around(&self, installer: Installer, name: &str) -> ExecContext {
        let mut exec_context = ExecContext::clone(self.of(installer));
        exec_context.isolation = self.isolation(installer, name);
        exec_context
    }

    /// Returns how it is isolated from commands. The user's own programs may have network
    /// access and secrets, so they must not load anything that a command wrote.
    fn isolation(&self, installer: Installer, name: &str) -> Option<Isolation> {
        let sandbox = self.of(installer).sandbox.as_ref()?;
        let execution = match installer {
            Installer::User => Execution::OutsideRoots {
                nor: self.inert.clone(),
                except: self.startable.clone(),
            },
            Installer::UserTrustingFolders => Execution::Anywhere,
            Installer::Project => return None,
        };
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let mut temp = sandbox.request().temp.clone();
        temp.as_mut_os_string()
            .push(format!("-{:016x}", hasher.finish()));
        Some(Isolation { temp, execution })
    }

    /// Returns a hint for a failure that the sandbox of this program may have caused.
    #[must_use]
    pub fn advice(&self, installer: Installer, words: &str) -> Option<&'static str> {
        self.of(installer).sandbox.as_ref()?;
        if installer == Installer::User && REFUSALS.iter().any(|known| words.contains(known)) {
            return Some(
                "if it tried to start a program in the work folder: your own plugins, MCP servers \
                 and tools cannot do that while the folder is not trusted; `haft trust` allows it \
                 if you run it in that folder",
            );
        }
        let is_about_temp = ["/tmp/", "/var/tmp/"]
            .iter()
            .any(|temp| words.contains(temp))
            && MISSING.iter().any(|known| words.contains(known));
        (!installer.is_project() && is_about_temp).then_some(
            "this tool has a /tmp of its own, which commands and file tools do not share; pass \
             files through the work folder",
        )
    }
}

impl Runtime {
    /// Adds a hint to a failure that the sandbox of the program may have caused.
    pub(crate) fn explained(
        &self,
        installer: Option<Installer>,
        outcome: Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        let Some(programs) = &self.session.programs else {
            return outcome;
        };
        let Some(installer) = installer else {
            return outcome;
        };
        let text = match &outcome {
            Ok(reply) if reply.is_error => reply.text(),
            Err(error @ (Error::Failed { .. } | Error::Operation(_))) => error.to_string(),
            _ => return outcome,
        };
        let advice = programs.advice(installer, &text);
        let Some(advice) = advice.filter(|advice| !text.contains(advice)) else {
            return outcome;
        };
        Ok(self.advised(outcome, advice))
    }

    /// Adds a hint below a reply.
    fn advised(&self, outcome: Result<Reply, Error>, advice: &str) -> Reply {
        let mut reply = outcome.unwrap_or_else(|error| self.failure(&error));
        let text = format!("[{advice}]");
        reply.content.push(Content::Text { text });
        reply
    }
}

impl Builder {
    /// Adds folders, besides the work folder and the roots, from which programs of
    /// [`Installer::User`] cannot start programs: the rest of a project.
    #[must_use]
    pub fn inert(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.inert.extend(folders);
        self
    }

    /// Adds folders from which programs of [`Installer::User`] may start programs although
    /// they are the work folder, a root or inert: those that the user trusts.
    #[must_use]
    pub fn startable(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.startable.extend(folders);
        self
    }
}

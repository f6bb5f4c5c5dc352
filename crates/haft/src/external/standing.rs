//! The origin of a program (user or project), and how it is isolated from commands because
//! of that.

use super::plugin::Programs;
use crate::runtime::Builder;
use crate::{Content, Error, Reply, Runtime};
use haft_ops::exec::{ExecContext, Isolation};
use haft_ops::executor::sandbox::Execution;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

/// The origin of a program, which decides how it is sandboxed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The user. The program keeps network access, has its own `/tmp`, and cannot start
    /// programs in the work folder or the roots, except in folders that are
    /// [startable](Builder::startable).
    Own,
    /// The user, who also allows it to start programs in any of these folders.
    Vouched,
    /// A project. The program has network access only if commands do, and shares their
    /// `/tmp`.
    Guest,
}

impl Standing {
    /// Whether a project installed it.
    #[must_use]
    pub fn is_guest(self) -> bool {
        self == Self::Guest
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
    pub(crate) fn of(&self, standing: Standing) -> &Arc<ExecContext> {
        match standing {
            Standing::Own | Standing::Vouched => &self.own,
            Standing::Guest => &self.guests,
        }
    }

    /// Returns the environment and sandbox for a program of this name.
    pub(crate) fn around(&self, standing: Standing, name: &str) -> ExecContext {
        let mut exec_context = ExecContext::clone(self.of(standing));
        exec_context.isolation = self.isolation(standing, name);
        exec_context
    }

    /// Returns how it is isolated from commands. The user's own programs may have network
    /// access and secrets, so they must not load anything that a command wrote.
    fn isolation(&self, standing: Standing, name: &str) -> Option<Isolation> {
        let sandbox = self.of(standing).sandbox.as_ref()?;
        let execution = match standing {
            Standing::Own => Execution::OutsideRoots {
                nor: self.inert.clone(),
                except: self.startable.clone(),
            },
            Standing::Vouched => Execution::Anywhere,
            Standing::Guest => return None,
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
    pub fn advice(&self, standing: Standing, words: &str) -> Option<&'static str> {
        self.of(standing).sandbox.as_ref()?;
        if standing == Standing::Own && REFUSALS.iter().any(|known| words.contains(known)) {
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
        (!standing.is_guest() && is_about_temp).then_some(
            "this tool has a /tmp of its own, which commands and file tools do not share; pass \
             files through the work folder",
        )
    }
}

impl Runtime {
    /// Adds a hint to a failure that the sandbox of the program may have caused.
    pub(crate) fn explained(
        &self,
        standing: Option<Standing>,
        outcome: Result<Reply, Error>,
    ) -> Result<Reply, Error> {
        let Some(programs) = &self.session.programs else {
            return outcome;
        };
        let Some(standing) = standing else {
            return outcome;
        };
        let text = match &outcome {
            Ok(reply) if reply.is_error => reply.text(),
            Err(error @ (Error::Failed { .. } | Error::Operation(_))) => error.to_string(),
            _ => return outcome,
        };
        let advice = programs.advice(standing, &text);
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
    /// [`Standing::Own`] cannot start programs: the rest of a project.
    #[must_use]
    pub fn inert(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.inert.extend(folders);
        self
    }

    /// Adds folders from which programs of [`Standing::Own`] may start programs although
    /// they are the work folder, a root or inert: those that the user trusts.
    #[must_use]
    pub fn startable(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.startable.extend(folders);
        self
    }
}

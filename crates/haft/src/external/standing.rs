//! Who vouches for a program, and how far it is separated from commands because of that.

use super::plugin::Programs;
use crate::runtime::Builder;
use crate::{Content, Error, Reply, Runtime};
use haft_ops::exec::{Apart, Surroundings};
use haft_ops::executor::sandbox::Execution;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

/// Who vouches for a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The person's own. It keeps the network and has a `/tmp` of its own, and no program
    /// in the work folder or the roots can be started by it, except from folders that are
    /// [startable](Builder::startable).
    Own,
    /// The same, but the person lets it start what is in any of these folders.
    Vouched,
    /// A guest, as what a project brings is: it has the network only where commands have
    /// it, and shares their `/tmp`.
    Guest,
}

impl Standing {
    /// Whether it is a guest.
    #[must_use]
    pub fn is_guest(self) -> bool {
        self == Self::Guest
    }
}

/// How a refusal of the kernel's to start a program or load a library is worded.
const REFUSALS: [&str; 4] = [
    "ermission denied",
    "EACCES",
    "failed to map segment",
    "PermissionError",
];

/// How it is worded that there is no such file.
const MISSING: [&str; 5] = [
    "o such file",
    "ENOENT",
    "not found",
    "does not exist",
    "doesn't exist",
];

impl Programs {
    pub(crate) fn of(&self, standing: Standing) -> &Arc<Surroundings> {
        match standing {
            Standing::Own | Standing::Vouched => &self.own,
            Standing::Guest => &self.guests,
        }
    }

    /// The surroundings for a program of this name.
    pub(crate) fn around(&self, standing: Standing, name: &str) -> Surroundings {
        let mut surroundings = Surroundings::clone(self.of(standing));
        surroundings.apart = self.apart(standing, name);
        surroundings
    }

    /// How it is separated from commands. The person's own programs may have the network
    /// and secrets, so they must not load anything that a command wrote.
    fn apart(&self, standing: Standing, name: &str) -> Option<Apart> {
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
        Some(Apart { temp, execution })
    }

    /// A hint for a failure that the sandbox around this program may have caused.
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
    /// Adds a hint to a failure that the sandbox around the program may have caused.
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

    /// An outcome with a hint below it.
    fn advised(&self, outcome: Result<Reply, Error>, advice: &str) -> Reply {
        let mut reply = outcome.unwrap_or_else(|error| self.failure(&error));
        let text = format!("[{advice}]");
        reply.content.push(Content::Text { text });
        reply
    }
}

impl Builder {
    /// Folders beside the work folder and the roots from which programs of
    /// [`Standing::Own`] can start nothing: the rest of a project.
    #[must_use]
    pub fn inert(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.inert.extend(folders);
        self
    }

    /// Folders from which programs of [`Standing::Own`] may start programs although they
    /// are the work folder, a root or listed as inert: those that the person trusts.
    #[must_use]
    pub fn startable(mut self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        self.startable.extend(folders);
        self
    }
}

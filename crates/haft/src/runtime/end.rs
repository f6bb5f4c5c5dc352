//! The end of a session: what it started is ended, and then somebody looks for the last
//! time at what was not to be touched.

use super::{Runtime, Session};
use crate::commands;
use haft_ops::exec::{Surroundings, Touched};
use std::path::Path;
use std::sync::Arc;

impl Session {
    /// A path for the model: relative to the work folder, absolute outside it.
    /// Control characters are made visible, so that a name stays on its line.
    pub(crate) fn shown(&self, real: &Path) -> String {
        let real = self.scope.seen(real);
        let shown = real.strip_prefix(self.scope.work_dir()).unwrap_or(&real);
        let shown = if shown.as_os_str().is_empty() {
            Path::new(".")
        } else {
            shown
        };
        let shown = shown.to_string_lossy();
        if shown.contains(char::is_control) {
            shown.escape_default().to_string()
        } else {
            shown.into_owned()
        }
    }

    /// Everything that programs are started in: commands, and those that are tools or
    /// bring some.
    fn all_surroundings(&self) -> Vec<&Surroundings> {
        let programs = self.programs.iter();
        let programs = programs.flat_map(|one| [&one.own, &one.guests, &one.alone]);
        let commands = self.surroundings.iter();
        commands.chain(programs.map(Arc::as_ref)).collect()
    }
}

impl Runtime {
    /// Looks at what sessions left that were killed in this work folder, once.
    pub(super) async fn recall(&self) {
        if let Some(first) = self.session.all_surroundings().first() {
            first.recall().await;
        }
    }

    /// Ends everything that the session started, and looks for the last time at what it
    /// was not to touch. Answers with what there is to tell a person, a line each, which
    /// is recorded as well. What runs when nobody calls this ends all the same; the next
    /// session in the work folder looks then.
    pub async fn close(&self) -> Vec<String> {
        let session = &self.session;
        let all = session.all_surroundings();
        for surroundings in &all {
            surroundings.close().await;
        }
        let mut touched: Vec<Touched> = Vec::new();
        if let Some(processes) = session.processes.get() {
            touched.extend(processes.close().await);
        }
        for surroundings in &all {
            for one in surroundings.end().await {
                if !touched.contains(&one) {
                    touched.push(one);
                }
            }
        }
        let notes = commands::touched(&touched, session);
        if let (Some(journal), false) = (&session.journal, notes.is_empty())
            && let Err(error) = journal.note(notes.join("\n")).await
        {
            tracing::error!(%error, "the end of a session could not be recorded");
        }
        notes
    }
}

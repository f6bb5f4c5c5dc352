//! The end of a session: everything it started is ended, and protected paths are checked
//! one last time.

use super::{Runtime, Session};
use crate::commands;
use haft_ops::exec::{ExecContext, Finding};
use std::path::Path;
use std::sync::Arc;

impl Session {
    /// Formats a path for the model: relative to the work folder, absolute outside it.
    /// Control characters are escaped, so that a name stays on one line.
    pub(crate) fn shown(&self, real: &Path) -> String {
        let real = self.scope.visible_path(real);
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

    /// Returns everything that programs are started in: commands, tools, and plugins.
    fn all_exec_contexts(&self) -> Vec<&ExecContext> {
        let programs = self.programs.iter();
        let programs = programs.flat_map(|one| [&one.own, &one.guests, &one.scratch_only]);
        let commands = self.exec_context.iter();
        commands.chain(programs.map(Arc::as_ref)).collect()
    }
}

impl Runtime {
    /// Checks once what killed sessions in this work folder left behind.
    pub(super) async fn recall(&self) {
        if let Some(first) = self.session.all_exec_contexts().first() {
            first.recall().await;
        }
    }

    /// Ends everything that the session started and checks protected paths one last time.
    /// Returns findings for the user, one line each, which are recorded as well. Without
    /// this call, the processes end all the same, and the next session in the work folder
    /// makes the check.
    pub async fn close(&self) -> Vec<String> {
        let session = &self.session;
        let all = session.all_exec_contexts();
        for exec_context in &all {
            exec_context.close().await;
        }
        let mut findings: Vec<Finding> = Vec::new();
        if let Some(processes) = session.processes.get() {
            findings.extend(processes.close().await);
        }
        for exec_context in &all {
            for one in exec_context.end().await {
                if !findings.contains(&one) {
                    findings.push(one);
                }
            }
        }
        let notes = commands::findings(&findings, session);
        if let (Some(journal), false) = (&session.journal, notes.is_empty())
            && let Err(error) = journal.note(notes.join("\n")).await
        {
            tracing::error!(%error, "the end of a session could not be recorded");
        }
        notes
    }
}

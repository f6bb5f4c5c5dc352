//! Slash commands of the chat.

use super::{App, TaskResult};
use crate::driver::Topic;
use crate::slash::{
    context_text, cost_rows, effort_text, help_rows, model_text, session_list, table,
};
use crate::styled_text::Style;
use crate::{EndReason, NextSession};
use std::sync::Arc;

impl App {
    pub(super) fn slash_command(&mut self, name: &str, rest: &str) {
        match name {
            "/help" => {
                let rows = help_rows(&self.setup.prompts);
                self.table(&rows);
            }
            "/context" => {
                let text = context_text(&*self.driver);
                self.note(&text, Style::PLAIN);
            }
            "/theme" if rest.is_empty() => self.pick_theme(),
            "/theme" => self.set_theme(rest),
            "/permissions" => self.report(Topic::Permissions),
            "/mcp" => self.report(Topic::Mcp),
            "/doctor" => self.report(Topic::Doctor),
            "/export" => {
                let file = rest.to_owned();
                self.run_in_background(async move |driver| driver.export(file).await);
            }
            "/tools" => {
                let tools = self.driver.tools();
                self.table(&tools);
            }
            "/cost" => {
                let cost = cost_rows(&self.driver.usage());
                self.table(&cost);
            }
            "/model" if rest.is_empty() && self.pick_model() => {}
            "/model" if rest.is_empty() => {
                let words = model_text(&*self.driver);
                self.note(&words, Style::PLAIN);
            }
            "/effort" if rest.is_empty() && self.pick_effort() => {}
            "/effort" if rest.is_empty() => {
                let words = effort_text(&*self.driver);
                self.note(&words, Style::PLAIN);
            }
            "/model" | "/effort" | "/plan" | "/fork" | "/compact" | "/undo" | "/redo" | "/new"
            | "/clear" | "/resume"
                if !self.work.is_idle() =>
            {
                self.editor.set(format!("{name} {rest}").trim_end());
                self.hint("wait until the current work is done, or stop it with Ctrl-C");
            }
            "/model" => self.set_model(rest.to_owned()),
            "/effort" => self.set_effort(rest.to_owned()),
            "/plan" => self.start_plan_step(rest.to_owned()),
            "/fork" => self.fork(),
            "/new" | "/clear" => {
                self.end_reason = Some(EndReason::Switch(NextSession::default()));
            }
            "/resume" if rest.is_empty() => {
                let driver = Arc::clone(&self.driver);
                let results = self.task_sender.clone();
                tokio::spawn(async move {
                    let _ = results.send(match driver.list_sessions().await {
                        Ok(sessions) => TaskResult::Sessions(sessions),
                        Err(message) => TaskResult::Message(Err(message)),
                    });
                });
            }
            "/resume" => {
                let next = NextSession::existing(rest.to_owned());
                self.end_reason = Some(EndReason::Switch(next));
            }
            "/compact" => {
                self.hint("compacting the conversation");
                self.run_in_background(async |driver| driver.compact().await);
            }
            "/changes" => {
                let words = rest.to_owned();
                self.show_in_background(async move |driver| driver.changes(words).await);
            }
            "/undo" => {
                let (words, again) = (rest.to_owned(), rest.to_owned());
                let driver = Arc::clone(&self.driver);
                let undo = async move { driver.undo(again).await };
                self.ask_first(
                    "Undo this",
                    async |driver| driver.undo_preview(words).await,
                    undo,
                );
            }
            "/redo" => {
                let driver = Arc::clone(&self.driver);
                let redo = async move { driver.redo().await };
                self.ask_first(
                    "Redo this",
                    async |driver| driver.redo_preview().await,
                    redo,
                );
            }
            "/sessions" => self
                .run_in_background(async |driver| Ok(session_list(&driver.list_sessions().await?))),
            _ => {}
        }
    }

    fn report(&mut self, topic: Topic) {
        self.show_in_background(async move |driver| driver.report(topic).await);
    }

    /// Runs something in the background and shows its result.
    pub(super) fn run_in_background<F>(&mut self, work: impl FnOnce(Arc<dyn super::Driver>) -> F)
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let work = work(Arc::clone(&self.driver));
        let results = self.task_sender.clone();
        tokio::spawn(async move {
            let _ = results.send(TaskResult::Message(work.await));
        });
    }

    /// Shows one line about what the last run changed, if it changed anything.
    pub(super) fn note_changes(&mut self) {
        let driver = Arc::clone(&self.driver);
        let results = self.task_sender.clone();
        tokio::spawn(async move {
            if let Some(line) = driver.changed().await {
                let _ = results.send(TaskResult::Message(Ok(line)));
            }
        });
    }

    /// Shows a text with its own lines, such as a diff.
    fn show_in_background<F>(&mut self, work: impl FnOnce(Arc<dyn super::Driver>) -> F)
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let work = work(Arc::clone(&self.driver));
        let results = self.task_sender.clone();
        tokio::spawn(async move {
            let _ = results.send(match work.await {
                Ok(text) => TaskResult::Diff(text),
                Err(message) => TaskResult::Message(Err(message)),
            });
        });
    }

    /// Shows what something would do, and does it if the user agrees.
    fn ask_first<F>(
        &mut self,
        name: &'static str,
        preview: impl FnOnce(Arc<dyn super::Driver>) -> F,
        work: impl Future<Output = Result<String, String>> + Send + 'static,
    ) where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let preview = preview(Arc::clone(&self.driver));
        let results = self.task_sender.clone();
        tokio::spawn(async move {
            let text = match preview.await {
                Ok(text) => text,
                Err(message) => {
                    let _ = results.send(TaskResult::Message(Err(message)));
                    return;
                }
            };
            let (answer, answered) = tokio::sync::oneshot::channel();
            let question = haft::Question::own(name, text);
            let _ = results.send(TaskResult::Ask(Box::new(question), answer));
            let result = match answered.await {
                Ok(haft::ApprovalAnswer::Approve) => work.await,
                _ => Ok("nothing was changed".to_owned()),
            };
            let _ = results.send(TaskResult::Message(result));
        });
    }

    fn table(&mut self, rows: &[(String, String)]) {
        self.section(table(rows, self.screen.columns()));
    }
}

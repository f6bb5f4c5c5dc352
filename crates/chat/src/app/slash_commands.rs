//! Slash commands of the chat.

use super::{App, TaskResult};
use crate::slash::{cost_rows, help_rows, model_text, session_list, table};
use crate::styled_text::Style;
use std::sync::Arc;

impl App {
    pub(super) fn slash_command(&mut self, name: &str, rest: &str) {
        match name {
            "/help" => self.table(&help_rows()),
            "/tools" => {
                let tools = self.driver.tools();
                self.table(&tools);
            }
            "/cost" => {
                let cost = cost_rows(&self.driver.usage());
                self.table(&cost);
            }
            "/model" if rest.is_empty() => {
                let words = model_text(&*self.driver);
                self.note(&words, Style::PLAIN);
            }
            "/model" | "/compact" if !self.work.is_idle() => {
                self.hint("wait until the current work is done, or stop it with Ctrl-C");
            }
            "/model" => {
                let name = rest.to_owned();
                self.run_in_background(async move |driver| {
                    driver.set_model(&name).await?;
                    Ok(format!("using {} from now on", driver.model()))
                });
            }
            "/compact" => {
                self.hint("compacting the conversation");
                self.run_in_background(async |driver| driver.compact().await);
            }
            "/sessions" => self
                .run_in_background(async |driver| Ok(session_list(&driver.list_sessions().await?))),
            _ => {}
        }
    }

    /// Runs something in the background and shows its result.
    fn run_in_background<F>(&mut self, work: impl FnOnce(Arc<dyn super::Driver>) -> F)
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let work = work(Arc::clone(&self.driver));
        let results = self.task_sender.clone();
        tokio::spawn(async move {
            let _ = results.send(TaskResult::Message(work.await));
        });
    }

    fn table(&mut self, rows: &[(String, String)]) {
        let lines = table(rows, self.screen.columns());
        let lines = self.transcript.section(lines);
        self.print(&lines);
    }
}

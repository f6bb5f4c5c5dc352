//! Slash commands of the chat.

use super::{App, TaskResult};
use crate::slash::{cost, help, listed, model, table};
use crate::styled_text::Style;
use std::sync::Arc;

impl App {
    pub(super) fn slash_command(&mut self, name: &str, rest: &str) {
        match name {
            "/help" => self.table(&help()),
            "/tools" => {
                let tools = self.driver.tools();
                self.table(&tools);
            }
            "/cost" => {
                let cost = cost(&self.driver.usage());
                self.table(&cost);
            }
            "/model" if rest.is_empty() => {
                let words = model(&*self.driver);
                self.note(&words, Style::PLAIN);
            }
            "/model" | "/compact" if !self.work.is_idle() => {
                self.hint("wait until the current work is done, or stop it with Ctrl-C");
            }
            "/model" => {
                let name = rest.to_owned();
                self.aside(async move |driver| {
                    driver.set_model(&name).await?;
                    Ok(format!("using {} from now on", driver.model()))
                });
            }
            "/compact" => {
                self.hint("compacting the conversation");
                self.aside(async |driver| driver.compact().await);
            }
            "/sessions" => self.aside(async |driver| Ok(listed(&driver.list_sessions().await?))),
            _ => {}
        }
    }

    /// Runs something in the background and shows its result.
    fn aside<F>(&mut self, work: impl FnOnce(Arc<dyn super::Driver>) -> F)
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let work = work(Arc::clone(&self.driver));
        let done = self.done.clone();
        tokio::spawn(async move {
            let _ = done.send(TaskResult::Message(work.await));
        });
    }

    fn table(&mut self, rows: &[(String, String)]) {
        let lines = table(rows, self.screen.columns());
        let lines = self.transcript.section(lines);
        self.print(&lines);
    }
}

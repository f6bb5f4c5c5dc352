//! What the commands of the chat do.

use super::{App, Done};
use crate::chat::ink::Style;
use crate::chat::slash::{cost, help, listed, model, table};
use std::sync::Arc;

impl App {
    pub(super) fn order(&mut self, name: &str, rest: &str) {
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
                self.hint("wait until it is done, or stop it with Ctrl-C");
            }
            "/model" => {
                let name = rest.to_owned();
                self.aside(async move |driver| {
                    driver.set_model(&name).await?;
                    Ok(format!("the model is {} from now on", driver.model()))
                });
            }
            "/compact" => {
                self.hint("making the conversation shorter");
                self.aside(async |driver| driver.compact().await);
            }
            "/sessions" => self.aside(async |driver| Ok(listed(&driver.sessions().await?))),
            _ => {}
        }
    }

    /// Does something that may take a while, and says what came of it.
    fn aside<F>(&mut self, work: impl FnOnce(Arc<dyn super::Driver>) -> F)
    where
        F: Future<Output = Result<String, String>> + Send + 'static,
    {
        let work = work(Arc::clone(&self.driver));
        let done = self.done.clone();
        tokio::spawn(async move {
            let _ = done.send(Done::Said(work.await));
        });
    }

    fn table(&mut self, rows: &[(String, String)]) {
        let lines = table(rows, self.screen.columns());
        let lines = self.transcript.beside(lines);
        self.print(&lines);
    }
}

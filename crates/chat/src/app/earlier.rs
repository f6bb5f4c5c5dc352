//! Returning to an earlier message, copies of the session, plan mode, and instructions.

use super::{App, TaskResult, TerminalTask};
use crate::driver::{Driver, EarlierPrompt};
use crate::external_editor::edit_file;
use crate::menu::{Item, Menu, Purpose};
use crate::plan::{PlanStep, plan_step};
use crate::{EndReason, NextSession};
use haft::ApprovalAnswer;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A second Esc within this time opens the menu of earlier messages.
const DOUBLE_ESCAPE: Duration = Duration::from_secs(2);

/// Maximum characters of a message in the menu.
const MAX_TITLE: usize = 100;

impl App {
    /// Stops what runs; with nothing running, a second Esc offers the earlier messages.
    pub(super) fn stop_or_go_back(&mut self) {
        if self.stop() {
            return;
        }
        let now = Instant::now();
        let before = self.escaped.replace(now);
        if before.is_none_or(|before| now >= before + DOUBLE_ESCAPE) {
            return self.hint("Esc again returns to an earlier message");
        }
        self.escaped = None;
        self.hint = None;
        let (driver, results) = (Arc::clone(&self.driver), self.task_sender.clone());
        tokio::spawn(async move {
            let _ = results.send(match driver.earlier_prompts().await {
                Ok(prompts) => TaskResult::Prompts(prompts),
                Err(message) => TaskResult::Message(Err(message)),
            });
        });
    }

    /// Opens a menu to pick an earlier message.
    pub(super) fn pick_prompt(&mut self, prompts: Vec<EarlierPrompt>) {
        if !self.work.is_idle() {
            return;
        }
        let items = prompts.iter().map(|one| Item {
            name: one.id.clone(),
            title: haft::ops::text::brief(one.text.trim(), MAX_TITLE),
            about: one.about.clone(),
        });
        match prompts.is_empty() {
            true => self.hint("there are no messages yet"),
            false => self.menu = Some(Menu::new(Purpose::Prompts, items.collect())),
        }
        self.earlier = prompts;
    }

    /// Goes on in a copy of the session that ends before a message, which the user can then
    /// change and send again. The files can go back too.
    pub(super) fn return_to(&mut self, id: &str) {
        let Some(prompt) = self.earlier.iter().find(|one| one.id == id).cloned() else {
            return;
        };
        let (driver, results) = (Arc::clone(&self.driver), self.task_sender.clone());
        tokio::spawn(async move {
            let preview = driver.undo_since_preview(prompt.id.clone()).await;
            if let Ok(Some(preview)) = preview {
                let (answer, answered) = tokio::sync::oneshot::channel();
                let text = format!("{preview}\n\ny: undo these changes too, n: keep the files");
                let question = haft::Question::own("Undo the changes since then", text);
                let _ = results.send(TaskResult::Ask(Box::new(question), answer));
                match answered.await {
                    Ok(ApprovalAnswer::Approve) => {
                        let undone = driver.undo_since(prompt.id.clone()).await;
                        let has_failed = undone.is_err();
                        let _ = results.send(TaskResult::Message(undone));
                        if has_failed {
                            return;
                        }
                    }
                    Ok(ApprovalAnswer::Reject { .. }) => {}
                    _ => return,
                }
            }
            let _ = results.send(switch_to_copy(&*driver, Some(prompt)).await);
        });
    }

    pub(super) fn fork(&self) {
        let (driver, results) = (Arc::clone(&self.driver), self.task_sender.clone());
        tokio::spawn(async move {
            let _ = results.send(switch_to_copy(&*driver, None).await);
        });
    }

    pub(super) fn start_plan_step(&self, rest: String) {
        let (driver, results) = (Arc::clone(&self.driver), self.task_sender.clone());
        tokio::spawn(async move {
            let _ = results.send(match plan_step(&*driver, &rest).await {
                Ok(step) => TaskResult::Plan(step),
                Err(message) => TaskResult::Message(Err(message)),
            });
        });
    }

    pub(super) fn plan(&mut self, step: PlanStep) {
        match step {
            PlanStep::Show(plan) => {
                let lines = self.transcript.answer(&plan);
                self.print(&lines);
            }
            PlanStep::Edit(file) if self.setup.editor.is_some() => {
                self.terminal_task = Some(TerminalTask::EditPlan(file));
            }
            PlanStep::Edit(file) => {
                let words = format!("set EDITOR, or edit {} yourself", file.display());
                self.hint(&words);
            }
            PlanStep::Switch(next) => self.end_reason = Some(EndReason::Switch(next)),
        }
    }

    pub(super) fn edit_plan(&mut self, file: &Path) {
        let editor = self.setup.editor.as_deref().unwrap_or_default();
        match edit_file(editor, file) {
            Ok(()) => self.hint("/plan go carries the plan out"),
            Err(message) => self.hint(&message),
        }
    }

    pub(super) fn add_instruction(&self, line: String) {
        let (driver, results) = (Arc::clone(&self.driver), self.task_sender.clone());
        tokio::spawn(async move {
            let added = driver.add_instruction(line.clone()).await;
            let _ = results.send(TaskResult::Instruction(line, added));
        });
    }
}

/// Copies the session and switches to the copy. A message that the copy ends before becomes
/// the draft.
async fn switch_to_copy(driver: &dyn Driver, before: Option<EarlierPrompt>) -> TaskResult {
    let (id, draft) = match before {
        Some(prompt) => (Some(prompt.id), prompt.text),
        None => (None, String::new()),
    };
    match driver.fork(id).await {
        Ok(id) => TaskResult::Switch(NextSession {
            id,
            draft,
            is_planning: driver.plan_file().is_some(),
            ..NextSession::default()
        }),
        Err(message) => TaskResult::Message(Err(message)),
    }
}

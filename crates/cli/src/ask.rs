//! Prompts on the terminal, line by line, for commands that do not run a full-screen
//! chat.

use crate::env;
use crate::exit::Failure;
use crate::{confinement, output, text};
use async_trait::async_trait;
use haft::{ApprovalAnswer as Answer, Approver, Filled, Form, Question};
use haft_chat::{Detail, FormState, QuestionContext, edit_arguments, question_text};
use haft_config::Settings;
use std::io::BufRead;
use std::sync::Arc;

/// Returns an approver that prompts on this terminal, if the user can see and answer
/// prompts.
pub(crate) fn terminal_approver(settings: &Settings) -> Option<Arc<dyn Approver>> {
    let approver = || {
        Arc::new(TerminalApprover {
            context: QuestionContext {
                sandbox: Some(confinement::summary(settings)),
            },
            scratch: settings.folders.state.clone(),
        }) as Arc<dyn Approver>
    };
    output::can_ask().then(approver)
}

struct TerminalApprover {
    context: QuestionContext,
    /// Folder for the temporary file that holds the arguments while the user edits them.
    scratch: Option<std::path::PathBuf>,
}

#[async_trait]
impl Approver for TerminalApprover {
    async fn ask(&self, question: &Question) -> Answer {
        let mut detail = Detail::Brief;
        loop {
            let prompt = self.prompt(question, detail);
            let Some(line) = read_line(&prompt).await else {
                return Answer::Reject { reason: None };
            };
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let reason = Some(rest.trim().to_owned()).filter(|reason| !reason.is_empty());
            if question.review.is_some() {
                match word.to_ascii_lowercase().as_str() {
                    "k" | "keep" | "y" | "yes" if rest.is_empty() => return Answer::Approve,
                    "v" => {
                        detail = Detail::Full;
                        continue;
                    }
                    "r" | "revert" | "n" | "no" => return Answer::Reject { reason },
                    _ => return Answer::Reject { reason: None },
                }
            }
            match word.to_ascii_lowercase().as_str() {
                "y" | "yes" if rest.is_empty() => return Answer::Approve,
                "s" | "session" if question.offers_session() => return Answer::ForSession,
                "a" | "always" if question.offers_always() => return Answer::Always,
                "v" => detail = Detail::Full,
                "e" => match self.edit_arguments(question).await {
                    Ok(arguments) => return Answer::ApproveWith { arguments },
                    Err(why) => output::note(&format!("  {why}")),
                },
                "n" | "no" => return Answer::Reject { reason },
                _ => return Answer::Reject { reason: None },
            }
        }
    }

    async fn fill(&self, form: &Form) -> Filled {
        let mut form_state = match FormState::new(form.clone()) {
            Ok(form_state) => form_state,
            Err(why) => {
                output::note(&why);
                return Filled::Declined;
            }
        };
        let prompt = form_state.introduction(text::WIDTH) + "Answer? [y/N] ";
        match read_line(&prompt).await {
            Some(line) if is_yes(&line) => {}
            Some(_) => return Filled::Declined,
            None => return Filled::Dismissed,
        }
        while let Some(prompt) = form_state.prompt() {
            let Some(line) = read_line(&format!("  {prompt}: ")).await else {
                return Filled::Dismissed;
            };
            if let Err(why) = form_state.enter(&line) {
                output::note(&format!("  {why}"));
            }
        }
        form_state.filled()
    }
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

impl TerminalApprover {
    fn prompt(&self, question: &Question, detail: Detail) -> String {
        let mut out = question_text(question, &self.context, detail, text::WIDTH);
        if question.review.is_some() {
            out.push_str("  k: keep, r: revert (`r WHY` gives a reason), v: show everything\n");
            out.push_str("Keep it? [k/R] ");
            return out;
        }
        let mut scopes = String::new();
        if question.offers_session() {
            scopes.push_str(", s: for this session");
        }
        if question.offers_always() {
            scopes.push_str(", a: always");
        }
        out.push_str(&format!(
            "  y: yes{scopes}, n: no (`n WHY` gives a reason), e: edit the arguments, v: show everything\n"
        ));
        out.push_str("Run it? [y/N] ");
        out
    }

    async fn edit_arguments(&self, question: &Question) -> Result<serde_json::Value, String> {
        if let Some(editor) = env::editor() {
            return edit_arguments(&editor, self.scratch.as_deref(), &question.arguments);
        }
        let line = read_line("  changed arguments as JSON: ").await;
        let line = line
            .filter(|line| !line.is_empty())
            .ok_or("no arguments were entered")?;
        match serde_json::from_str(&line) {
            Ok(arguments @ serde_json::Value::Object(_)) => Ok(arguments),
            Ok(_) => Err("not a JSON object".to_owned()),
            Err(error) => Err(format!("not valid JSON: {error}")),
        }
    }
}

/// Asks a yes-or-no question and blocks until it is answered.
pub(crate) fn confirm(question: &str) -> Result<bool, Failure> {
    // Discard what was typed before the question: it cannot be the answer.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    output::prompt(question);
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| Failure::failed(error.to_string()))?;
    Ok(is_yes(&line))
}

/// Prints a prompt and reads the user's line; `None` at end of input.
async fn read_line(prompt: &str) -> Option<String> {
    // Discard what was typed before the question: it cannot be the answer.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    output::prompt(prompt);
    let mut unfinished = UnfinishedLine { is_open: true };
    // A thread, so that a read that never returns does not keep haft from exiting.
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = line.await.ok()?.ok()?;
    unfinished.is_open = !line.ends_with('\n');
    (!line.is_empty()).then(|| line.trim().to_owned())
}

/// Ends the line of a prompt when dropped, unless the user's own newline did. Later
/// output then starts on a new line, even if the wait for the answer was cancelled.
struct UnfinishedLine {
    is_open: bool,
}

impl Drop for UnfinishedLine {
    fn drop(&mut self) {
        if self.is_open {
            output::note("");
        }
    }
}

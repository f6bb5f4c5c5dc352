//! Asking the person at the terminal, line by line: for commands that have no screen
//! of their own.

use crate::chat::{Around, Extent, Paint, edited, question_lines};
use crate::config::{FILE, Settings};
use crate::exit::Failure;
use crate::{env, output, place, text};
use async_trait::async_trait;
use haft::{Answer, Approver, Question};
use std::io::BufRead;
use std::sync::Arc;

/// The person at this terminal, if there is one.
pub(crate) fn here(settings: &Settings) -> Option<Arc<dyn Approver>> {
    let folder = settings.folders.config.as_ref();
    let person = || {
        Arc::new(Person {
            around: Around {
                file: folder.map(|folder| folder.join(FILE)),
                sandbox: Some(place::on_a_line(settings)),
            },
            scratch: settings.folders.state.clone(),
        }) as Arc<dyn Approver>
    };
    output::can_ask().then(person)
}

struct Person {
    around: Around,
    /// Where arguments are put while an editor changes them.
    scratch: Option<std::path::PathBuf>,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: &Question) -> Answer {
        let mut extent = Extent::Usual;
        loop {
            let shown = self.shown(question, extent);
            let Some(line) = typed(&shown).await else {
                return Answer::Reject { reason: None };
            };
            let (word, rest) = line.split_once(' ').unwrap_or((&line, ""));
            match word.to_ascii_lowercase().as_str() {
                "y" | "yes" if rest.is_empty() => return Answer::Approve,
                "a" | "always" if question.suggestion.is_some() => return Answer::Always,
                "v" => extent = Extent::Whole,
                "e" => match self.edited(question).await {
                    Ok(arguments) => return Answer::ApproveWith { arguments },
                    Err(why) => output::note(&format!("  {why}")),
                },
                "n" | "no" => {
                    let reason = Some(rest.trim().to_owned()).filter(|reason| !reason.is_empty());
                    return Answer::Reject { reason };
                }
                _ => return Answer::Reject { reason: None },
            }
        }
    }
}

impl Person {
    fn shown(&self, question: &Question, extent: Extent) -> String {
        let mut out = String::new();
        let lines = question_lines(question, &self.around, extent, text::WIDTH);
        for row in lines.iter().flat_map(|line| line.rows(text::WIDTH)) {
            out.push_str(&row.render(Paint::Plain));
            out.push('\n');
        }
        let always = match question.suggestion {
            Some(_) => ", a from now on",
            None => "",
        };
        out.push_str(&format!(
            "  y yes, n no (n WHY says why), e edit the arguments{always}, v show all\n"
        ));
        out.push_str("Run it? [y/N] ");
        out
    }

    async fn edited(&self, question: &Question) -> Result<serde_json::Value, String> {
        if let Some(editor) = env::editor() {
            return edited(&editor, self.scratch.as_deref(), &question.arguments);
        }
        let line = typed("  arguments that are others, as JSON: ").await;
        let line = line
            .filter(|line| !line.is_empty())
            .ok_or("nothing was changed")?;
        match serde_json::from_str(&line) {
            Ok(arguments @ serde_json::Value::Object(_)) => Ok(arguments),
            Ok(_) => Err("that is no JSON object".to_owned()),
            Err(error) => Err(format!("that is no JSON: {error}")),
        }
    }
}

/// Asks for a yes, where nothing but the answer is waited for.
pub(crate) fn yes(question: &str) -> Result<bool, Failure> {
    // What was typed before the question is no answer to it.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    output::prompt(question);
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut line)
        .map_err(|error| Failure::failed(error.to_string()))?;
    let line = line.trim().to_ascii_lowercase();
    Ok(matches!(line.as_str(), "y" | "yes"))
}

/// A line that is typed after something was asked; none at the end of all input.
async fn typed(asked: &str) -> Option<String> {
    // What was typed before the question is no answer to it.
    let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
    output::prompt(asked);
    let mut open = Open { line: true };
    // A thread that waits for the terminal does not keep haft from ending.
    let line = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line).map(|_| line)
    });
    let line = line.await.ok()?.ok()?;
    open.line = !line.ends_with('\n');
    (!line.is_empty()).then(|| line.trim().to_owned())
}

/// A question without an end of its line: what is said next must not stand
/// behind it, also when nobody waits for the answer any more.
struct Open {
    line: bool,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.line {
            output::note("");
        }
    }
}

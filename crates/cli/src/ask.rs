//! Asking the person at the terminal, line by line: for commands that have no screen
//! of their own.

use crate::chat::{Around, Extent, Line, Paint, Sheet, edited, question_lines};
use crate::config::{FILE, Settings};
use crate::exit::Failure;
use crate::{env, output, place, text};
use async_trait::async_trait;
use haft::{Answer, Approver, Filled, Form, Question};
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

    async fn fill(&self, form: &Form) -> Filled {
        let mut sheet = match Sheet::new(form.clone()) {
            Ok(sheet) => sheet,
            Err(why) => {
                output::note(&why);
                return Filled::Declined;
            }
        };
        let asked = plain(&sheet.lines(text::WIDTH)) + "Answer? [y/N] ";
        match typed(&asked).await {
            Some(line) if is_yes(&line) => {}
            Some(_) => return Filled::Declined,
            None => return Filled::Dismissed,
        }
        while let Some(prompt) = sheet.prompt() {
            let Some(line) = typed(&format!("  {prompt}: ")).await else {
                return Filled::Dismissed;
            };
            if let Err(why) = sheet.take(&line) {
                output::note(&format!("  {why}"));
            }
        }
        sheet.filled()
    }
}

fn plain(lines: &[Line]) -> String {
    let rows = lines.iter().flat_map(|line| line.rows(text::WIDTH));
    rows.map(|row| row.render(Paint::Plain) + "\n").collect()
}

fn is_yes(line: &str) -> bool {
    matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

impl Person {
    fn shown(&self, question: &Question, extent: Extent) -> String {
        let lines = question_lines(question, &self.around, extent, text::WIDTH);
        let mut out = plain(&lines);
        let always = match question.suggestion {
            Some(_) => ", a: always",
            None => "",
        };
        out.push_str(&format!(
            "  y: yes, n: no (`n WHY` gives a reason), e: edit the arguments{always}, v: show everything\n"
        ));
        out.push_str("Run it? [y/N] ");
        out
    }

    async fn edited(&self, question: &Question) -> Result<serde_json::Value, String> {
        if let Some(editor) = env::editor() {
            return edited(&editor, self.scratch.as_deref(), &question.arguments);
        }
        let line = typed("  changed arguments as JSON: ").await;
        let line = line
            .filter(|line| !line.is_empty())
            .ok_or("nothing was changed")?;
        match serde_json::from_str(&line) {
            Ok(arguments @ serde_json::Value::Object(_)) => Ok(arguments),
            Ok(_) => Err("not a JSON object".to_owned()),
            Err(error) => Err(format!("not valid JSON: {error}")),
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
    Ok(is_yes(&line))
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

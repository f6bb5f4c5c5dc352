//! Asking the person at the terminal. What they see is what would run: whole,
//! with nothing in it that could act on the screen, and its length beside it.

use crate::config::{FILE, Settings};
use crate::{output, text};
use async_trait::async_trait;
use haft::ops::text::decode::visible;
use haft::{Answer, Approver, Question, Resource};
use serde_json::Value;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;

/// Longer than this, the number of characters is said.
const LONG: usize = 60;

/// How much is shown of an argument that is neither command nor path.
const BESIDE: usize = 400;

/// The person at this terminal, if there is one.
pub(crate) fn here(settings: &Settings) -> Option<Arc<dyn Approver>> {
    let folder = settings.folders.config.as_ref();
    let file = folder.map(|folder| folder.join(FILE));
    let person = || Arc::new(Person { file }) as Arc<dyn Approver>;
    output::can_ask().then(person)
}

struct Person {
    /// Where a rule of their own would stand.
    file: Option<PathBuf>,
}

#[async_trait]
impl Approver for Person {
    async fn ask(&self, question: &Question) -> Answer {
        let shown = shown(question, self.file.as_deref());
        // What was typed before the question is no answer to it.
        let _ = rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
        output::prompt(&shown);
        let mut open = Open { line: true };
        // A thread that waits for the terminal does not keep haft from ending.
        let line = tokio::task::spawn_blocking(|| {
            let mut line = String::new();
            std::io::stdin().lock().read_line(&mut line).map(|_| line)
        });
        let line = match line.await {
            Ok(Ok(line)) => line,
            _ => String::new(),
        };
        open.line = !line.ends_with('\n');
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Answer::Approve,
            _ => Answer::Reject { reason: None },
        }
    }
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

/// The question, as it stands on the screen.
fn shown(question: &Question, file: Option<&std::path::Path>) -> String {
    let mut out = format!("{} wants to run, and it is asked about:\n", question.tool);
    let mut told: Vec<String> = Vec::new();
    for resource in &question.resources {
        let (name, whole) = match resource {
            Resource::Command(line) => ("command", line.clone()),
            Resource::Program(argv) => ("program", Value::from(argv.clone()).to_string()),
            Resource::Path(path, _) => ("path", path.clone()),
            Resource::Host(host) => ("host", host.clone()),
            _ => continue,
        };
        out.push_str(&block(name, &whole, None));
        told.push(whole);
    }
    if let Value::Object(arguments) = &question.arguments {
        for (name, value) in arguments {
            let value = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            if !told.contains(&value) {
                out.push_str(&block(name, &value, Some(BESIDE)));
            }
        }
    }
    let mut asking: Vec<(String, Vec<String>)> = Vec::new();
    for part in question.judgement.decisive() {
        let by = part.by.to_string();
        match asking.iter_mut().find(|(known, _)| *known == by) {
            Some((_, things)) => things.push(about(part)),
            None => asking.push((by, vec![about(part)])),
        }
    }
    for (by, things) in asking {
        let more = match things.len().saturating_sub(3) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let things: Vec<String> = things.into_iter().take(3).collect();
        let words = format!("{by}, about {}{more}", things.join("; "));
        out.push_str(&line("asked by", &words));
    }
    if let Some(rule) = &question.suggestion {
        let file = file.map_or_else(|| FILE.to_owned(), |file| file.display().to_string());
        let always = format!("- {rule} first under policy in {file}");
        out.push_str(&line("always", &always));
    }
    out.push_str("Run it? [y/N] ");
    out
}

/// What a part is about, in a few characters: the whole is above.
fn about(part: &haft::Part) -> String {
    let text = part.subject.to_string();
    match text.char_indices().nth(LONG) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

fn line(name: &str, words: &str) -> String {
    format!("  {name}: {}\n", visible(words).replace('\n', "\\n"))
}

/// A text with its name: on its lines, wrapped, each behind a bar, so that none
/// can be taken for a line of ours.
fn block(name: &str, whole: &str, most: Option<usize>) -> String {
    let count = whole.chars().count();
    let cut = most.filter(|most| count > *most);
    let text: String = match cut {
        Some(most) => whole.chars().take(most).collect(),
        None => whole.to_owned(),
    };
    let mut notes = Vec::new();
    if count > LONG {
        notes.push(format!("{count} characters"));
    }
    if let Some(most) = cut {
        notes.push(format!("the first {most} are shown"));
    }
    let strange = strange(&text);
    if !strange.is_empty() {
        notes.push(format!("not ASCII: {strange}"));
    }
    let notes = match notes.is_empty() {
        true => String::new(),
        false => format!(" ({})", notes.join("; ")),
    };
    let mut out = format!("  {}{notes}:\n", visible(name).replace('\n', "\\n"));
    let width = text::WIDTH - 4;
    for row in visible(&text).replace('\t', "\\t").split('\n') {
        let row: Vec<char> = row.chars().collect();
        if row.is_empty() {
            out.push_str("  |\n");
        }
        for piece in row.chunks(width) {
            out.push_str("  | ");
            out.extend(piece);
            out.push('\n');
        }
    }
    out
}

/// Letters that may look like others, by their numbers; the first few.
fn strange(text: &str) -> String {
    let mut seen: Vec<char> = Vec::new();
    for c in text.chars().filter(|c| !c.is_ascii()) {
        if !seen.contains(&c) {
            seen.push(c);
        }
        if seen.len() > 8 {
            break;
        }
    }
    let named = |c: &char| format!("{} U+{:04X}", visible(&c.to_string()), u32::from(*c));
    let mut names: Vec<String> = seen.iter().take(8).map(named).collect();
    if seen.len() > 8 {
        names.push("…".to_owned());
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::block;

    #[test]
    fn what_is_shown_is_what_runs() {
        let far = format!("ls{}; rm x", " ".repeat(10_240));
        let shown = block("command", &far, None);
        assert!(
            shown.starts_with("  command (10248 characters):\n"),
            "{shown}"
        );
        let whole: String = shown
            .lines()
            .skip(1)
            .map(|line| line.strip_prefix("  | ").unwrap())
            .collect();
        assert_eq!(whole, far);
        assert!(shown.lines().all(|line| line.chars().count() <= 80));

        let shown = block("command", "ls \x1b[2J\u{202e}\rx\tу\nRun it? [y/N] y", None);
        assert_eq!(
            shown,
            "  command (not ASCII: \\u{202e} U+202E, у U+0443):\n  | ls \\x1b[2J\\u{202e}\\x0dx\\tу\n  | Run it? [y/N] y\n"
        );
        let cut = block("content", &"x".repeat(500), Some(400));
        assert!(cut.starts_with("  content (500 characters; the first 400 are shown):\n"));
    }
}

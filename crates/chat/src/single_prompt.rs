//! Runs one prompt and prints its events line by line, without input.

use crate::card::Length;
use crate::driver::{Driver, Request, Requests};
use crate::question::{self, QuestionContext};
use crate::setup::TerminalFeatures;
use crate::styled_text::Line;
use crate::transcript::Transcript;
use futures::StreamExt;
use futures::future::BoxFuture;
use haft::{ApprovalAnswer as Answer, Filled, Question};
use std::io::{self, Write};
use std::time::Instant;

/// Maximum rows of a question.
const MAX_ROWS: usize = 16;

/// Settings of [`run_single_prompt`].
pub struct SinglePromptOptions<'a> {
    /// Decides whether the output has colours.
    pub terminal: TerminalFeatures,
    /// Width of the output, in columns.
    pub columns: usize,
    /// Whether every line is wrapped at `columns`. Otherwise code and output stay on one
    /// line each, as wanted in a file.
    pub wraps_all_lines: bool,
    /// Facts that every approval question shows.
    pub question_context: QuestionContext,
    /// Answers a question after it has been shown.
    pub answer: &'a (dyn Fn(&Question) -> BoxFuture<'static, Answer> + Sync),
}

/// Runs one prompt to its end and prints its events to stdout. Forms are declined.
///
/// # Errors
/// If the output cannot be written, or the agent does not start.
pub async fn run_single_prompt(
    driver: &dyn Driver,
    prompt: &str,
    options: &SinglePromptOptions<'_>,
    requests: &mut Requests,
) -> io::Result<()> {
    let mut transcript = Transcript::new(options.columns, options.terminal.styling);
    print(options, &transcript.user_input(prompt))?;
    transcript.start_work(Instant::now(), Length::Long);
    let mut events = driver
        .prompt(prompt.to_owned())
        .await
        .map_err(io::Error::other)?;
    loop {
        tokio::select! {
            biased;
            event = events.next() => {
                let Some(event) = event else { break };
                let output = |call: &str| driver.reply_text(call);
                let shown = transcript.handle(&event, Instant::now(), &output);
                print(options, &shown)?;
            }
            Some(request) = requests.recv() => match request {
                Request::Question(question, sender) => {
                    let context = &options.question_context;
                    let shown = question::summary(&question, context, options.columns, MAX_ROWS);
                    print(options, &transcript.section(shown.lines))?;
                    let _ = sender.send((options.answer)(&question).await);
                }
                // Forms need a user who types.
                Request::Form(_, sender) => {
                    let _ = sender.send(Filled::Declined);
                }
            },
        }
    }
    print(options, &transcript.end_work())
}

fn print(options: &SinglePromptOptions<'_>, shown: &[Line]) -> io::Result<()> {
    let mut text = String::new();
    let rows = |line: &Line| match options.wraps_all_lines {
        true => line.all_rows(options.columns),
        false => line.rows(options.columns),
    };
    for row in shown.iter().flat_map(rows) {
        text.push_str(&row.render(options.terminal.styling));
        text.push('\n');
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

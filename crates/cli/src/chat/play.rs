//! Runs one prompt and prints its events line by line, without input.

use super::card::Length;
use super::driver::{Driver, Questions, Request};
use super::question::{Extent, QuestionContext, lines};
use super::styled_text::{Line, Paint};
use super::transcript::Transcript;
use futures::StreamExt;
use futures::future::BoxFuture;
use haft::{ApprovalAnswer as Answer, Filled, Question};
use std::io::{self, Write};
use std::time::Instant;

/// Output settings, and the source of answers.
pub(crate) struct PlayOptions<'a> {
    pub(crate) paint: Paint,
    pub(crate) columns: usize,
    pub(crate) context: QuestionContext,
    /// Whether `columns` is the width of a terminal, so lines are wrapped here and not by
    /// it.
    pub(crate) is_screen: bool,
    /// Answers a question after it has been shown.
    pub(crate) answers: &'a (dyn Fn(&Question) -> BoxFuture<'static, Answer> + Sync),
}

/// Runs a prompt to its end.
///
/// # Errors
/// If the output cannot be written, or the agent does not start.
pub(crate) async fn play(
    driver: &dyn Driver,
    prompt: &str,
    options: &PlayOptions<'_>,
    questions: &mut Questions,
) -> io::Result<()> {
    let mut transcript = Transcript::new(options.columns);
    print(options, &transcript.user_input(prompt))?;
    transcript.begin(Instant::now(), Length::Long);
    let mut events = driver
        .prompt(prompt.to_owned())
        .await
        .map_err(io::Error::other)?;
    loop {
        tokio::select! {
            biased;
            event = events.next() => {
                let Some(event) = event else { break };
                let output = |call: &str| driver.output(call);
                let shown = transcript.handle(&event, Instant::now(), &output);
                print(options, &shown)?;
            }
            Some(request) = questions.recv() => match request {
                Request::Question(question, sender) => {
                    let shown = lines(&question, &options.context, Extent::Usual, options.columns);
                    print(options, &transcript.section(shown))?;
                    let _ = sender.send((options.answers)(&question).await);
                }
                // Forms need a user who types.
                Request::Form(_, sender) => {
                    let _ = sender.send(Filled::Declined);
                }
            },
        }
    }
    print(options, &transcript.end())
}

fn print(options: &PlayOptions<'_>, shown: &[Line]) -> io::Result<()> {
    let mut text = String::new();
    let rows = |line: &Line| match options.is_screen {
        true => line.all_rows(options.columns),
        false => line.rows(options.columns),
    };
    for row in shown.iter().flat_map(rows) {
        text.push_str(&row.render(options.paint));
        text.push('\n');
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

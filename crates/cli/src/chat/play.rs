//! One prompt and all that comes of it, line by line, with nobody typing.

use super::card::Length;
use super::driver::{Asked, Driver, Questions};
use super::ink::{Line, Paint};
use super::question::{Around, Extent, lines};
use super::transcript::Transcript;
use futures::StreamExt;
use futures::future::BoxFuture;
use haft::{Answer, Filled, Question};
use std::io::{self, Write};
use std::time::Instant;

/// Where it is shown, and who answers questions.
pub(crate) struct Stage<'a> {
    pub(crate) paint: Paint,
    pub(crate) columns: usize,
    pub(crate) around: Around,
    /// Whether a terminal is that wide, and nothing is to be wrapped by it.
    pub(crate) is_screen: bool,
    /// What is said about a question that has been shown.
    pub(crate) answers: &'a (dyn Fn(&Question) -> BoxFuture<'static, Answer> + Sync),
}

/// Plays it.
///
/// # Errors
/// When nobody can see it, or the agent does not begin.
pub(crate) async fn play(
    driver: &dyn Driver,
    prompt: &str,
    stage: &Stage<'_>,
    questions: &mut Questions,
) -> io::Result<()> {
    let mut transcript = Transcript::new(stage.columns);
    print(stage, &transcript.said(prompt))?;
    transcript.begin(Instant::now(), Length::Long);
    let mut events = driver
        .prompt(prompt.to_owned())
        .await
        .map_err(io::Error::other)?;
    loop {
        tokio::select! {
            biased;
            seen = events.next() => {
                let Some(seen) = seen else { break };
                let output = |call: &str| driver.output(call);
                let shown = transcript.see(&seen, Instant::now(), &output);
                print(stage, &shown)?;
            }
            Some(asked) = questions.recv() => match asked {
                Asked::Question(question, sender) => {
                    let shown = lines(&question, &stage.around, Extent::Usual, stage.columns);
                    print(stage, &transcript.beside(shown))?;
                    let _ = sender.send((stage.answers)(&question).await);
                }
                // Nobody is there to type.
                Asked::Form(_, sender) => {
                    let _ = sender.send(Filled::Declined);
                }
            },
        }
    }
    print(stage, &transcript.end())
}

fn print(stage: &Stage<'_>, shown: &[Line]) -> io::Result<()> {
    let mut text = String::new();
    let rows = |line: &Line| match stage.is_screen {
        true => line.all_rows(stage.columns),
        false => line.rows(stage.columns),
    };
    for row in shown.iter().flat_map(rows) {
        text.push_str(&row.render(stage.paint));
        text.push('\n');
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

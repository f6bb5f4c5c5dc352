//! Work with nobody there: events or the last text on stdout, the rest on stderr.

use super::progress::Progress;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::signals::Signals;
use crate::text;
use async_trait::async_trait;
use haft::{Answer, Approver, Question};
use haft_agent::{Agent, AgentEvent, EventKind, Resumed};

/// Something to do.
pub(crate) enum Task {
    Prompt(String),
    Resume(Resumed),
}

/// Nobody is there: what a person has to say is said later.
pub(crate) struct Away;

#[async_trait]
impl Approver for Away {
    async fn ask(&self, _: &Question) -> Answer {
        Answer::Later
    }
}

/// How a headless run shows itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// Whether somebody can go on with it another day.
    pub(crate) is_recorded: bool,
}

/// Works on it to its end.
pub(crate) async fn work(
    agent: &Agent,
    task: Task,
    manner: Manner,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let begun = match task {
        Task::Prompt(prompt) => agent.prompt(prompt).await,
        Task::Resume(resumed) => agent.resume(resumed).await,
    };
    let mut events = begun.map_err(|busy| Failure::failed(busy.to_string()))?;
    let progress = Progress::new(!manner.json && !manner.quiet, output::can_ask());
    let mut ended = None;
    let mut stopped: Option<Exit> = None;
    loop {
        let event = tokio::select! {
            biased;
            exit = signals.next() => {
                // The first asks it to stop and to say what came of it; the next does
                // not wait for that.
                if stopped.is_some() {
                    return Ok(exit);
                }
                agent.abort();
                stopped = Some(exit);
                continue;
            }
            event = events.next() => event,
        };
        let Some(event) = event else { break };
        if manner.json {
            output::json(&serde_json::to_value(&event).unwrap_or_default())?;
        }
        progress.show(&event);
        if event.parent.is_none()
            && let EventKind::Agent(AgentEvent::AgentEnd {
                reason,
                text,
                response,
                ..
            }) = event.kind
        {
            let response = response.map(|value| value.to_string());
            let text = match agent.has_response_format() {
                // Nothing else goes to stdout.
                true => response.unwrap_or_default(),
                false => text,
            };
            ended = Some((reason, text));
        }
    }
    let (reason, last) = ended.unwrap_or(("failed", String::new()));
    if !manner.json && !last.is_empty() {
        output::text(&last)?;
    }
    if let Some(exit) = stopped {
        if manner.is_recorded && !manner.json && !manner.quiet {
            let session = agent.session();
            output::note(&format!("interrupted; go on with: haft resume {session}"));
        }
        return Ok(exit);
    }
    Ok(match reason {
        "done" => Exit::Done,
        "approval" => {
            if !manner.json {
                say_what_waits(agent);
            }
            Exit::Waiting
        }
        _ => Exit::Failed,
    })
}

/// What waits, and how to answer it.
fn say_what_waits(agent: &Agent) {
    let calls = agent.questions();
    let plural = if calls.len() == 1 { "" } else { "s" };
    output::note(&format!("waits for approval: {} call{plural}", calls.len()));
    for call in &calls {
        let line = format!("  {}  {} {}", call.name, call.tool, call.about);
        output::note(&text::on_one_line(&line));
        if let Some(agent) = &call.agent {
            output::note(&text::on_one_line(&format!("    of sub-agent {agent}")));
            continue;
        }
        // The call itself runs already: what is said yes to is something else.
        if let Some(asked) = agent.question(&call.own).filter(|asked| asked.has_begun) {
            let line = format!("    asks: {}", asked.question);
            output::note(&text::on_one_line(&line));
        }
    }
    if let Some(call) = calls.first() {
        output::note(&format!(
            "answer with: haft resume {} --answer {} (or reject, reject:REASON, or JSON with changed arguments)",
            agent.session(),
            text::shell_word(&format!("{}=approve", call.name))
        ));
    }
}

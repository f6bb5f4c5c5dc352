//! Non-interactive runs: events or the final text on stdout, everything else on stderr.

use super::progress::Progress;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::signals::Signals;
use crate::text;
use async_trait::async_trait;
use haft::{ApprovalAnswer as Answer, Approver, Question};
use haft_agent::{Agent, AgentEvent, EventKind, Resumed};

/// Work for the agent.
pub(crate) enum Task {
    Prompt(String),
    Resume(Resumed),
}

/// Defers every question, because the user cannot be asked now. The session waits, and
/// `haft resume` answers.
pub(crate) struct DeferApprovals;

#[async_trait]
impl Approver for DeferApprovals {
    async fn ask(&self, _: &Question) -> Answer {
        Answer::Later
    }
}

/// Output of a non-interactive run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputMode {
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    /// Whether the session can be resumed later.
    pub(crate) is_recorded: bool,
}

/// Runs the task until it ends or waits for approval.
pub(crate) async fn work(
    agent: &Agent,
    task: Task,
    mode: OutputMode,
    signals: &mut Signals,
) -> Result<Exit, Failure> {
    let begun = match task {
        Task::Prompt(prompt) => agent.prompt(prompt).await,
        Task::Resume(resumed) => agent.resume(resumed).await,
    };
    let mut events = begun.map_err(|busy| Failure::failed(busy.to_string()))?;
    let progress = Progress::new(!mode.json && !mode.quiet, output::can_ask());
    let mut ended = None;
    let mut stopped: Option<Exit> = None;
    loop {
        let event = tokio::select! {
            biased;
            exit = signals.next() => {
                // The first signal asks the agent to stop and report; a second one ends
                // haft at once.
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
        if mode.json {
            output::json(&event.with_content())?;
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
                // With a response format, nothing else goes to stdout.
                true => response.unwrap_or_default(),
                false => text,
            };
            ended = Some((reason, text));
        }
    }
    let (reason, last) = ended.unwrap_or(("failed", String::new()));
    if !mode.json && !last.is_empty() {
        output::text(&last)?;
    }
    if let Some(exit) = stopped {
        if mode.is_recorded && !mode.json && !mode.quiet {
            let session = agent.session();
            output::note(&format!(
                "interrupted; continue with: haft resume {session}"
            ));
        }
        return Ok(exit);
    }
    Ok(match reason {
        "done" => Exit::Done,
        "approval" => {
            if !mode.json {
                print_pending(agent);
            }
            Exit::Waiting
        }
        _ => Exit::Failed,
    })
}

/// Prints the pending calls and how to answer them.
fn print_pending(agent: &Agent) {
    let calls = agent.pending_approvals();
    let plural = if calls.len() == 1 { "" } else { "s" };
    output::note(&format!(
        "waiting for approval: {} call{plural}",
        calls.len()
    ));
    for call in &calls {
        let line = format!("  {}  {} {}", call.name, call.tool, call.about);
        output::note(&text::on_one_line(&line));
        if let Some(agent) = &call.agent {
            output::note(&text::on_one_line(&format!("    from sub-agent {agent}")));
            continue;
        }
        // The call is already running and asks for something more, or has run.
        if let Some(pending) = agent.question(&call.own).filter(|one| one.has_begun) {
            let question = &pending.question;
            let line = match question.split_once(": ").filter(|_| pending.is_review) {
                Some((_, question)) => format!("    {question}"),
                None => format!("    asks: {question}"),
            };
            output::note(&text::on_one_line(&line));
        }
    }
    if let Some(call) = calls.first() {
        let question = agent.question(&call.own);
        let (yes, others) = match question.is_some_and(|one| one.is_review) {
            true => ("keep", "revert, or revert:REASON"),
            false => (
                "approve",
                "reject, reject:REASON, or JSON with changed arguments",
            ),
        };
        output::note(&format!(
            "answer with: haft resume {} --answer {} (or {others})",
            agent.session(),
            text::shell_word(&format!("{}={yes}", call.name))
        ));
    }
}

//! The chat in plain lines: for a terminal without a cursor, or output to a file. Nothing
//! is redrawn.

use crate::card::Length;
use crate::driver::{ChatEvent, Driver, EventStream, Request, RequestQueue, Requests, Topic};
use crate::form::FormState;
use crate::plan::{self, PlanStep, plan_step};
use crate::question::{self, Detail};
use crate::setup::Setup;
use crate::slash::{self, UserInput};
use crate::styled_text::{Line, Style, Styling};
use crate::transcript::Transcript;
use crate::{EndReason, NextSession};
use futures::StreamExt;
use haft::{ApprovalAnswer as Answer, Filled, Question};
use haft_agent::{AgentEvent, EventKind};
use rustix::termios::{QueueSelector, tcflush};
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// Width of lines, in columns.
const WIDTH: usize = 80;

/// Interval at which requests without an announcing event are checked.
const REQUEST_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A second interrupt within this time ends the chat.
const DOUBLE_INTERRUPT: Duration = Duration::from_secs(2);

struct LineChat {
    driver: Arc<dyn Driver>,
    setup: Setup,
    transcript: Transcript,
    events: Option<EventStream>,
    /// Events of sub-agents in the background.
    background: EventStream,
    /// Command line that the user runs, and its call id.
    command: Option<(String, Option<String>)>,
    /// What the next prompt begins with.
    told: Vec<String>,
    queue: Vec<String>,
    open_request: Option<OpenRequest>,
    requests: RequestQueue,
    needs_prompt: bool,
    /// Another session that the user wants.
    switch: Option<NextSession>,
}

/// A request that waits for a line of input.
enum OpenRequest {
    Question(Box<Question>, oneshot::Sender<Answer>),
    /// Whether the user wants to fill in the form.
    ConfirmForm(FormState, oneshot::Sender<Filled>),
    /// The next field.
    Field(FormState, oneshot::Sender<Filled>),
}

impl OpenRequest {
    /// Whether the request was withdrawn.
    fn is_closed(&self) -> bool {
        match self {
            Self::Question(_, answer) => answer.is_closed(),
            Self::ConfirmForm(_, filled) | Self::Field(_, filled) => filled.is_closed(),
        }
    }
}

pub(super) async fn run(
    driver: Arc<dyn Driver>,
    setup: Setup,
    requests: &mut Requests,
) -> io::Result<EndReason> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut typed = stdin_lines();
    let mut interrupted: Option<Instant> = None;
    let mut chat = LineChat {
        background: driver.background_events(),
        driver,
        setup,
        transcript: Transcript::new(WIDTH, Styling::Plain),
        events: None,
        command: None,
        told: Vec::new(),
        queue: Vec::new(),
        open_request: None,
        requests: RequestQueue::default(),
        needs_prompt: io::stdout().is_terminal(),
        switch: None,
    };
    chat.greet()?;
    if let Some(prompt) = chat.setup.first_prompt.take() {
        chat.print(&[Line::plain(&format!("> {}", plan::shown(&prompt)))])?;
        chat.prompt(prompt).await?;
    }
    let ended = loop {
        chat.show_prompt_if_needed()?;
        tokio::select! {
            line = typed.recv() => match line {
                Some(line) if chat.open_request.is_some() => chat.answer(line.trim())?,
                Some(line) => {
                    if chat.handle_line(&line).await? {
                        break EndReason::Quit;
                    }
                    if let Some(next) = chat.switch.take() {
                        return Ok(EndReason::Switch(next));
                    }
                }
                None if chat.events.is_none() => break EndReason::Quit,
                // Finish the current work.
                None => chat.drain(requests).await?,
            },
            event = next(&mut chat.events) => match event {
                Some(event) => chat.handle(&event)?,
                None => chat.stream_ended().await?,
            },
            Some(event) = chat.background.next() => chat.handle(&event)?,
            Some(request) = requests.recv() => chat.requests.add(request),
            () = withdrawn(&mut chat.open_request) => chat.withdraw()?,
            () = tokio::time::sleep(REQUEST_CHECK_INTERVAL), if !chat.requests.is_empty() => {}
            _ = interrupt.recv() => {
                let now = Instant::now();
                if chat.events.is_none() || interrupted.is_some_and(|at| now < at + DOUBLE_INTERRUPT) {
                    break EndReason::Quit;
                }
                interrupted = Some(now);
                chat.stop();
            }
            _ = hang_up.recv() => break EndReason::Signal(1),
            _ = terminate.recv() => break EndReason::Signal(15),
        }
        let transcript = &chat.transcript;
        if chat.open_request.is_none()
            && let Some(request) = chat
                .requests
                .take(|request| transcript.is_announced(request))
        {
            // Lines typed before the question do not answer it.
            while typed.try_recv().is_ok() {}
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
            chat.ask(request)?;
        }
    };
    if let Some(session) = chat.driver.session_id() {
        chat.print(&[Line::plain(&format!("resume with: haft resume {session}"))])?;
    }
    Ok(ended)
}

impl LineChat {
    fn print(&self, lines: &[Line]) -> io::Result<()> {
        let mut text = String::new();
        for row in lines.iter().flat_map(|line| line.rows(WIDTH)) {
            text.push_str(&row.render(Styling::Plain));
            text.push('\n');
        }
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn greet(&mut self) -> io::Result<()> {
        let greeting = &self.setup.greeting;
        let version = format!("haft {}", greeting.version);
        let parts = [
            &version,
            &greeting.model,
            &greeting.folder,
            &greeting.sandbox,
        ];
        let parts: Vec<&str> = parts.into_iter().map(String::as_str).collect();
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let mut lines = vec![Line::plain(&parts.join(" · "))];
        lines.extend(greeting.notes.iter().map(|note| Line::plain(note)));
        let conversation = &greeting.conversation;
        lines.extend(self.transcript.recall(conversation, Instant::now()));
        self.print(&lines)
    }

    fn show_prompt_if_needed(&mut self) -> io::Result<()> {
        if !self.needs_prompt || self.events.is_some() {
            return Ok(());
        }
        self.needs_prompt = false;
        let mut out = io::stdout().lock();
        out.write_all(b"\n> ")?;
        out.flush()
    }

    /// Whether the last line on the terminal is the prompt.
    fn is_prompting(&self) -> bool {
        let is_open = self.events.is_none() && self.open_request.is_none();
        is_open && !self.needs_prompt && io::stdout().is_terminal()
    }

    /// Removes a request that was withdrawn.
    fn withdraw(&mut self) -> io::Result<()> {
        self.open_request = None;
        let lines = self
            .transcript
            .note("the question was withdrawn", Style::DIM);
        self.print(&lines)
    }

    fn handle(&mut self, event: &ChatEvent) -> io::Result<()> {
        // Report a withdrawn question before the events that follow it.
        if self
            .open_request
            .as_ref()
            .is_some_and(OpenRequest::is_closed)
        {
            self.withdraw()?;
        }
        match &event.kind {
            EventKind::Agent(AgentEvent::Steering { text }) if event.sub_agent.is_none() => {
                self.queue.retain(|queued| queued != text);
            }
            EventKind::Tool(haft::EventKind::ToolStart { call_id, .. })
                if event.sub_agent.is_none() =>
            {
                if let Some((_, call)) = &mut self.command {
                    *call = Some(call_id.clone());
                }
            }
            _ => {}
        }
        let driver = Arc::clone(&self.driver);
        let output = |call: &str| driver.reply_text(call);
        let lines = self.transcript.handle(event, Instant::now(), &output);
        if lines.is_empty() {
            return Ok(());
        }
        if self.is_prompting() {
            // The user may be typing: print below that, and then the prompt again.
            self.needs_prompt = true;
            self.print(&[Line::default()])?;
        }
        self.print(&lines)
    }

    /// Handles a line of input. Returns true if it ends the chat.
    async fn handle_line(&mut self, line: &str) -> io::Result<bool> {
        self.needs_prompt = io::stdout().is_terminal();
        let is_idle = self.events.is_none();
        match UserInput::parse(line, &self.setup.prompts) {
            UserInput::Empty if is_idle && self.driver.has_unfinished_run() => {
                self.prompt(String::new()).await?;
            }
            UserInput::Empty => {}
            UserInput::Quit => return Ok(true),
            UserInput::UnknownCommand(words) => self.print(&[Line::plain(&words)])?,
            UserInput::SlashCommand("/new" | "/clear", _) if is_idle => {
                self.switch = Some(NextSession::default());
            }
            UserInput::SlashCommand("/resume", id) if is_idle && !id.is_empty() => {
                self.switch = Some(NextSession::existing(id));
            }
            UserInput::SlashCommand("/plan", rest) if is_idle => {
                match plan_step(&*self.driver, &rest).await {
                    Ok(PlanStep::Switch(next)) => self.switch = Some(next),
                    Ok(PlanStep::Show(plan)) => self.print(&[Line::plain(&plan)])?,
                    Ok(PlanStep::Edit(file)) => {
                        let words = format!("the plan is in {}", file.display());
                        self.print(&[Line::plain(&words)])?;
                    }
                    Err(message) => self.fail(&message)?,
                }
            }
            UserInput::SlashCommand("/fork", _) if is_idle => match self.driver.fork(None).await {
                Ok(id) => {
                    self.switch = Some(NextSession {
                        id,
                        is_planning: self.driver.plan_file().is_some(),
                        ..NextSession::default()
                    });
                }
                Err(message) => self.fail(&message)?,
            },
            UserInput::Instruction(line) => match self.driver.add_instruction(line.clone()).await {
                Ok(message) => {
                    self.told.push(crate::told_instruction(&line));
                    self.print(&[Line::plain(&message)])?;
                }
                Err(message) => self.fail(&message)?,
            },
            UserInput::SlashCommand(name, rest) => self.slash_command(name, &rest).await?,
            UserInput::Prompt(text) | UserInput::Saved(text) if is_idle => {
                self.prompt(text).await?;
            }
            UserInput::Prompt(text) | UserInput::Saved(text) if self.command.is_none() => {
                self.driver.steer(text.clone());
                self.queue.push(text);
            }
            UserInput::ShellCommand(line) if is_idle => {
                self.transcript.start_work(Instant::now(), Length::Long);
                match self.driver.run_command(line.clone()).await {
                    Ok(events) => {
                        self.events = Some(events);
                        self.command = Some((line, None));
                    }
                    Err(message) => self.fail(&message)?,
                }
            }
            _ => self.print(&[Line::plain("wait until the current work is done")])?,
        }
        Ok(false)
    }

    async fn prompt(&mut self, text: String) -> io::Result<()> {
        self.transcript
            .start_work(Instant::now(), Length::ShortWithoutHint);
        let text = std::mem::take(&mut self.told).concat() + &text;
        match self.driver.prompt(text).await {
            Ok(events) => {
                self.events = Some(events);
                Ok(())
            }
            Err(message) => self.fail(&message),
        }
    }

    fn fail(&mut self, message: &str) -> io::Result<()> {
        let mut lines = self.transcript.end_work();
        lines.extend(self.transcript.note(message, Style::RED));
        self.print(&lines)
    }

    async fn slash_command(&mut self, name: &str, rest: &str) -> io::Result<()> {
        let driver = Arc::clone(&self.driver);
        let result = match name {
            "/help" => {
                return self.print(&slash::table(&slash::help_rows(&self.setup.prompts), WIDTH));
            }
            "/tools" => return self.print(&slash::table(&driver.tools(), WIDTH)),
            "/cost" => return self.print(&slash::table(&slash::cost_rows(&driver.usage()), WIDTH)),
            "/model" if rest.is_empty() => Ok(slash::model_text(&*driver)),
            "/context" => Ok(slash::context_text(&*driver)),
            "/permissions" => driver.report(Topic::Permissions).await,
            "/mcp" => driver.report(Topic::Mcp).await,
            "/doctor" => driver.report(Topic::Doctor).await,
            "/export" => driver.export(rest.to_owned()).await,
            "/theme" => Err("this terminal shows no colours".to_owned()),
            "/effort" if rest.is_empty() => Ok(slash::effort_text(&*driver)),
            "/new" | "/clear" | "/resume" | "/plan" | "/fork" if self.events.is_some() => {
                Err("wait until the current work is done".to_owned())
            }
            "/model" | "/effort" | "/compact" | "/undo" | "/redo" if self.events.is_some() => {
                Err("wait until the current work is done".to_owned())
            }
            "/model" => {
                let set = driver.set_model(rest).await;
                set.map(|()| format!("using {} from now on", driver.model()))
            }
            "/effort" => {
                let set = driver.set_effort(rest).await;
                set.map(|()| format!("effort {rest} from now on"))
            }
            "/compact" => driver.compact().await,
            "/changes" => driver.changes(rest.to_owned()).await,
            // Questions need a screen, so the user confirms with a second command.
            "/undo" => match rest.split_once(' ').unwrap_or((rest, "")) {
                ("yes", rest) => driver.undo(rest.trim().to_owned()).await,
                _ => {
                    let preview = driver.undo_preview(rest.to_owned()).await;
                    let how = format!("/undo yes {rest}");
                    preview.map(|text| format!("{text}\nto do this: {}", how.trim_end()))
                }
            },
            "/redo" if rest == "yes" => driver.redo().await,
            "/redo" => {
                let preview = driver.redo_preview().await;
                preview.map(|text| format!("{text}\nto do this: /redo yes"))
            }
            _ => driver
                .list_sessions()
                .await
                .map(|all| slash::session_list(&all)),
        };
        let words = result.unwrap_or_else(|error| error);
        let lines: Vec<Line> = words.lines().map(Line::plain).collect();
        self.print(&lines)
    }

    async fn stream_ended(&mut self) -> io::Result<()> {
        self.events = None;
        let lines = self.transcript.end_work();
        self.print(&lines)?;
        if let Some((line, call)) = self.command.take()
            && let Some(output) = call.and_then(|call| self.driver.reply_text(&call))
        {
            self.told.push(crate::told_command(&line, &output));
        }
        if let Some(line) = self.driver.changed().await {
            let lines = self.transcript.note(&line, Style::DIM);
            self.print(&lines)?;
        }
        self.needs_prompt = io::stdout().is_terminal();
        match std::mem::take(&mut self.queue).join("\n") {
            queued if queued.is_empty() => Ok(()),
            queued => self.prompt(queued).await,
        }
    }

    /// After the end of input: waits for the current work. Its questions can be answered
    /// later.
    async fn drain(&mut self, requests: &mut Requests) -> io::Result<()> {
        self.open_request = None;
        self.requests = RequestQueue::default();
        loop {
            tokio::select! {
                event = next(&mut self.events) => match event {
                    Some(event) => self.handle(&event)?,
                    None => return self.stream_ended().await,
                },
                // Dropping the request tells the caller that it cannot be answered now.
                Some(request) = requests.recv() => drop(request),
            }
        }
    }

    fn stop(&mut self) {
        if self.command.take().is_some() {
            self.events = None;
        } else {
            self.driver.abort();
        }
        self.open_request = None;
    }

    fn ask(&mut self, request: Request) -> io::Result<()> {
        match request {
            Request::Question(question, answer) => {
                let lines = question::question_lines(
                    &question,
                    &self.setup.question_context,
                    Detail::Full,
                    WIDTH,
                );
                let session = match question.offers_session() {
                    true => ", s: for this session",
                    false => "",
                };
                let always = match question.offers_always() {
                    true => ", a: always",
                    false => "",
                };
                let keys = format!(
                    "  y: yes{session}{always}, n [REASON]: no, e JSON: use other arguments"
                );
                let keys: [&str; 2] = match question.review {
                    Some(_) => ["  k: keep, r [REASON]: revert", "Keep it? [k/R]"],
                    None => [&keys, "Run it? [y/N]"],
                };
                self.show(lines, &question.call_id, &keys)?;
                self.open_request = Some(OpenRequest::Question(question, answer));
            }
            Request::Form(form, filled) => match FormState::new(form) {
                Ok(form_state) => {
                    self.show(
                        form_state.lines(WIDTH),
                        form_state.call_id(),
                        &["Answer? [y/N]"],
                    )?;
                    self.open_request = Some(OpenRequest::ConfirmForm(form_state, filled));
                }
                Err(why) => {
                    let _ = filled.send(Filled::Declined);
                    self.print(&[Line::plain(&why)])?;
                }
            },
        }
        Ok(())
    }

    fn show(&mut self, mut lines: Vec<Line>, call: &str, keys: &[&str]) -> io::Result<()> {
        if self.transcript.is_sub_agent_call(call) {
            lines.push(question::fact("for", "a sub-agent"));
        }
        let mut lines = self.transcript.section(lines);
        lines.extend(keys.iter().map(|words| Line::plain(words)));
        self.print(&lines)
    }

    fn answer(&mut self, line: &str) -> io::Result<()> {
        match self.open_request.take() {
            None => Ok(()),
            Some(OpenRequest::Question(question, answer)) => self.decide(question, answer, line),
            Some(OpenRequest::ConfirmForm(form_state, filled)) => {
                if matches!(line.to_ascii_lowercase().as_str(), "y" | "yes") {
                    return self.next_field(form_state, filled);
                }
                let _ = filled.send(Filled::Declined);
                Ok(())
            }
            Some(OpenRequest::Field(mut form_state, filled)) => {
                if let Err(why) = form_state.enter(line) {
                    self.print(&[Line::plain(&format!("  {why}"))])?;
                }
                self.next_field(form_state, filled)
            }
        }
    }

    /// Asks for the next field, or sends the form.
    fn next_field(
        &mut self,
        form_state: FormState,
        filled: oneshot::Sender<Filled>,
    ) -> io::Result<()> {
        match form_state.prompt() {
            Some(prompt) => {
                self.open_request = Some(OpenRequest::Field(form_state, filled));
                self.print(&[Line::plain(&format!("  {prompt}")).hanging(4)])
            }
            None => {
                // Fails if the request was withdrawn.
                let _ = filled.send(form_state.filled());
                Ok(())
            }
        }
    }

    fn decide(
        &mut self,
        question: Box<Question>,
        sender: oneshot::Sender<Answer>,
        line: &str,
    ) -> io::Result<()> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let reason = Some(rest.trim().to_owned()).filter(|reason| !reason.is_empty());
        let answer = match word.to_ascii_lowercase().as_str() {
            "k" | "keep" if rest.is_empty() && question.review.is_some() => Answer::Approve,
            "r" | "revert" if question.review.is_some() => Answer::Reject { reason },
            "y" | "yes" if rest.is_empty() => Answer::Approve,
            "s" | "session" if question.offers_session() => Answer::ForSession,
            "a" | "always" if question.offers_always() => Answer::Always,
            "e" => match serde_json::from_str(rest) {
                Ok(arguments @ serde_json::Value::Object(_)) => Answer::ApproveWith { arguments },
                _ => {
                    self.open_request = Some(OpenRequest::Question(question, sender));
                    let words = "not a JSON object; use e {\"name\": value}";
                    return self.print(&[Line::plain(words)]);
                }
            },
            "n" | "no" => Answer::Reject { reason },
            _ => Answer::Reject { reason: None },
        };
        // Fails if the request was withdrawn.
        let _ = sender.send(answer);
        Ok(())
    }
}

/// Reads lines of input in a separate thread.
fn stdin_lines() -> mpsc::UnboundedReceiver<String> {
    let (sender, lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    lines
}

async fn next(events: &mut Option<EventStream>) -> Option<ChatEvent> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// Completes when the request is withdrawn.
async fn withdrawn(request: &mut Option<OpenRequest>) {
    match request {
        Some(OpenRequest::Question(_, answer)) => answer.closed().await,
        Some(OpenRequest::ConfirmForm(_, filled) | OpenRequest::Field(_, filled)) => {
            filled.closed().await
        }
        None => std::future::pending().await,
    }
}

//! The chat on a screen: handles events in any order and draws the live region.

mod earlier;
mod form_prompt;
mod keys;
mod menus;
mod request;
mod slash_commands;
mod view;

use crate::card::Length;
use crate::driver::{
    ChatEvent, Driver, EarlierPrompt, EventStream, Request, RequestQueue, Requests, SessionEntry,
};
use crate::editor::Editor;
use crate::history::History;
use crate::menu::Menu;
use crate::paste::Pastes;
use crate::plan::{self, PlanStep};
use crate::screen::Screen;
use crate::setup::Setup;
use crate::slash::UserInput;
use crate::styled_text::{Line, Style};
use crate::terminal::background::LateAnswer;
use crate::terminal::{self, InputReader, Terminal};
use crate::transcript::{SPINNER_INTERVAL, Transcript};
use crate::{EndReason, NextSession};
use futures::StreamExt;
use haft_agent::{AgentEvent, EventKind};
use request::ActiveRequest;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};
use tokio::time::MissedTickBehavior;

/// At most 30 frames per second.
const FRAME: Duration = Duration::from_millis(33);

/// Interval after a key: typed text appears sooner.
const KEY_FRAME: Duration = Duration::from_millis(3);

/// A second Ctrl-C within this time ends the chat.
const DOUBLE_INTERRUPT: Duration = Duration::from_secs(2);

/// After this long the user may be looking elsewhere, so the end is announced.
const LONG_RUN: Duration = Duration::from_secs(30);

/// Time to wait for SIGCONT after suspending. Without job control the process is never
/// stopped.
const SUSPEND_WAIT: Duration = Duration::from_millis(500);

const SIGCONT: i32 = 18;

/// Result of a background task of the screen.
enum TaskResult {
    /// The run or command has started, or failed to.
    Started(Result<EventStream, String>),
    /// A message for the user.
    Message(Result<String, String>),
    /// A diff to show.
    Diff(String),
    /// A question of the chat itself.
    Ask(Box<haft::Question>, oneshot::Sender<haft::ApprovalAnswer>),
    /// Files for the word before the cursor.
    Files(menus::FoundFiles),
    /// Sessions to pick from.
    Sessions(Vec<SessionEntry>),
    /// Earlier prompts to pick from.
    Prompts(Vec<EarlierPrompt>),
    /// Another session to go on with.
    Switch(NextSession),
    /// What `/plan` does.
    Plan(PlanStep),
    /// The user has added an instruction.
    Instruction(String, Result<String, String>),
}

enum Work {
    Idle,
    /// A run of the agent; has events once it has started.
    Prompt(Option<EventStream>),
    /// A command line that the user runs.
    Command {
        events: Option<EventStream>,
        line: String,
        call: Option<String>,
    },
}

impl Work {
    fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    fn events(&mut self) -> Option<&mut EventStream> {
        match self {
            Self::Idle => None,
            Self::Prompt(events) | Self::Command { events, .. } => events.as_mut(),
        }
    }
}

struct HistorySearch {
    text: String,
    skip: usize,
}

struct App {
    driver: Arc<dyn Driver>,
    setup: Setup,
    screen: Screen<File>,
    transcript: Transcript,
    editor: Editor,
    history: History,
    work: Work,
    /// Events of sub-agents in the background.
    background: EventStream,
    active: Option<ActiveRequest>,
    requests: RequestQueue,
    menu: Option<Menu>,
    /// Whether the user has closed the menu for this word.
    menu_dismissed: bool,
    /// All files, while one is being chosen.
    files: Option<Arc<Vec<String>>>,
    pastes: Pastes,
    branch: Option<String>,
    late_answer: LateAnswer,
    search: Option<HistorySearch>,
    /// Messages typed while the agent works and not sent yet.
    queue: Vec<String>,
    /// What the next prompt begins with, such as the output of commands that the user ran.
    told: Vec<String>,
    /// Prompts that the open menu offers.
    earlier: Vec<EarlierPrompt>,
    hint: Option<(String, Instant)>,
    interrupted: Option<Instant>,
    /// The last Esc that had nothing to do.
    escaped: Option<Instant>,
    last_key: Option<Instant>,
    end_reason: Option<EndReason>,
    /// A task that needs the terminal; handled by the main loop.
    terminal_task: Option<TerminalTask>,
    task_sender: mpsc::UnboundedSender<TaskResult>,
}

/// A task that takes over the terminal for a while.
enum TerminalTask {
    Suspend,
    EditArguments,
    EditMessage,
    EditPlan(PathBuf),
}

pub(super) async fn run(
    driver: Arc<dyn Driver>,
    mut setup: Setup,
    requests: &mut Requests,
) -> io::Result<EndReason> {
    let mut terminal = Terminal::enter()?;
    let (features, typed) = setup.terminal.in_raw_mode();
    setup.terminal = features;
    let mut input = InputReader::listen()?;
    let (task_sender, mut task_results) = mpsc::unbounded_channel();
    let size = terminal::size();
    let history = History::load(setup.history_file.clone());
    let mut app = App {
        screen: Screen::new(terminal::unbuffered_stdout()?, setup.terminal.styling, size),
        transcript: Transcript::new(size.0, setup.terminal.styling),
        background: driver.background_events(),
        editor: Editor::default(),
        history,
        work: Work::Idle,
        active: None,
        requests: RequestQueue::default(),
        menu: None,
        menu_dismissed: false,
        files: None,
        pastes: Pastes::default(),
        branch: driver.branch(),
        late_answer: LateAnswer::default(),
        search: None,
        queue: Vec::new(),
        told: Vec::new(),
        earlier: Vec::new(),
        hint: None,
        interrupted: None,
        escaped: None,
        last_key: None,
        end_reason: None,
        terminal_task: None,
        task_sender,
        driver,
        setup,
    };
    let draft = std::mem::take(&mut app.setup.draft);
    app.editor.insert(&draft);
    app.editor.insert(&typed);
    app.greet();
    if let Some(prompt) = app.setup.first_prompt.take() {
        app.prompt(&plan::shown(&prompt), prompt);
    }
    let result = app
        .event_loop(&mut terminal, &mut input, requests, &mut task_results)
        .await;
    drop(input);
    app.close()?;
    drop(terminal);
    result
}

impl App {
    async fn event_loop(
        &mut self,
        terminal: &mut Terminal,
        input: &mut InputReader,
        requests: &mut Requests,
        task_results: &mut mpsc::UnboundedReceiver<TaskResult>,
    ) -> io::Result<EndReason> {
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut resized = signal(SignalKind::window_change())?;
        let mut continued = signal(SignalKind::from_raw(SIGCONT))?;
        let mut spinner = tokio::time::interval(SPINNER_INTERVAL);
        spinner.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut due: Option<Instant> = Some(Instant::now());
        let mut drawn: Option<Instant> = None;
        loop {
            if let Some(ended) = self.end_reason.take() {
                return Ok(ended);
            }
            let frame = due.map(tokio::time::Instant::from_std);
            let mut interval = FRAME;
            tokio::select! {
                event = input.next() => match event {
                    Some((at, event)) => {
                        interval = KEY_FRAME;
                        self.input(at, event);
                    }
                    // The keyboard is gone: treated like a hangup.
                    None => return Ok(EndReason::Signal(1)),
                },
                event = next(&mut self.work) => match event {
                    Some(event) => self.handle(&event),
                    None => self.stream_ended(),
                },
                Some(event) = self.background.next() => self.handle(&event),
                Some(request) = requests.recv() => self.requests.add(request),
                () = withdrawn(&mut self.active) => self.withdraw(),
                Some(result) = task_results.recv() => self.task_finished(result),
                _ = hang_up.recv() => return Ok(EndReason::Signal(1)),
                _ = terminate.recv() => return Ok(EndReason::Signal(15)),
                _ = interrupt.recv() => self.interrupt(),
                _ = resized.recv() => self.screen.resize(terminal::size()),
                _ = continued.recv() => {
                    terminal.restore()?;
                    terminal.enter_raw_mode()?;
                    self.screen.forget();
                }
                _ = spinner.tick(), if self.changes_with_time() => self.tick(),
                () = sleep_until(frame) => {
                    due = None;
                    drawn = Some(Instant::now());
                    self.screen.resize(terminal::size());
                    self.draw()?;
                    continue;
                }
            }
            self.show_next_request(input)?;
            if let Some(terminal_task) = self.terminal_task.take() {
                self.screen.clear()?;
                input.pause();
                terminal.restore()?;
                match terminal_task {
                    TerminalTask::Suspend => {
                        terminal::suspend()?;
                        let _ = tokio::time::timeout(SUSPEND_WAIT, continued.recv()).await;
                    }
                    TerminalTask::EditArguments => self.edit_arguments(),
                    TerminalTask::EditMessage => self.edit_message(),
                    TerminalTask::EditPlan(file) => self.edit_plan(&file),
                }
                terminal.enter_raw_mode()?;
                input.resume();
                self.screen.forget();
            }
            let soonest = drawn.map_or_else(Instant::now, |drawn| drawn + interval);
            due = Some(due.map_or(soonest, |due| due.min(soonest)));
        }
    }

    /// Whether the screen shows something that changes with time.
    fn changes_with_time(&self) -> bool {
        self.hint.is_some()
            || self.transcript.is_working()
            || self.transcript.has_background_work()
            || !self.requests.is_empty()
            || self
                .active
                .as_ref()
                .is_some_and(|active| !active.accepts_keys)
    }

    fn tick(&mut self) {
        let now = Instant::now();
        self.hint.take_if(|(_, until)| *until < now);
        self.accept_keys_after_pause();
    }

    fn print(&mut self, lines: &[Line]) {
        self.screen.print(lines);
    }

    /// Prints lines from another part of the chat.
    fn section(&mut self, lines: Vec<Line>) {
        let lines = self.transcript.section(lines);
        self.print(&lines);
    }

    fn note(&mut self, text: &str, style: Style) {
        let lines = self.transcript.note(text, style);
        self.print(&lines);
    }

    fn hint(&mut self, text: &str) {
        self.hint = Some((text.to_owned(), Instant::now() + DOUBLE_INTERRUPT));
    }

    fn handle(&mut self, event: &ChatEvent) {
        // Report a withdrawn question before the events that follow it.
        if self.active.as_ref().is_some_and(ActiveRequest::is_closed) {
            self.withdraw();
        }
        let driver = Arc::clone(&self.driver);
        let lines = self
            .transcript
            .handle(event, Instant::now(), &|call| driver.reply_text(call));
        self.print(&lines);
        match (&event.kind, &mut self.work) {
            (EventKind::Agent(AgentEvent::Steering { text }), _) if event.sub_agent.is_none() => {
                if let Some(at) = self.queue.iter().position(|queued| queued == text) {
                    self.queue.remove(at);
                }
            }
            (
                EventKind::Tool(haft::EventKind::ToolStart { call_id, .. }),
                Work::Command { call, .. },
            ) if event.sub_agent.is_none() => *call = Some(call_id.clone()),
            (EventKind::Agent(AgentEvent::AgentEnd { reason, .. }), _)
                if event.sub_agent.is_none() =>
            {
                self.agent_ended(reason);
            }
            _ => {}
        }
    }

    fn agent_ended(&mut self, reason: &str) {
        let queued = std::mem::take(&mut self.queue).join("\n");
        if queued.is_empty() {
            return;
        }
        // Too late for this turn: sent as the next prompt, unless the user has interrupted
        // the run.
        if reason == "done" {
            self.queue = vec![queued];
        } else {
            let typed = self.editor.take();
            let all = [queued, typed].join("\n");
            self.editor.set(all.trim_end());
        }
    }

    fn stream_ended(&mut self) {
        let now = Instant::now();
        if self.transcript.elapsed(now) >= LONG_RUN {
            let call = self.setup.terminal.notification.sequence("haft is done");
            let _ = self.screen.send_sequence(&call);
        }
        if matches!(self.work, Work::Prompt(_)) && self.transcript.is_working() {
            self.note("the run ended without a reason", Style::RED);
        }
        let lines = self.transcript.end_work();
        self.print(&lines);
        let work = std::mem::replace(&mut self.work, Work::Idle);
        if let Work::Command { line, call, .. } = work {
            let output = call.and_then(|call| self.driver.reply_text(&call));
            if let Some(output) = output {
                self.told.push(crate::told_command(&line, &output));
            }
        }
        self.note_changes();
        self.branch = self.driver.branch();
        if let Some(next) = self.queue.pop() {
            self.prompt(&next.clone(), next);
        }
    }

    fn task_finished(&mut self, result: TaskResult) {
        match result {
            TaskResult::Started(Ok(stream)) => match &mut self.work {
                Work::Prompt(events) | Work::Command { events, .. } => *events = Some(stream),
                Work::Idle => {}
            },
            TaskResult::Started(Err(message)) => {
                self.note(&message, Style::RED);
                self.work = Work::Idle;
                let lines = self.transcript.end_work();
                self.print(&lines);
            }
            TaskResult::Message(Ok(message)) => self.note(&message, Style::DIM),
            TaskResult::Message(Err(message)) => self.note(&message, Style::RED),
            TaskResult::Diff(text) => {
                self.section(crate::card::coloured_diff(&text, ""));
            }
            TaskResult::Ask(question, answer) => {
                self.requests.add(Request::Question(question, answer));
            }
            TaskResult::Files(found) => self.show_files(found),
            TaskResult::Sessions(sessions) => self.pick_session(&sessions),
            TaskResult::Prompts(prompts) => self.pick_prompt(prompts),
            TaskResult::Switch(next) => self.end_reason = Some(EndReason::Switch(next)),
            TaskResult::Plan(step) => self.plan(step),
            TaskResult::Instruction(line, Ok(message)) => {
                self.told.push(crate::told_instruction(&line));
                self.note(&message, Style::DIM);
            }
            TaskResult::Instruction(_, Err(message)) => self.note(&message, Style::RED),
        }
    }

    fn submit(&mut self) {
        let folded = self.editor.take();
        self.menu = None;
        let text = self.pastes.unfold(&folded);
        self.history.add(text.trim_end());
        match UserInput::parse(&text, &self.setup.prompts) {
            UserInput::Empty if self.work.is_idle() && self.driver.has_unfinished_run() => {
                self.start_run(String::new());
            }
            UserInput::Empty => {}
            UserInput::Quit => self.end_reason = Some(EndReason::Quit),
            UserInput::UnknownCommand(words) => self.note(&words, Style::YELLOW),
            UserInput::SlashCommand(name, rest) => self.slash_command(name, &rest),
            UserInput::Instruction(line) => self.add_instruction(line),
            UserInput::Saved(prompt) if self.work.is_idle() => self.prompt(&folded, prompt),
            UserInput::Prompt(text) if self.work.is_idle() => self.prompt(&folded, text),
            UserInput::Prompt(text) | UserInput::Saved(text)
                if matches!(self.work, Work::Prompt(_)) =>
            {
                self.driver.steer(text.clone());
                self.queue.push(text);
            }
            UserInput::Prompt(_) | UserInput::Saved(_) | UserInput::ShellCommand(_)
                if !self.work.is_idle() =>
            {
                self.editor.set(text);
                self.hint("wait until the current work is done, or stop it with Ctrl-C");
            }
            UserInput::Prompt(text) | UserInput::Saved(text) => self.prompt(&folded, text),
            UserInput::ShellCommand(line) => self.run_command(line),
        }
    }

    /// Starts a run with a prompt; `shown` is what the user has typed.
    fn prompt(&mut self, shown: &str, text: String) {
        let lines = self.transcript.user_input(shown.trim());
        self.print(&lines);
        self.start_run(text);
    }

    fn start_run(&mut self, text: String) {
        self.transcript.start_work(Instant::now(), Length::Short);
        self.work = Work::Prompt(None);
        let text = std::mem::take(&mut self.told).concat() + &text;
        let (driver, results) = (Arc::clone(&self.driver), self.task_sender.clone());
        tokio::spawn(async move {
            let _ = results.send(TaskResult::Started(driver.prompt(text).await));
        });
    }

    fn run_command(&mut self, line: String) {
        let lines = self.transcript.user_input(&format!("!{line}"));
        self.print(&lines);
        self.transcript.start_work(Instant::now(), Length::Long);
        self.work = Work::Command {
            events: None,
            line: line.clone(),
            call: None,
        };
        let (driver, results) = (Arc::clone(&self.driver), self.task_sender.clone());
        tokio::spawn(async move {
            let _ = results.send(TaskResult::Started(driver.run_command(line).await));
        });
    }

    /// Stops the work in progress; ends the chat when called twice in a short time.
    fn interrupt(&mut self) {
        let now = Instant::now();
        if self
            .interrupted
            .is_some_and(|before| now < before + DOUBLE_INTERRUPT)
        {
            self.end_reason = Some(EndReason::Quit);
            return;
        }
        self.interrupted = Some(now);
        self.search = None;
        self.menu = None;
        if self.stop() {
            self.hint("stopping; Ctrl-C again ends the chat");
        } else if self.editor.is_empty() {
            self.hint("Ctrl-C again ends the chat");
        } else {
            self.editor.take();
            self.hint("Ctrl-C again ends the chat");
        }
    }

    /// Stops the work in progress. Returns false if idle.
    fn stop(&mut self) -> bool {
        let stopped = self.stop_work();
        // Only after stopping, so that the dropped question is not asked again.
        self.active = None;
        stopped
    }

    fn stop_work(&mut self) -> bool {
        match &self.work {
            Work::Idle => false,
            Work::Prompt(_) => {
                self.driver.abort();
                true
            }
            Work::Command { .. } => {
                // Its output so far is dropped.
                self.work = Work::Idle;
                let lines = self.transcript.end_work();
                self.print(&lines);
                self.note("stopped", Style::YELLOW);
                true
            }
        }
    }

    fn close(&mut self) -> io::Result<()> {
        if !self.work.is_idle() {
            self.stop();
        }
        let lines = self.transcript.end_work();
        self.print(&lines);
        if let Some(session) = self.driver.session_id() {
            let line = Line::new("resume with: ", Style::DIM)
                .and(&format!("haft resume {session}"), Style::PLAIN);
            self.print(&[Line::default(), line]);
        }
        self.screen.clear()
    }
}

/// Returns the next event of the work in progress; pending while idle.
async fn next(work: &mut Work) -> Option<ChatEvent> {
    match work.events() {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// Completes when the question is withdrawn.
async fn withdrawn(active: &mut Option<ActiveRequest>) {
    match active {
        Some(active) => active.closed().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(instant: Option<tokio::time::Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

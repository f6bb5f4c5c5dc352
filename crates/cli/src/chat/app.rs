//! The chat on a screen: what happens, in whatever order, and what is seen of it.

mod asking;
mod filling;
mod keys;
mod orders;
mod view;

use super::Ended;
use super::card::Length;
use super::complete::Offer;
use super::driver::{Asked, Driver, Events, Questions, Seen, Waiting};
use super::editor::Editor;
use super::history::History;
use super::ink::{Line, Style};
use super::screen::Screen;
use super::setup::Setup;
use super::slash::Typed;
use super::terminal::{self, Input, Terminal};
use super::transcript::{TURN, Transcript};
use asking::Asking;
use futures::StreamExt;
use haft_agent::{AgentEvent, EventKind};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

/// At most 30 frames a second.
const FRAME: Duration = Duration::from_millis(33);

/// A second Ctrl-C within this ends the chat.
const TWICE: Duration = Duration::from_secs(2);

/// After so long a person may be looking elsewhere when it is done.
const LONG: Duration = Duration::from_secs(30);

/// How long it may take until we are stopped; where nobody would let us go on, we
/// never are.
const STOPPING: Duration = Duration::from_millis(500);

/// SIGCONT: somebody has stopped us and lets us go on.
const CONTINUED: i32 = 18;

/// What comes from work beside the screen.
enum Done {
    /// Work has begun, or could not.
    Began(Result<Events, String>),
    /// Something to say.
    Said(Result<String, String>),
    /// What can stand in place of what was typed.
    Offered(Offer),
}

/// What is being worked at.
enum Work {
    /// Nothing.
    Idle,
    /// Something, whose events come once it has begun.
    Prompt(Option<Events>),
    /// The person's own command line.
    Command {
        events: Option<Events>,
        line: String,
        call: Option<String>,
    },
}

impl Work {
    fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    fn events(&mut self) -> Option<&mut Events> {
        match self {
            Self::Idle => None,
            Self::Prompt(events) | Self::Command { events, .. } => events.as_mut(),
        }
    }
}

/// A look at what can be completed.
struct Choosing {
    offer: Offer,
    at: usize,
}

/// A look into the history.
struct Searching {
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
    /// What sub-agents in the background do meanwhile.
    background: Events,
    asking: Option<Asking>,
    waiting: Waiting,
    choosing: Option<Choosing>,
    searching: Option<Searching>,
    /// What was said while it worked and has not been sent.
    queue: Vec<String>,
    /// What the person ran, for the next prompt.
    ran: Vec<(String, String)>,
    hint: Option<(String, Instant)>,
    interrupted: Option<Instant>,
    last_key: Option<Instant>,
    ended: Option<Ended>,
    /// Things that need more than the state: done where the terminal is at hand.
    errand: Option<Errand>,
    done: mpsc::UnboundedSender<Done>,
}

/// What takes the terminal away for a while.
enum Errand {
    Suspend,
    EditArguments,
}

/// Runs the chat until it ends.
pub(super) async fn run(
    driver: Arc<dyn Driver>,
    setup: Setup,
    questions: &mut Questions,
) -> io::Result<Ended> {
    let mut terminal = Terminal::enter()?;
    let mut input = Input::listen();
    let (done, mut finished) = mpsc::unbounded_channel();
    let size = terminal::size();
    let history = History::load(setup.history.clone());
    let mut app = App {
        screen: Screen::new(terminal::screen()?, setup.look.paint, size),
        transcript: Transcript::new(size.0),
        background: driver.background(),
        driver,
        setup,
        editor: Editor::default(),
        history,
        work: Work::Idle,
        asking: None,
        waiting: Waiting::default(),
        choosing: None,
        searching: None,
        queue: Vec::new(),
        ran: Vec::new(),
        hint: None,
        interrupted: None,
        last_key: None,
        ended: None,
        errand: None,
        done,
    };
    app.greet();
    let result = app
        .live(&mut terminal, &mut input, questions, &mut finished)
        .await;
    app.leave()?;
    drop(terminal);
    result
}

impl App {
    async fn live(
        &mut self,
        terminal: &mut Terminal,
        input: &mut Input,
        questions: &mut Questions,
        finished: &mut mpsc::UnboundedReceiver<Done>,
    ) -> io::Result<Ended> {
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut resized = signal(SignalKind::window_change())?;
        let mut continued = signal(SignalKind::from_raw(CONTINUED))?;
        let mut turn = tokio::time::interval(TURN);
        turn.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut due: Option<Instant> = Some(Instant::now());
        let mut drawn: Option<Instant> = None;
        loop {
            if let Some(ended) = self.ended {
                return Ok(ended);
            }
            let frame = due.map(tokio::time::Instant::from_std);
            tokio::select! {
                event = input.next() => match event {
                    Some((at, event)) => self.input(at, event),
                    // No keyboard any more: as if it had been hung up.
                    None => return Ok(Ended::Signal(1)),
                },
                seen = next(&mut self.work) => match seen {
                    Some(seen) => self.see(&seen),
                    None => self.over(),
                },
                Some(seen) = self.background.next() => self.see(&seen),
                Some(asked) = questions.recv() => self.waiting.add(asked),
                () = gone(&mut self.asking) => self.unasked(),
                Some(done) = finished.recv() => self.done(done),
                _ = hang_up.recv() => return Ok(Ended::Signal(1)),
                _ = terminate.recv() => return Ok(Ended::Signal(15)),
                _ = interrupt.recv() => self.interrupt(),
                _ = resized.recv() => self.screen.resize(terminal::size()),
                _ = continued.recv() => {
                    terminal.lend()?;
                    terminal.ready()?;
                    self.screen.forget();
                }
                _ = turn.tick(), if self.ticks() => self.tick(),
                () = until(frame) => {
                    due = None;
                    drawn = Some(Instant::now());
                    self.screen.resize(terminal::size());
                    self.draw()?;
                    continue;
                }
            }
            self.ask_next(input)?;
            if let Some(errand) = self.errand.take() {
                self.screen.clear()?;
                input.pause();
                terminal.lend()?;
                match errand {
                    Errand::Suspend => {
                        terminal::suspend()?;
                        let _ = tokio::time::timeout(STOPPING, continued.recv()).await;
                    }
                    Errand::EditArguments => self.edit_arguments(),
                }
                terminal.ready()?;
                input.resume();
                self.screen.forget();
            }
            let soonest = drawn.map_or_else(Instant::now, |drawn| drawn + FRAME);
            due = due.or(Some(soonest));
        }
    }

    /// Whether the passing of time is to be seen.
    fn ticks(&self) -> bool {
        self.hint.is_some()
            || self.transcript.is_working()
            || self.transcript.has_background()
            || !self.waiting.is_empty()
            || self.asking.as_ref().is_some_and(|asking| !asking.is_armed)
    }

    fn tick(&mut self) {
        let now = Instant::now();
        self.hint.take_if(|(_, until)| *until < now);
        self.arm();
    }

    fn print(&mut self, lines: &[Line]) {
        self.screen.print(lines);
    }

    fn note(&mut self, text: &str, style: Style) {
        let lines = self.transcript.note(text, style);
        self.print(&lines);
    }

    fn hint(&mut self, text: &str) {
        self.hint = Some((text.to_owned(), Instant::now() + TWICE));
    }

    fn see(&mut self, seen: &Seen) {
        // What happens after a question is not to be torn apart by its end.
        if self.asking.as_ref().is_some_and(Asking::is_closed) {
            self.unasked();
        }
        let driver = Arc::clone(&self.driver);
        let lines = self
            .transcript
            .see(seen, Instant::now(), &|call| driver.output(call));
        self.print(&lines);
        match (&seen.kind, &mut self.work) {
            (EventKind::Agent(AgentEvent::Steering { text }), _) if seen.child.is_none() => {
                if let Some(at) = self.queue.iter().position(|queued| queued == text) {
                    self.queue.remove(at);
                }
            }
            (
                EventKind::Tool(haft::EventKind::ToolStart { call_id, .. }),
                Work::Command { call, .. },
            ) if seen.child.is_none() => *call = Some(call_id.clone()),
            (EventKind::Agent(AgentEvent::AgentEnd { reason, .. }), _) if seen.child.is_none() => {
                self.answered(reason);
            }
            _ => {}
        }
    }

    /// The agent has stopped working.
    fn answered(&mut self, reason: &str) {
        let queued = std::mem::take(&mut self.queue).join("\n");
        if queued.is_empty() {
            return;
        }
        // It was too late for this turn: the next thing to do, unless the person has
        // changed their mind about all of it.
        if reason == "done" {
            self.queue = vec![queued];
        } else {
            let typed = self.editor.take();
            let all = [queued, typed].join("\n");
            self.editor.set(all.trim_end());
        }
    }

    /// The stream of events is over.
    fn over(&mut self) {
        let now = Instant::now();
        if self.transcript.elapsed(now) >= LONG {
            let call = self.setup.look.call.sequence("haft is done");
            let _ = self.screen.signal(&call);
        }
        if matches!(self.work, Work::Prompt(_)) && self.transcript.is_working() {
            self.note("it has ended without saying why", Style::RED);
        }
        let lines = self.transcript.end();
        self.print(&lines);
        let work = std::mem::replace(&mut self.work, Work::Idle);
        if let Work::Command { line, call, .. } = work {
            let output = call.and_then(|call| self.driver.output(&call));
            if let Some(output) = output {
                self.ran.push((line, output));
            }
        }
        if let Some(next) = self.queue.pop() {
            self.prompt(next);
        }
    }

    fn done(&mut self, done: Done) {
        match done {
            Done::Began(Ok(stream)) => match &mut self.work {
                Work::Prompt(events) | Work::Command { events, .. } => *events = Some(stream),
                Work::Idle => {}
            },
            Done::Began(Err(message)) => {
                self.note(&message, Style::RED);
                self.work = Work::Idle;
                let lines = self.transcript.end();
                self.print(&lines);
            }
            Done::Said(Ok(message)) => self.note(&message, Style::DIM),
            Done::Said(Err(message)) => self.note(&message, Style::RED),
            Done::Offered(offer) => self.offered(offer),
        }
    }

    /// What was typed is sent.
    fn submit(&mut self) {
        let text = self.editor.take();
        self.choosing = None;
        self.history.add(text.trim_end());
        match Typed::of(&text) {
            Typed::Nothing if self.work.is_idle() && self.driver.is_left() => {
                self.work_at(String::new());
            }
            Typed::Nothing => {}
            Typed::Quit => self.ended = Some(Ended::Quit),
            Typed::Unknown(words) => self.note(&words, Style::YELLOW),
            Typed::Slash(name, rest) => self.order(name, &rest),
            Typed::Prompt(text) if self.work.is_idle() => self.prompt(text),
            Typed::Prompt(text) if matches!(self.work, Work::Prompt(_)) => {
                self.driver.steer(text.clone());
                self.queue.push(text);
            }
            Typed::Prompt(_) | Typed::Command(_) if !self.work.is_idle() => {
                self.editor.set(text);
                self.hint("wait until it is done, or stop it with Ctrl-C");
            }
            Typed::Prompt(text) => self.prompt(text),
            Typed::Command(line) => self.command(line),
        }
    }

    fn prompt(&mut self, text: String) {
        let lines = self.transcript.said(&text);
        self.print(&lines);
        self.work_at(text);
    }

    fn work_at(&mut self, text: String) {
        self.transcript.begin(Instant::now(), Length::Short);
        self.work = Work::Prompt(None);
        let text = super::with_outputs(std::mem::take(&mut self.ran), &text);
        let (driver, done) = (Arc::clone(&self.driver), self.done.clone());
        tokio::spawn(async move {
            let _ = done.send(Done::Began(driver.prompt(text).await));
        });
    }

    fn command(&mut self, line: String) {
        let lines = self.transcript.said(&format!("!{line}"));
        self.print(&lines);
        self.transcript.begin(Instant::now(), Length::Long);
        self.work = Work::Command {
            events: None,
            line: line.clone(),
            call: None,
        };
        let (driver, done) = (Arc::clone(&self.driver), self.done.clone());
        tokio::spawn(async move {
            let _ = done.send(Done::Began(driver.command(line).await));
        });
    }

    /// Stops what is worked at; at the second time ends the chat.
    fn interrupt(&mut self) {
        let now = Instant::now();
        if self.interrupted.is_some_and(|before| now < before + TWICE) {
            self.ended = Some(Ended::Quit);
            return;
        }
        self.interrupted = Some(now);
        self.searching = None;
        self.choosing = None;
        if self.stop() {
            self.hint("stopping; Ctrl-C again ends the chat");
        } else if self.editor.is_empty() {
            self.hint("Ctrl-C again ends the chat");
        } else {
            self.editor.take();
            self.hint("Ctrl-C again ends the chat");
        }
    }

    /// Stops what is worked at; no if that is nothing.
    fn stop(&mut self) -> bool {
        let stopped = self.stop_work();
        // Only now: a question that nobody answers any more is not to be asked again.
        self.asking = None;
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
                // What it said until now is of no use to anybody.
                self.work = Work::Idle;
                let lines = self.transcript.end();
                self.print(&lines);
                self.note("stopped", Style::YELLOW);
                true
            }
        }
    }

    fn leave(&mut self) -> io::Result<()> {
        if !self.work.is_idle() {
            self.stop();
        }
        let lines = self.transcript.end();
        self.print(&lines);
        if let Some(session) = self.driver.session() {
            let line = Line::new("resume with: ", Style::DIM)
                .and(&format!("haft resume {session}"), Style::PLAIN);
            self.print(&[Line::default(), line]);
        }
        self.screen.clear()
    }
}

/// The next event of what is worked at; never one while there is nothing.
async fn next(work: &mut Work) -> Option<Seen> {
    match work.events() {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// When nobody wants to know the answer any more.
async fn gone(asking: &mut Option<Asking>) {
    match asking {
        Some(asking) => asking.closed().await,
        None => std::future::pending().await,
    }
}

async fn until(instant: Option<tokio::time::Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant).await,
        None => std::future::pending().await,
    }
}

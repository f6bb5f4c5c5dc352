//! The chat in plain lines: for a terminal without a cursor, and where what is said
//! goes into a file. Nothing moves, nothing is drawn twice.

use super::Ended;
use super::card::Length;
use super::driver::{Asked, Driver, Events, Questions, Waiting};
use super::form::Sheet;
use super::ink::{Line, Paint, Style};
use super::question::{self, Extent};
use super::setup::Setup;
use super::slash::{self, Typed};
use super::transcript::Transcript;
use futures::StreamExt;
use haft::{Answer, Filled, Question};
use haft_agent::{AgentEvent, EventKind};
use rustix::termios::{QueueSelector, tcflush};
use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

/// What lines are made for where nobody says.
const WIDTH: usize = 80;

/// How long a question that nothing announces is waited for, again and again.
const MOMENT: Duration = Duration::from_millis(100);

/// A second interrupt within this ends the chat.
const TWICE: Duration = Duration::from_secs(2);

struct Lines {
    driver: Arc<dyn Driver>,
    setup: Setup,
    transcript: Transcript,
    events: Option<Events>,
    /// What sub-agents in the background do meanwhile.
    background: Events,
    /// A command line that the person runs, and its call.
    command: Option<(String, Option<String>)>,
    ran: Vec<(String, String)>,
    queue: Vec<String>,
    asked: Option<Open>,
    waiting: Waiting,
    /// Whether a person sees where they type.
    prompts: bool,
}

/// What was asked and waits for a line that is typed.
enum Open {
    Question(Box<Question>, oneshot::Sender<Answer>),
    /// Whether somebody wants to fill it in at all.
    Offer(Sheet, oneshot::Sender<Filled>),
    /// The next field.
    Field(Sheet, oneshot::Sender<Filled>),
}

impl Open {
    /// Whether nobody wants to know any more.
    fn is_closed(&self) -> bool {
        match self {
            Self::Question(_, answer) => answer.is_closed(),
            Self::Offer(_, filled) | Self::Field(_, filled) => filled.is_closed(),
        }
    }
}

/// Runs the chat until it ends.
pub(super) async fn run(
    driver: Arc<dyn Driver>,
    setup: Setup,
    questions: &mut Questions,
) -> io::Result<Ended> {
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut typed = typed();
    let mut interrupted: Option<Instant> = None;
    let mut chat = Lines {
        background: driver.background(),
        driver,
        setup,
        transcript: Transcript::new(WIDTH),
        events: None,
        command: None,
        ran: Vec::new(),
        queue: Vec::new(),
        asked: None,
        waiting: Waiting::default(),
        prompts: io::stdout().is_terminal(),
    };
    chat.greet()?;
    let ended = loop {
        chat.ready()?;
        tokio::select! {
            line = typed.recv() => match line {
                Some(line) if chat.asked.is_some() => chat.answer(line.trim())?,
                Some(line) => if chat.take(&line).await? {
                    break Ended::Quit;
                },
                None if chat.events.is_none() => break Ended::Quit,
                // What was asked for is still done.
                None => chat.drain(questions).await?,
            },
            seen = next(&mut chat.events) => match seen {
                Some(seen) => chat.see(&seen)?,
                None => chat.over().await?,
            },
            Some(seen) = chat.background.next() => chat.see(&seen)?,
            Some(asked) = questions.recv() => chat.waiting.add(asked),
            () = gone(&mut chat.asked) => chat.unasked()?,
            () = tokio::time::sleep(MOMENT), if !chat.waiting.is_empty() => {}
            _ = interrupt.recv() => {
                let now = Instant::now();
                if chat.events.is_none() || interrupted.is_some_and(|at| now < at + TWICE) {
                    break Ended::Quit;
                }
                interrupted = Some(now);
                chat.stop();
            }
            _ = hang_up.recv() => break Ended::Signal(1),
            _ = terminate.recv() => break Ended::Signal(15),
        }
        let transcript = &chat.transcript;
        if chat.asked.is_none()
            && let Some(asked) = chat.waiting.take(|asked| transcript.is_asked(asked))
        {
            // What was typed before it is no answer to it.
            while typed.try_recv().is_ok() {}
            let _ = tcflush(io::stdin(), QueueSelector::IFlush);
            chat.ask(asked)?;
        }
    };
    if let Some(session) = chat.driver.session() {
        chat.print(&[Line::plain(&format!("resume with: haft resume {session}"))])?;
    }
    Ok(ended)
}

impl Lines {
    fn print(&self, lines: &[Line]) -> io::Result<()> {
        let mut text = String::new();
        for row in lines.iter().flat_map(|line| line.rows(WIDTH)) {
            text.push_str(&row.render(Paint::Plain));
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
        if let Some(before) = &greeting.before {
            lines.extend(self.transcript.recalled(before));
        }
        self.print(&lines)
    }

    /// Shows that something can be typed.
    fn ready(&mut self) -> io::Result<()> {
        if !self.prompts || self.events.is_some() {
            return Ok(());
        }
        self.prompts = false;
        let mut out = io::stdout().lock();
        out.write_all(b"\n> ")?;
        out.flush()
    }

    /// Whether the last line on the terminal is one to type on.
    fn is_prompting(&self) -> bool {
        let is_open = self.events.is_none() && self.asked.is_none();
        is_open && !self.prompts && io::stdout().is_terminal()
    }

    /// Nobody wants to know any more.
    fn unasked(&mut self) -> io::Result<()> {
        self.asked = None;
        let lines = self
            .transcript
            .note("the question was withdrawn", Style::DIM);
        self.print(&lines)
    }

    fn see(&mut self, seen: &super::driver::Seen) -> io::Result<()> {
        // What happens after a question is not to be torn apart by its end.
        if self.asked.as_ref().is_some_and(Open::is_closed) {
            self.unasked()?;
        }
        match &seen.kind {
            EventKind::Agent(AgentEvent::Steering { text }) if seen.child.is_none() => {
                self.queue.retain(|queued| queued != text);
            }
            EventKind::Tool(haft::EventKind::ToolStart { call_id, .. }) if seen.child.is_none() => {
                if let Some((_, call)) = &mut self.command {
                    *call = Some(call_id.clone());
                }
            }
            _ => {}
        }
        let driver = Arc::clone(&self.driver);
        let output = |call: &str| driver.output(call);
        let lines = self.transcript.see(seen, Instant::now(), &output);
        if lines.is_empty() {
            return Ok(());
        }
        if self.is_prompting() {
            // It comes while somebody may be typing: below that, and the prompt again.
            self.prompts = true;
            self.print(&[Line::default()])?;
        }
        self.print(&lines)
    }

    /// Something was typed; yes if it is the end.
    async fn take(&mut self, line: &str) -> io::Result<bool> {
        self.prompts = io::stdout().is_terminal();
        let is_idle = self.events.is_none();
        match Typed::of(line) {
            Typed::Nothing if is_idle && self.driver.is_left() => {
                self.prompt(String::new()).await?;
            }
            Typed::Nothing => {}
            Typed::Quit => return Ok(true),
            Typed::Unknown(words) => self.print(&[Line::plain(&words)])?,
            Typed::Slash(name, rest) => self.order(name, &rest).await?,
            Typed::Prompt(text) if is_idle => self.prompt(text).await?,
            Typed::Prompt(text) if self.command.is_none() => {
                self.driver.steer(text.clone());
                self.queue.push(text);
            }
            Typed::Command(line) if is_idle => {
                self.transcript.begin(Instant::now(), Length::Long);
                match self.driver.command(line.clone()).await {
                    Ok(events) => {
                        self.events = Some(events);
                        self.command = Some((line, None));
                    }
                    Err(message) => self.fail(&message)?,
                }
            }
            _ => self.print(&[Line::plain("wait until it is done")])?,
        }
        Ok(false)
    }

    async fn prompt(&mut self, text: String) -> io::Result<()> {
        self.transcript.begin(Instant::now(), Length::ShortForGood);
        let text = super::with_outputs(std::mem::take(&mut self.ran), &text);
        match self.driver.prompt(text).await {
            Ok(events) => {
                self.events = Some(events);
                Ok(())
            }
            Err(message) => self.fail(&message),
        }
    }

    fn fail(&mut self, message: &str) -> io::Result<()> {
        let mut lines = self.transcript.end();
        lines.extend(self.transcript.note(message, Style::RED));
        self.print(&lines)
    }

    async fn order(&mut self, name: &str, rest: &str) -> io::Result<()> {
        let driver = Arc::clone(&self.driver);
        let said = match name {
            "/help" => return self.print(&slash::table(&slash::help(), WIDTH)),
            "/tools" => return self.print(&slash::table(&driver.tools(), WIDTH)),
            "/cost" => return self.print(&slash::table(&slash::cost(&driver.usage()), WIDTH)),
            "/model" if rest.is_empty() => Ok(slash::model(&*driver)),
            "/model" | "/compact" if self.events.is_some() => {
                Err("wait until it is done".to_owned())
            }
            "/model" => {
                let set = driver.set_model(rest).await;
                set.map(|()| format!("the model is {} from now on", driver.model()))
            }
            "/compact" => driver.compact().await,
            _ => driver.sessions().await.map(|all| slash::listed(&all)),
        };
        let words = said.unwrap_or_else(|error| error);
        let lines: Vec<Line> = words.lines().map(Line::plain).collect();
        self.print(&lines)
    }

    async fn over(&mut self) -> io::Result<()> {
        self.events = None;
        let lines = self.transcript.end();
        self.print(&lines)?;
        if let Some((line, call)) = self.command.take()
            && let Some(output) = call.and_then(|call| self.driver.output(&call))
        {
            self.ran.push((line, output));
        }
        self.prompts = io::stdout().is_terminal();
        match std::mem::take(&mut self.queue).join("\n") {
            queued if queued.is_empty() => Ok(()),
            queued => self.prompt(queued).await,
        }
    }

    /// Nothing more can be typed: what is worked at is waited for, and what it asks is
    /// answered another day.
    async fn drain(&mut self, questions: &mut Questions) -> io::Result<()> {
        self.asked = None;
        self.waiting = Waiting::default();
        loop {
            tokio::select! {
                seen = next(&mut self.events) => match seen {
                    Some(seen) => self.see(&seen)?,
                    None => return self.over().await,
                },
                // Who asks hears that nobody is there.
                Some(asked) = questions.recv() => drop(asked),
            }
        }
    }

    fn stop(&mut self) {
        if self.command.take().is_some() {
            self.events = None;
        } else {
            self.driver.abort();
        }
        self.asked = None;
    }

    fn ask(&mut self, asked: Asked) -> io::Result<()> {
        match asked {
            Asked::Question(question, answer) => {
                let lines = question::lines(&question, &self.setup.around, Extent::Whole, WIDTH);
                let always = match question.suggestion {
                    Some(_) => ", a: always",
                    None => "",
                };
                let keys =
                    format!("  y yes, n no (n WHY says why), e JSON other arguments{always}");
                self.show(lines, &question.call_id, &[&keys, "Run it? [y/N]"])?;
                self.asked = Some(Open::Question(Box::new(question), answer));
            }
            Asked::Form(form, filled) => match Sheet::new(form) {
                Ok(sheet) => {
                    self.show(sheet.lines(WIDTH), sheet.call_id(), &["Answer? [y/N]"])?;
                    self.asked = Some(Open::Offer(sheet, filled));
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
        if self.transcript.is_childs(call) {
            lines.push(question::fact("for", "a sub-agent"));
        }
        let mut lines = self.transcript.beside(lines);
        lines.extend(keys.iter().map(|words| Line::plain(words)));
        self.print(&lines)
    }

    fn answer(&mut self, line: &str) -> io::Result<()> {
        match self.asked.take() {
            None => Ok(()),
            Some(Open::Question(question, answer)) => self.decide(question, answer, line),
            Some(Open::Offer(sheet, filled)) => {
                if matches!(line.to_ascii_lowercase().as_str(), "y" | "yes") {
                    return self.go_on(sheet, filled);
                }
                let _ = filled.send(Filled::Declined);
                Ok(())
            }
            Some(Open::Field(mut sheet, filled)) => {
                if let Err(why) = sheet.take(line) {
                    self.print(&[Line::plain(&format!("  {why}"))])?;
                }
                self.go_on(sheet, filled)
            }
        }
    }

    /// Asks for the next field, or sends them all.
    fn go_on(&mut self, sheet: Sheet, filled: oneshot::Sender<Filled>) -> io::Result<()> {
        match sheet.prompt() {
            Some(prompt) => {
                self.asked = Some(Open::Field(sheet, filled));
                self.print(&[Line::plain(&format!("  {prompt}")).hanging(4)])
            }
            None => {
                // Whoever asked may have gone.
                let _ = filled.send(sheet.filled());
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
            "y" | "yes" if rest.is_empty() => Answer::Approve,
            "a" | "always" if question.suggestion.is_some() => Answer::Always,
            "e" => match serde_json::from_str(rest) {
                Ok(arguments @ serde_json::Value::Object(_)) => Answer::ApproveWith { arguments },
                _ => {
                    self.asked = Some(Open::Question(question, sender));
                    let words = "not a JSON object; e {\"name\": value} gives other arguments";
                    return self.print(&[Line::plain(words)]);
                }
            },
            "n" | "no" => Answer::Reject { reason },
            _ => Answer::Reject { reason: None },
        };
        // Whoever asked may have gone.
        let _ = sender.send(answer);
        Ok(())
    }
}

/// The lines that are typed, read by a thread of its own.
fn typed() -> mpsc::UnboundedReceiver<String> {
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

async fn next(events: &mut Option<Events>) -> Option<super::driver::Seen> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

/// When nobody wants to know the answer any more.
async fn gone(open: &mut Option<Open>) {
    match open {
        Some(Open::Question(_, answer)) => answer.closed().await,
        Some(Open::Offer(_, filled) | Open::Field(_, filled)) => filled.closed().await,
        None => std::future::pending().await,
    }
}

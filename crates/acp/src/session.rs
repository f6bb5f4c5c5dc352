//! An open session: prompts, settings, and the updates about them.

mod background;
mod run;
mod settings;

use crate::asker::Asker;
use crate::client::Client;
use crate::commands;
use crate::port::{Choices, Failure, FailureKind, Host, Mode, Offers, Opened, Seat};
use crate::port::{SlashCommand, Start, Wanted};
use crate::prompt::{self, Part, Request};
use crate::replay::Replay;
use crate::rpc::{RpcError, code};
use crate::schema::{Place, StopReason};
use crate::translate::compacted;
use crate::update::Update;
use futures::future::BoxFuture;
use haft_agent::{Message, PLAN_NOTE, UserInput};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Maximum characters of a title.
const MAX_TITLE: usize = 200;

/// Context window in tokens that the agent assumes for models whose own is unknown.
const DEFAULT_WINDOW: u64 = 128_000;

/// An open session.
pub(crate) struct Session {
    pub(crate) id: String,
    client: Arc<Client>,
    host: Arc<dyn Host>,
    place: Place,
    asker: Arc<Asker>,
    state: Mutex<State>,
    /// Held while a prompt is worked on.
    turn: Arc<tokio::sync::Mutex<()>>,
}

struct State {
    seat: Option<Arc<dyn Seat>>,
    offers: Offers,
    commands: Vec<SlashCommand>,
    modes: Vec<Mode>,
    /// Problems that the client does not know yet, once they are known.
    problems: Option<BoxFuture<'static, Vec<String>>>,
    /// Problems that the client knows.
    told: HashSet<String>,
    /// Waits for problems.
    reporting: Option<JoinHandle<()>>,
    has_title: bool,
    /// Settings that the user chose, and those that the seat was opened with.
    choices: Choices,
    applied: Choices,
    /// The prompt in progress, with a number.
    running: Option<(u64, CancellationToken)>,
    prompts: u64,
    /// Shows sub-agents in the background.
    background: Option<JoinHandle<()>>,
    /// Sub-agents in the background that the user has ended, and the model does not know of.
    stopped: Vec<String>,
}

/// State that is kept when a session is opened again.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    choices: Choices,
    mode: Mode,
}

/// A prompt that has been accepted.
pub(crate) struct Accepted {
    number: u64,
    cancel: CancellationToken,
}

pub(crate) fn failed(failure: Failure) -> RpcError {
    let code = match failure.kind {
        FailureKind::NeedsSetup => code::AUTH_REQUIRED,
        FailureKind::NotFound => code::NOT_FOUND,
        FailureKind::Invalid => code::INVALID_PARAMS,
        FailureKind::InUse => code::INVALID_REQUEST,
        FailureKind::Failed => code::INTERNAL,
    };
    RpcError::new(code, failure.message)
}

impl Session {
    /// Opens a session, and returns its messages too.
    pub(crate) async fn open(
        client: &Arc<Client>,
        host: &Arc<dyn Host>,
        start: Start,
        place: Place,
        kept: Option<Kept>,
    ) -> Result<(Arc<Self>, Vec<Message>), RpcError> {
        let asker = Arc::new(Asker::new(Arc::clone(client)));
        let (choices, mode) = match kept {
            Some(Kept { choices, mode }) => (choices, Some(mode)),
            None => (Choices::default(), None),
        };
        let opened = host.open(wanted(start, &place, &choices, &asker)).await;
        let opened = opened.map_err(failed)?;
        let id = opened.seat.agent().session().to_owned();
        let folder = opened.folder.clone();
        asker.opened(
            &id,
            folder.clone(),
            mode.filter(|mode| opened.modes.contains(mode))
                .unwrap_or(opened.mode),
            opened.interrupt_on.clone(),
        );
        let place = Place { folder, ..place };
        let session = Self {
            id,
            client: Arc::clone(client),
            host: Arc::clone(host),
            place,
            asker,
            state: Mutex::new(State {
                seat: None,
                offers: Offers::default(),
                commands: Vec::new(),
                modes: Vec::new(),
                problems: None,
                told: HashSet::new(),
                reporting: None,
                has_title: opened.title.is_some(),
                applied: choices.clone(),
                choices,
                running: None,
                prompts: 0,
                background: None,
                stopped: Vec::new(),
            }),
            turn: Arc::default(),
        };
        let seat = Arc::clone(&opened.seat);
        let messages = session.take_seat(opened);
        session.lock().commands = seat.slash_commands().await;
        Ok((Arc::new(session), messages))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Uses a seat from now on.
    fn take_seat(&self, opened: Opened) -> Vec<Message> {
        let model = opened.seat.agent().model();
        let window = model.context_window().unwrap_or(DEFAULT_WINDOW);
        self.asker
            .translate(|translator| translator.set_window(window));
        let shown = background::show(
            opened.seat.agent(),
            Arc::clone(&self.asker),
            Arc::clone(&self.client),
            self.id.clone(),
        );
        let mut state = self.lock();
        state.seat = Some(opened.seat);
        state.offers = opened.offers;
        state.modes = opened.modes;
        state.problems = Some(opened.problems);
        if let Some(old) = state.background.replace(shown) {
            old.abort();
        }
        opened.messages
    }

    fn seat(&self) -> Result<Arc<dyn Seat>, RpcError> {
        let seat = self.lock().seat.clone();
        seat.ok_or_else(|| RpcError::new(code::NOT_FOUND, "the session was closed"))
    }

    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the settings that stay when the session is opened again.
    pub(crate) fn kept(&self) -> Kept {
        let mode = self.asker.mode();
        Kept {
            choices: Choices {
                is_read_only: mode == Mode::Plan,
                ..self.lock().choices.clone()
            },
            mode,
        }
    }

    /// Whether the session is not recorded yet, because it has had no prompt.
    pub(crate) fn is_unrecorded(&self) -> bool {
        let state = self.lock();
        let seat = state.seat.as_ref();
        seat.is_some_and(|seat| seat.agent().history().is_empty())
    }

    /// Checks that the session could be opened again.
    pub(crate) async fn check_open(&self, start: Start, place: &Place) -> Result<(), RpcError> {
        let request = wanted(start, place, &self.kept().choices, &self.asker);
        self.host.check_open(&request).await.map_err(failed)
    }

    /// Tells the client what is wrong with its servers and other tools, once that is known.
    pub(crate) fn tell_problems(self: &Arc<Self>) {
        let Some(problems) = self.lock().problems.take() else {
            return;
        };
        let session = Arc::downgrade(self);
        let reporting = tokio::spawn(async move {
            let problems = problems.await;
            let Some(session) = session.upgrade() else {
                return;
            };
            for problem in problems {
                if session.lock().told.insert(problem.clone()) {
                    session.client.update(&session.id, Update::Note(problem));
                }
            }
        });
        if let Some(old) = self.lock().reporting.replace(reporting) {
            old.abort();
        }
    }

    /// Tells the client the slash commands.
    pub(crate) fn tell_commands(&self) {
        let commands = commands::all(&self.lock().commands);
        self.client
            .tell(|protocol| Some(protocol.commands(&self.id, &commands)));
    }

    /// Replays the conversation.
    pub(crate) async fn replay(&self, messages: Vec<Message>) {
        let Ok(seat) = self.seat() else {
            return;
        };
        let replay = Replay {
            work_dir: self.place.folder.clone(),
            // Calls that wait for the user are asked about again with the next prompt.
            can_continue: seat.agent().has_work(),
            recorded: seat.agent().runtime().effects().cloned(),
            sub_agents: seat.sub_agents().await,
            session: self.id.clone(),
        };
        let mut updates = replay.start(messages);
        while let Some(update) = updates.recv().await {
            self.client.update(&self.id, update);
            self.client.outbox.wait_for_room().await;
        }
    }

    /// Tells the client how full the context window is, and the cost of the session so far.
    pub(crate) fn tell_usage(&self) {
        let Ok(seat) = self.seat() else {
            return;
        };
        let (used, size) = seat.agent().context_size();
        let cost = seat.agent().usage().cost;
        self.asker.translate(|translator| translator.set_cost(cost));
        if used > 0 {
            let update = Update::Usage { used, size, cost };
            self.client.update(&self.id, update);
        }
    }

    /// Whether a prompt becomes part of the conversation.
    pub(crate) fn records(&self, parts: &[Part]) -> bool {
        !prompt::is_own_command(parts, &self.lock().commands)
    }

    /// Whether a prompt is being worked on.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.lock();
        let running = state.running.as_ref();
        running.is_some_and(|(_, cancel)| !cancel.is_cancelled())
    }

    /// Accepts a prompt, unless another one is being worked on.
    pub(crate) fn accept(&self) -> Result<Accepted, RpcError> {
        let mut state = self.lock();
        if let Some((_, running)) = &state.running
            && !running.is_cancelled()
        {
            return Err(RpcError::new(
                code::INVALID_REQUEST,
                "the session is working on a prompt; wait for its end, or cancel it first",
            ));
        }
        state.prompts += 1;
        let (number, cancel) = (state.prompts, CancellationToken::new());
        state.running = Some((number, cancel.clone()));
        Ok(Accepted { number, cancel })
    }

    /// Cancels the prompt in progress, and ends the sub-agents in the background.
    pub(crate) fn cancel(&self) {
        self.cancel_prompt();
        self.stop_background();
    }

    fn cancel_prompt(&self) {
        if let Some((_, running)) = &self.lock().running {
            running.cancel();
        }
    }

    /// Works on an accepted prompt until it ends.
    pub(crate) async fn prompt(
        self: &Arc<Self>,
        accepted: Accepted,
        parts: Vec<Part>,
    ) -> Result<StopReason, RpcError> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let result = match accepted.cancel.is_cancelled() {
            true => Ok(StopReason::Cancelled),
            false => self.work(&accepted.cancel, parts, turn).await,
        };
        let mut state = self.lock();
        if state.running.as_ref().map(|(number, _)| *number) == Some(accepted.number) {
            state.running = None;
        }
        match accepted.cancel.is_cancelled() {
            // Errors that it causes are not failures of the run.
            true => Ok(StopReason::Cancelled),
            false => result,
        }
    }

    async fn work(
        self: &Arc<Self>,
        cancel: &CancellationToken,
        parts: Vec<Part>,
        turn: OwnedMutexGuard<()>,
    ) -> Result<StopReason, RpcError> {
        self.reopen_if_changed().await?;
        self.tell_problems();
        let seat = self.seat()?;
        let users = self.read_commands(&*seat).await;
        let mut input = match prompt::read(parts, &users) {
            Request::Own(name, words) => {
                let text = tokio::select! {
                    text = own_command(&*seat, name, words) => text,
                    () = cancel.cancelled() => return Ok(StopReason::Cancelled),
                };
                self.client.update(&self.id, Update::Answer(text));
                return Ok(StopReason::EndTurn);
            }
            Request::Prompt(input) => input,
        };
        if input.text.trim().is_empty() && input.pictures.is_empty() {
            return Err(RpcError::invalid("the prompt is empty"));
        }
        self.tell_title(&input);
        if self.asker.mode() == Mode::Plan {
            input.notes.push(PLAN_NOTE.to_owned());
        }
        input.notes.extend(self.note_of_stopped());
        self.run(cancel, input, &seat, turn).await
    }

    /// Reads the user's slash commands, and tells the client if they have changed.
    async fn read_commands(&self, seat: &dyn Seat) -> Vec<SlashCommand> {
        let users = seat.slash_commands().await;
        let old = std::mem::replace(&mut self.lock().commands, users.clone());
        if old != users {
            self.tell_commands();
        }
        users
    }

    /// Tells the client the title, which comes from the first prompt.
    fn tell_title(&self, input: &UserInput) {
        let is_first = !std::mem::replace(&mut self.lock().has_title, true);
        // On one line, as in the list of sessions.
        let words: Vec<_> = input.text.split_whitespace().collect();
        if is_first && !words.is_empty() {
            let title = haft::ops::text::brief(words.join(" "), MAX_TITLE);
            self.client.update(&self.id, Update::Title(title));
        }
    }

    /// Opens the session again with other settings, if the user has changed them.
    async fn reopen_if_changed(&self) -> Result<(), RpcError> {
        let (seat, choices) = {
            let mut state = self.lock();
            state.choices.is_read_only = self.asker.mode() == Mode::Plan;
            let without_model = |choices: &Choices| Choices {
                model: None,
                effort: None,
                ..choices.clone()
            };
            if without_model(&state.choices) == without_model(&state.applied) {
                return Ok(());
            }
            (state.seat.take(), state.choices.clone())
        };
        let start = match &seat {
            Some(seat) if seat.agent().history().is_empty() => Start::New(Some(self.id.clone())),
            _ => Start::Recorded(self.id.clone()),
        };
        if let Some(seat) = seat {
            seat.close().await;
        }
        let request = wanted(start.clone(), &self.place, &choices, &self.asker);
        match self.host.open(request).await {
            Ok(opened) => {
                self.take_seat(opened);
                self.lock().applied = choices;
                Ok(())
            }
            Err(failure) => {
                // The session goes on with the settings that worked.
                let applied = self.lock().applied.clone();
                let request = wanted(start, &self.place, &applied, &self.asker);
                if let Ok(opened) = self.host.open(request).await {
                    self.take_seat(opened);
                    self.lock().choices = applied;
                }
                Err(failed(failure))
            }
        }
    }

    /// Ends the session and everything it started.
    pub(crate) async fn close(&self) {
        self.cancel_prompt();
        let _turn = self.turn.lock().await;
        let seat = {
            let mut state = self.lock();
            if let Some(background) = state.background.take() {
                background.abort();
            }
            if let Some(reporting) = state.reporting.take() {
                reporting.abort();
            }
            state.seat.take()
        };
        if let Some(seat) = seat {
            seat.close().await;
        }
    }
}

fn wanted(start: Start, place: &Place, choices: &Choices, asker: &Arc<Asker>) -> Wanted {
    Wanted {
        start,
        folder: place.folder.clone(),
        roots: place.roots.clone(),
        servers: place.servers.clone(),
        choices: choices.clone(),
        approver: Arc::clone(asker) as Arc<dyn haft::Approver>,
    }
}

/// Runs one of haft's own commands and returns its output.
async fn own_command(seat: &dyn Seat, name: &str, words: String) -> String {
    let done = match name {
        "changes" => seat
            .changes(words)
            .await
            .map(|diff| format!("```diff\n{}\n```", diff.trim_end())),
        "undo" => seat.undo(words).await,
        "redo" => seat.redo().await,
        "export" => seat.export(words).await,
        _ => {
            let done = seat.compact().await;
            done.map(|(before, after)| compacted(before, after))
        }
    };
    done.unwrap_or_else(|problem| {
        let problem = problem.strip_prefix("error: ").unwrap_or(&problem);
        format!("/{name}: {problem}")
    })
}

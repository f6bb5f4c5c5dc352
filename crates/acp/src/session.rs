//! An open session: prompts, settings, and the updates about them.

mod run;

use crate::asker::Asker;
use crate::client::Client;
use crate::commands::{self, Request};
use crate::port::{Choices, Failure, FailureKind, Host, Mode, Offers, Opened, Seat};
use crate::port::{SlashCommand, Start, Wanted};
use crate::prompt::{self, Part};
use crate::replay;
use crate::rpc::{RpcError, code};
use crate::schema::{Category, Chosen, Place, SessionState, Setting, StopReason};
use crate::update::Update;
use futures::StreamExt;
use haft_agent::{Message, PLAN_NOTE, UserInput};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Maximum characters of a title.
const MAX_TITLE: usize = 80;

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
    has_title: bool,
    /// Settings that the user chose, and those that the seat was opened with.
    choices: Choices,
    applied: Choices,
    /// The prompt in progress, with a number.
    running: Option<(u64, CancellationToken)>,
    prompts: u64,
    /// Shows sub-agents in the background.
    background: Option<JoinHandle<()>>,
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
    ) -> Result<(Arc<Self>, Vec<Message>), RpcError> {
        let asker = Arc::new(Asker::new(Arc::clone(client)));
        let choices = Choices::default();
        let opened = host.open(wanted(start, &place, &choices, &asker)).await;
        let opened = opened.map_err(failed)?;
        let id = opened.seat.agent().session().to_owned();
        let folder = opened.folder.clone();
        asker.opened(
            &id,
            folder.clone(),
            opened.mode,
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
                has_title: opened.title.is_some(),
                applied: choices.clone(),
                choices,
                running: None,
                prompts: 0,
                background: None,
            }),
            turn: Arc::default(),
        };
        let messages = session.take_seat(opened);
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
        let mut background = opened.seat.agent().watch_background();
        let (asker, client, id) = (
            Arc::clone(&self.asker),
            Arc::clone(&self.client),
            self.id.clone(),
        );
        let shown = tokio::spawn(async move {
            while let Some(event) = background.next().await {
                asker.observe(&event);
                let (updates, _) = asker.translate(|translator| translator.event(&event));
                for update in updates {
                    client.update(&id, update);
                }
                client.outbox.wait_for_room().await;
            }
        });
        let mut state = self.lock();
        state.seat = Some(opened.seat);
        state.offers = opened.offers;
        state.commands = opened.commands;
        if let Some(old) = state.background.replace(shown) {
            old.abort();
        }
        opened.messages
    }

    fn seat(&self) -> Result<Arc<dyn Seat>, RpcError> {
        let seat = self.lock().seat.clone();
        seat.ok_or_else(|| RpcError::new(code::NOT_FOUND, "the session was closed"))
    }

    /// Returns the mode and the settings for the client.
    pub(crate) fn shown(&self) -> SessionState {
        let state = self.lock();
        let chosen = |options: &crate::port::Options, chosen: &Option<String>| {
            let mut options = options.clone();
            if let Some(chosen) = chosen {
                options.current.clone_from(chosen);
            }
            options
        };
        let (offers, choices) = (&state.offers, &state.choices);
        let settings = vec![
            Setting {
                id: "model",
                name: "Model",
                description: "The model that answers",
                category: Category::Model,
                options: chosen(&offers.model, &choices.model),
            },
            Setting {
                id: "effort",
                name: "Effort",
                description: "How much the model thinks before it answers",
                category: Category::Effort,
                options: chosen(&offers.effort, &choices.effort),
            },
            Setting {
                id: "sandbox",
                name: "Sandbox",
                description: "What commands may write; takes effect with the next prompt",
                category: Category::Other,
                options: chosen(&offers.sandbox, &choices.sandbox),
            },
            Setting {
                id: "network",
                name: "Network",
                description: "Network access of commands; takes effect with the next prompt",
                category: Category::Other,
                options: chosen(&offers.network, &choices.network),
            },
        ];
        let settings = settings
            .into_iter()
            .filter(|setting| !setting.options.values.is_empty());
        SessionState {
            mode: self.asker.mode(),
            settings: settings.collect(),
            commands: commands::all(&state.commands),
        }
    }

    /// Tells the client the slash commands.
    pub(crate) fn tell_commands(&self) {
        let commands = commands::all(&self.lock().commands);
        self.client
            .tell(|protocol| Some(protocol.commands(&self.id, &commands)));
    }

    /// Replays the conversation.
    pub(crate) async fn replay(&self, messages: &[Message]) {
        let can_continue = self.lock().seat.as_ref().is_some_and(|seat| {
            // Calls that wait for the user are asked about again with the next prompt.
            seat.agent().has_work()
        });
        for update in replay::updates(messages, &self.place.folder, can_continue) {
            self.client.update(&self.id, update);
            self.client.outbox.wait_for_room().await;
        }
    }

    /// Whether a prompt becomes part of the conversation.
    pub(crate) fn records(&self, parts: &[Part]) -> bool {
        let state = self.lock();
        let request = prompt::first_text(parts).map(|text| commands::find(text, &state.commands));
        !matches!(request, Some(Request::Own(..)))
    }

    /// Whether a prompt is being worked on.
    pub(crate) fn is_busy(&self) -> bool {
        self.lock().running.is_some()
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

    /// Cancels the prompt in progress.
    pub(crate) fn cancel(&self) {
        if let Some((_, running)) = &self.lock().running {
            running.cancel();
        }
    }

    /// Works on an accepted prompt until it ends.
    pub(crate) async fn prompt(
        &self,
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
        &self,
        cancel: &CancellationToken,
        parts: Vec<Part>,
        turn: OwnedMutexGuard<()>,
    ) -> Result<StopReason, RpcError> {
        self.reopen_if_changed().await?;
        let seat = self.seat()?;
        let users = self.lock().commands.clone();
        let request = prompt::first_text(&parts).map(|text| commands::find(text, &users));
        let mut input = prompt::input(parts);
        match request {
            Some(Request::Own(name, rest)) => {
                let text = tokio::select! {
                    text = own_command(&*seat, name, rest) => text,
                    () = cancel.cancelled() => return Ok(StopReason::Cancelled),
                };
                self.client.update(&self.id, Update::Answer(text));
                return Ok(StopReason::EndTurn);
            }
            Some(Request::Prompt(text)) => input.text = text,
            _ => {}
        }
        if input.text.trim().is_empty() && input.pictures.is_empty() {
            return Err(RpcError::invalid("the prompt is empty"));
        }
        self.tell_title(&input);
        if self.asker.mode() == Mode::Plan {
            input.notes.push(PLAN_NOTE.to_owned());
        }
        self.run(cancel, input, &seat, turn).await
    }

    /// Tells the client the title, which comes from the first prompt.
    fn tell_title(&self, input: &UserInput) {
        let is_first = !std::mem::replace(&mut self.lock().has_title, true);
        let line = input.text.lines().find(|line| !line.trim().is_empty());
        if let (true, Some(line)) = (is_first, line) {
            let title = haft::ops::text::brief(line.trim(), MAX_TITLE);
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

    /// Switches the mode.
    pub(crate) fn set_mode(&self, mode: Mode) {
        self.asker.set_mode(mode);
    }

    /// Tells the client the mode and all settings.
    pub(crate) fn tell_settings(&self) {
        let shown = self.shown();
        self.tell_mode(shown.mode);
        self.client
            .tell(|protocol| Some(protocol.settings(&self.id, &shown)));
    }

    fn tell_mode(&self, mode: Mode) {
        self.client
            .tell(|protocol| protocol.current_mode(&self.id, mode));
    }

    /// Changes a setting.
    pub(crate) async fn set_option(&self, chosen: Chosen) -> Result<(), RpcError> {
        if chosen.option == "mode" {
            let mode = Mode::ALL.into_iter().find(|mode| mode.id() == chosen.value);
            let mode = mode.ok_or_else(|| {
                RpcError::invalid(format!("unknown mode {}: plan, ask or auto", chosen.value))
            })?;
            self.set_mode(mode);
            self.tell_mode(mode);
            return Ok(());
        }
        let shown = self.shown();
        let setting = shown.settings.iter().find(|one| one.id == chosen.option);
        let setting = setting
            .ok_or_else(|| RpcError::invalid(format!("unknown option {}", chosen.option)))?;
        let is_offered = setting
            .options
            .values
            .iter()
            .any(|(value, _)| *value == chosen.value);
        if !is_offered {
            let values = setting.options.values.iter();
            let values: Vec<_> = values.map(|(value, _)| value.as_str()).collect();
            return Err(RpcError::invalid(format!(
                "{} cannot be {}; possible values: {}",
                chosen.option,
                chosen.value,
                values.join(", ")
            )));
        }
        let mut choices = self.lock().choices.clone();
        let value = Some(chosen.value);
        match setting.id {
            "model" => choices.model = value,
            "effort" => choices.effort = value,
            "sandbox" => choices.sandbox = value,
            _ => choices.network = value,
        }
        if matches!(setting.id, "model" | "effort") {
            let seat = self.seat()?;
            let set = seat.set_model(&choices).await;
            set.map_err(RpcError::invalid)?;
            let window = seat
                .agent()
                .model()
                .context_window()
                .unwrap_or(DEFAULT_WINDOW);
            self.asker
                .translate(|translator| translator.set_window(window));
        }
        self.lock().choices = choices;
        Ok(())
    }

    /// Ends the session and everything it started.
    pub(crate) async fn close(&self) {
        self.cancel();
        let _turn = self.turn.lock().await;
        let seat = {
            let mut state = self.lock();
            if let Some(background) = state.background.take() {
                background.abort();
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
        _ => seat.compact().await,
    };
    done.unwrap_or_else(|problem| format!("/{name}: {problem}"))
}

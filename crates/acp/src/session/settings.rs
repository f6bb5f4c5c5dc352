//! The mode and the settings of a session, which the user can change.

use super::{DEFAULT_WINDOW, Session};
use crate::commands;
use crate::port::Mode;
use crate::rpc::RpcError;
use crate::schema::{Category, Chosen, SessionState, Setting};
use crate::update::Update;

impl Session {
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
            modes: state.modes.clone(),
            settings: settings.collect(),
            commands: commands::all(&state.commands),
        }
    }

    /// Switches the mode.
    pub(crate) fn set_mode(&self, mode: Mode) -> Result<(), RpcError> {
        let modes = self.lock().modes.clone();
        if !modes.contains(&mode) {
            let ids: Vec<_> = modes.iter().map(|mode| mode.id()).collect();
            return Err(RpcError::invalid(format!(
                "the mode cannot be {}; possible values: {}",
                mode.id(),
                ids.join(", ")
            )));
        }
        self.asker.set_mode(mode);
        if mode == Mode::Plan && self.is_busy() {
            let note = "plan mode: what needs approval is refused from now on; other calls can \
                        write until this prompt ends";
            self.client.update(&self.id, Update::Note(note.to_owned()));
        }
        Ok(())
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
                RpcError::invalid(format!(
                    "unknown mode {}; the modes are plan, ask and auto",
                    chosen.value
                ))
            })?;
            self.set_mode(mode)?;
            self.tell_mode(mode);
            return Ok(());
        }
        let shown = self.shown();
        let setting = shown.settings.iter().find(|one| one.id == chosen.option);
        let setting = setting.ok_or_else(|| {
            let known: Vec<_> = shown.settings.iter().map(|one| one.id).collect();
            RpcError::invalid(format!(
                "unknown option {}; the options are mode, {}",
                chosen.option,
                known.join(", ")
            ))
        })?;
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
}

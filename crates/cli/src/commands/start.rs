//! `haft` without a command: starts a chat, or explains what is missing for one.

use super::chat::{self, StartSession};
use crate::args::Shared;
use crate::args::agent::Chat;
use crate::exit::{Exit, Failure};
use crate::{agent, output};

/// Starts a chat in the terminal. Without a model or a terminal it prints what to do next
/// and fails, because nothing was done.
pub(crate) fn run(shared: &Shared, args: &Chat) -> Result<Exit, Failure> {
    let settings = haft_config::load(&shared.flags(), crate::env::read())?;
    if agent::model(&settings)?.is_none() {
        output::note(
            "No model is configured yet. Choose one of these:\n\n  \
             export ANTHROPIC_API_KEY=…    use a key (or OPENAI_API_KEY, GEMINI_API_KEY), then run `haft`\n  \
             haft init                     use a local model: set `provider: ollama` in haft.yaml\n  \
             haft demo                     watch a recorded session with real tools\n\n\
             Or use the tools without a model: `haft call` or `haft mcp`. `haft --help` lists\n\
             all commands.",
        );
        return Ok(Exit::Usage);
    }
    if !output::can_chat() {
        return Err(Failure::usage("a chat needs a terminal")
            .hint("use `haft run \"PROMPT\"` to run one task without a terminal"));
    }
    let start = match (&args.resume, args.continue_latest) {
        (Some(session), _) => StartSession::Existing(session.clone()),
        (None, true) => StartSession::Existing(None),
        (None, false) => StartSession::New,
    };
    chat::run(shared, start)
}

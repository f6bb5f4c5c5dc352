//! Code that runs in haft-sandbox: where that program is, and what it may ask for.

use crate::config::Settings;
use crate::config::files::{Execution, Sandbox, has_a_tree};
use crate::exit::Failure;
use crate::session::Offer;
use crate::{env, external, output};
use haft::guest::Guest;
use haft::ops::executor::look_up;
use haft::{Plugin, Protocol};
use haft_web::{Client, PackageIndex};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the program is called.
const NAME: &str = "haft-sandbox";

/// What a person has to do where there is no such program.
pub(crate) fn missing() -> String {
    format!(
        "execution: sandbox needs the program {NAME}, and there is none beside haft or in PATH; \
         build it where haft was built, `cargo build --release -p {NAME}`, and put it beside haft"
    )
}

/// The program as a part of the session, and where it lies; nothing where the session
/// runs no code so. Where there is no such program, the session does without its tools,
/// as it does without those of a plugin that does not start.
pub(crate) fn plugin(
    settings: &Settings,
    offer: Offer,
) -> Result<Option<(Plugin, PathBuf)>, Failure> {
    let Execution::Sandbox(sandbox) = &settings.files.execution else {
        return Ok(None);
    };
    let is_listed = match settings.preset.as_deref() {
        None => true,
        Some(preset) => preset.trim().eq_ignore_ascii_case("all") || preset.trim().is_empty(),
    };
    if !has_a_tree(&settings.toolset) || (offer == Offer::Preset && !is_listed) {
        return Ok(None);
    }
    let Some(program) = find(settings) else {
        if !settings.quiet {
            output::note(&missing());
        }
        return Ok(None);
    };
    let client = Client::new(haft_web::Settings::default());
    let client = client.map_err(|error| Failure::usage(format!("execution: {error}")))?;
    let guest = Guest {
        index: Some(Arc::new(PackageIndex::new(client, sandbox.index.clone()))),
    };
    let mut plugin = Plugin::new(&program, arguments(sandbox));
    plugin.label = NAME.to_owned();
    plugin.protocol = Protocol::Second;
    plugin.environment = Some(Vec::new());
    plugin.limits_set_in = "`execution`".to_owned();
    plugin.guest = Some(guest);
    plugin.memory = external::memory_of_own(NAME, &program, &plugin.arguments, settings);
    plugin.log = settings
        .folders
        .state
        .as_ref()
        .map(|state| state.join("plugins").join(format!("{NAME}.log")));
    Ok(Some((plugin, program)))
}

fn arguments(sandbox: &Sandbox) -> Vec<std::ffi::OsString> {
    let words = [
        "--session".to_owned(),
        format!("--index={}", sandbox.index),
        format!("--timeout={}", sandbox.timeout),
        format!("--memory={}", sandbox.memory),
    ];
    words.into_iter().map(Into::into).collect()
}

/// Where the program is: beside this one, or in PATH, but in no folder that a command
/// could write.
pub(crate) fn find(settings: &Settings) -> Option<PathBuf> {
    let itself = haft::ops::scope::real(&env::itself()).unwrap_or_else(env::itself);
    let beside = itself.parent().map(|folder| folder.join(NAME));
    if let Some(beside) = beside.filter(|program| is_program(program)) {
        return Some(beside);
    }
    let path = std::env::join_paths(env::paths("PATH")).ok()?;
    let mut avoid = vec![settings.work_dir.clone()];
    avoid.extend(
        settings
            .roots
            .iter()
            .map(|root| settings.work_dir.join(root)),
    );
    look_up(NAME.as_ref(), Some(&path), &avoid)
}

#[expect(
    clippy::disallowed_methods,
    reason = "what would be run is looked at before there is a scope"
)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.is_absolute()
        && std::fs::metadata(path)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

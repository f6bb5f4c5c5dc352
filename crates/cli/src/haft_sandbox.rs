//! Finds the program haft-sandbox and sets it up as a plugin that runs the session's
//! code.

use crate::env;
use crate::exit::Failure;
use crate::output;
use crate::session::Offer;
use haft::guest::Guest;
use haft::ops::executor::look_up;
use haft::{Plugin, Protocol};
use haft_config::Settings;
use haft_config::external;
use haft_config::files::{Execution, Sandbox, has_virtual_paths};
use haft_web::{Client, PackageIndex};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NAME: &str = "haft-sandbox";

/// Error message for a missing program.
pub(crate) fn missing() -> String {
    format!(
        "execution: sandbox needs the program {NAME}, which is neither beside haft nor in PATH; \
         build it in haft's source folder with `cargo build --release -p {NAME}` and put it \
         beside haft"
    )
}

/// Returns the plugin and the program's path, or nothing if the session does not run code
/// in haft-sandbox. If the program is missing, a note is printed and the session starts
/// without its tools, as it does for a plugin that fails to start.
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
    if !has_virtual_paths(&settings.toolset) || (offer == Offer::Preset && !is_listed) {
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

/// Looks for the program beside haft, then in PATH, but never in a folder that commands
/// can write.
pub(crate) fn find(settings: &Settings) -> Option<PathBuf> {
    let haft = haft::ops::scope::real(&env::read().own_program())
        .unwrap_or_else(|| env::read().own_program());
    let beside = haft.parent().map(|folder| folder.join(NAME));
    if let Some(beside) = beside.filter(|program| is_program(program)) {
        return Some(beside);
    }
    let path = std::env::join_paths(env::read().paths("PATH")).ok()?;
    let mut avoid = vec![settings.paths.work_dir.clone()];
    avoid.extend(
        settings
            .paths
            .roots
            .iter()
            .map(|root| settings.paths.work_dir.join(root)),
    );
    look_up(NAME.as_ref(), Some(&path), &avoid)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program is checked before a scope exists"
)]
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.is_absolute()
        && std::fs::metadata(path)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

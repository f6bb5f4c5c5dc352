//! `haft init`: writes a commented `haft.yaml`, or converts another program's settings.

mod agent_yaml;
mod claude;
mod codex;
mod draft;
mod gemini;
mod jsonc;
mod opencode;
mod origin;
mod references;
mod rules;
mod secrets;
mod servers;
mod yaml;

use crate::args::{Init, Shared};
use crate::config;
use crate::env;
use crate::exit::{Exit, Failure};
use crate::output;
use draft::Draft;
use origin::Origin;
use serde_json::{Map, Value};
use servers::Spelling;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A file of another program.
struct Source {
    origin: Origin,
    given: Map<String, Value>,
}

/// Writes the file, unless it exists.
pub(crate) fn run(shared: &Shared, init: &Init) -> Result<Exit, Failure> {
    let folder = config::folder(shared)?;
    let path = match &shared.config {
        Some(named) => env::current_folder()?.join(named),
        None => folder.join(config::FILE),
    };
    match &init.from {
        Some(from) => convert(shared, init, &folder, &path, from),
        None => {
            write(&path, &config::template::template(), init.force)?;
            output::text(&format!("wrote {}", path.display()))?;
            if !shared.quiet {
                output::note(
                    "Next: remove `# ` from the lines you want to change, then run `haft config show`.\n\
                     Editors can complete the file with the schema from `haft config schema`.",
                );
            }
            Ok(Exit::Done)
        }
    }
}

fn convert(
    shared: &Shared,
    init: &Init,
    folder: &Path,
    path: &Path,
    from: &Path,
) -> Result<Exit, Failure> {
    let shown = from.display().to_string();
    // Checked before anything is read, so that the result does not depend on the file's
    // content.
    if !init.force && is_there(path) {
        return Err(exists(path));
    }
    let from: PathBuf = env::current_folder()?.join(from);
    let source = origin::read(&from, &shown)?;
    let drafted = |is_own, is_elsewhere: bool| {
        let mut draft = Draft::new(is_own, folder, is_elsewhere);
        carry(&mut draft, &source, folder);
        draft
    };
    let draft = drafted(shared.config.is_some(), path.parent() != Some(folder));
    let own = draft.withholds().then(|| drafted(true, true));
    let report = format!(
        "{shown}: {}\n{}",
        source.origin.about(),
        draft.report(own.as_ref())
    );
    let beside = own.map(|own| own.beside(&draft));
    if draft.is_empty() {
        output::text(&report)?;
        if let Some(beside) = &beside {
            advise_own(&draft, beside);
            return Err(Failure::failed(format!(
                "wrote nothing: everything in {shown} needs secret variables"
            ))
            .hint("add the lines above to your own file; a project's file cannot use them"));
        }
        return Err(
            Failure::failed(format!("nothing in {shown} can be carried over"))
                .hint("`haft init` writes a haft.yaml with every key, commented out"),
        );
    }
    let text = draft.text(&shown);
    config::check(&text, path).map_err(|failure| {
        Failure::failed(format!(
            "cannot create a valid haft.yaml from {shown}: {}",
            failure.message
        ))
        .hint(format!(
            "remove what you do not need from {shown}, then try again"
        ))
    })?;
    write(path, &text, init.force)?;
    output::text(&format!("{report}wrote {}", path.display()))?;
    if !shared.quiet {
        match &beside {
            Some(beside) => advise_own(&draft, beside),
            None => advise_variables(&draft),
        }
        advise(&draft);
    }
    Ok(Exit::Done)
}

fn carry(draft: &mut Draft, source: &Source, folder: &Path) {
    let given = &source.given;
    let folders = env::folders();
    let home = folders.home.as_deref();
    match source.origin {
        Origin::AgentYaml => agent_yaml::settings(draft, given),
        Origin::ClaudeSettings => claude::settings(draft, given, home),
        Origin::ClaudeState => claude::state(draft, given, folder),
        Origin::Codex => codex::settings(draft, given),
        Origin::Gemini => gemini::settings(draft, given),
        Origin::Opencode => opencode::settings(draft, given, home),
        Origin::Servers => {
            for (key, value) in given {
                match key.as_str() {
                    "mcpServers" | "servers" => {
                        servers::add_all(draft, key, value, Spelling::Claude);
                    }
                    "$schema" => {}
                    "inputs" => draft.left(key, "haft does not ask for values; set variables"),
                    _ => draft.left(key, "not a server"),
                }
            }
        }
    }
}

/// Prints which variables are still to be set.
fn advise_variables(draft: &Draft) {
    let missing = |name: &&String| env::variable(name).is_none();
    let missing: Vec<&str> = draft
        .variables()
        .iter()
        .filter(missing)
        .map(String::as_str)
        .collect();
    if !missing.is_empty() {
        output::note(&format!("Set these variables: {}", missing.join(", ")));
    }
}

/// Prints what to put into the user's own file.
fn advise_own(draft: &Draft, beside: &str) {
    advise_variables(draft);
    let own = env::folders()
        .config
        .map(|folder| folder.join(config::FILE));
    let own = own.unwrap_or_else(|| Path::new("~/.config/haft").join(config::FILE));
    let there = servers_of(&own);
    let there = draft
        .withheld_servers()
        .filter(|name| there.contains_key(*name));
    let there: Vec<&str> = there.collect();
    output::note(&match (is_there(&own), own.parent()) {
        (false, Some(folder)) => format!(
            "Settings with secrets belong in your own file. This command writes it:\n\n\
             mkdir -p {} && cat > {} <<'END'\n{beside}END\n",
            quoted(folder),
            quoted(&own),
        ),
        _ => format!(
            "Settings with secrets belong in your own file, {}. Add these lines, below the keys of\n\
             the same names if it has them:\n\n{beside}",
            own.display()
        ),
    });
    if !there.is_empty() {
        output::note(&format!(
            "That file already has MCP servers of these names: {}. Keep one of each name.",
            there.join(", ")
        ));
    }
    output::note(
        "Read these lines first: they may contain secrets that haft did not recognise. The programs\n\
         they name run without `haft trust`, because the file is your own, and in every folder.",
    );
}

/// Returns the MCP servers in a file, if it can be read.
fn servers_of(path: &Path) -> Map<String, Value> {
    let shown = path.display().to_string();
    let text = config::read_text(path, &shown).ok().flatten();
    let value = text.and_then(|text| config::yaml_value(&text, &shown).ok());
    let servers = value.and_then(|value| value.pointer("/tools/mcp").cloned());
    match servers {
        Some(Value::Object(servers)) => servers,
        _ => Map::new(),
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%~".contains(c);
    match text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Prints the next steps.
fn advise(draft: &Draft) {
    output::note("Values that look like secrets are not copied; check the file for others.");
    output::note(match draft.is_own {
        true => {
            "Next: read the file. The programs it names run without `haft trust`, because it is your own."
        }
        false => {
            "Next: run `haft config show`, then `haft trust`, which shows what the file would run."
        }
    });
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn exists(path: &Path) -> Failure {
    Failure::failed(format!("{} already exists; left unchanged", path.display()))
        .hint("use --force to replace it; `haft config show` shows the effective settings")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the user's own command writes the file that no tool may write"
)]
fn write(path: &Path, text: &str, force: bool) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => exists(path),
        _ => Failure::failed(format!("cannot write {}: {error}", path.display())),
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(cannot)?;
    // Replaced atomically; a link at this path is replaced, not followed.
    let mut file = tempfile::Builder::new()
        .prefix(".haft-init-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    match force {
        true => file.persist(path).map_err(|error| cannot(error.error))?,
        false => file
            .persist_noclobber(path)
            .map_err(|error| cannot(error.error))?,
    };
    Ok(())
}

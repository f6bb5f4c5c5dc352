//! `haft init`: writes a commented `haft.yaml`, or converts another program's settings.

use crate::args::{Init, Shared};
use crate::env;
use crate::exit::{Exit, Failure};
use crate::output;
use haft_agent::provider::Provider;
use haft_import::{Conversion, Host, Source, Target};
use haft_mcp::client::{Endpoint, HttpTransport};
use serde_json::{Map, Value};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// This machine, and the rules of `haft.yaml`.
pub(crate) struct ThisHost;

impl Host for ThisHost {
    fn is_file(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok_and(|found| found.is_file())
    }

    fn is_secret(&self, variable: &str) -> bool {
        haft_config::is_secret(variable, env::read())
    }

    fn variables(&self, text: &str) -> Vec<String> {
        haft_config::variables(text)
    }

    fn is_server_url(&self, url: &str) -> bool {
        Endpoint::address(url, Vec::new(), HttpTransport::Either).is_ok()
    }

    fn key_variable(&self, provider: &str) -> Option<&'static str> {
        let provider: Provider = provider.parse().ok()?;
        provider.key_variable()
    }
}

/// Writes the file, unless it exists.
pub(crate) fn run(shared: &Shared, init: &Init) -> Result<Exit, Failure> {
    let folder = haft_config::folder(&shared.flags(), crate::env::read())?;
    let path = match &shared.config {
        Some(named) => env::read().current_folder()?.join(named),
        None => folder.join(haft_config::FILE),
    };
    match &init.from {
        Some(from) => convert(shared, init, &folder, &path, from),
        None => {
            write(&path, &haft_config::template::template(), init.force)?;
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
    let from: PathBuf = env::read().current_folder()?.join(from);
    let source = read(&from, &shown)?;
    let home = env::read().folders().home;
    let target = Target {
        is_own: shared.config.is_some(),
        folder,
        is_elsewhere: path.parent() != Some(folder),
        home: home.as_deref(),
    };
    let conversion = haft_import::convert(&source, target, &ThisHost);
    let report = format!("{shown}: {}\n{}", source.description(), conversion.report());
    let own_lines = conversion.own_lines();
    if conversion.is_empty() {
        output::text(&report)?;
        if let Some(own_lines) = &own_lines {
            advise_own(&conversion, own_lines);
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
    let text = conversion.text(&shown);
    haft_config::check(&text, path, env::read()).map_err(|failure| {
        Failure::failed(format!(
            "cannot create a valid haft.yaml from {shown}: {failure}"
        ))
        .hint(format!(
            "remove what you do not need from {shown}, then try again"
        ))
    })?;
    write(path, &text, init.force)?;
    output::text(&format!("{report}wrote {}", path.display()))?;
    if !shared.quiet {
        match &own_lines {
            Some(own_lines) => advise_own(&conversion, own_lines),
            None => advise_variables(&conversion),
        }
        advise(target.is_own);
    }
    Ok(Exit::Done)
}

/// Reads another program's settings.
pub(crate) fn read(path: &Path, shown: &str) -> Result<Source, Failure> {
    let Some(text) = haft_config::read_text(path, shown)? else {
        return Err(Failure::usage(format!("{shown} not found")));
    };
    let settings = match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => haft_config::yaml_value(&text, shown)?,
        _ => haft_import::parse(path, &text).map_err(|error| {
            let column = error.column.map(|column| format!(":{column}"));
            let column = column.unwrap_or_default();
            Failure::at(&format!("{shown}:{}{column}", error.line), &error.message)
        })?,
    };
    Source::detect(path, settings).ok_or_else(|| {
        Failure::usage(format!("cannot tell which program {shown} belongs to")).hint(
            "supported: agent.yaml, .mcp.json, .claude/settings.json, ~/.claude.json, Codex config.toml, .gemini/settings.json, opencode.json",
        )
    })
}

/// Prints which variables are still to be set.
fn advise_variables(conversion: &Conversion<'_>) {
    let missing = |name: &&str| env::read().variable(name).is_none();
    let missing: Vec<&str> = conversion.variables().filter(missing).collect();
    if !missing.is_empty() {
        output::note(&format!("Set these variables: {}", missing.join(", ")));
    }
}

/// Prints what to put into the user's own file.
fn advise_own(conversion: &Conversion<'_>, own_lines: &str) {
    advise_variables(conversion);
    let own = env::read()
        .folders()
        .config
        .map(|folder| folder.join(haft_config::FILE));
    let own = own.unwrap_or_else(|| Path::new("~/.config/haft").join(haft_config::FILE));
    let existing = servers_of(&own);
    let existing: Vec<&str> = conversion
        .own_servers()
        .filter(|name| existing.contains_key(*name))
        .collect();
    output::note(&match (is_there(&own), own.parent()) {
        (false, Some(folder)) => format!(
            "Settings with secrets belong in your own file. This command writes it:\n\n\
             mkdir -p {} && cat > {} <<'END'\n{own_lines}END\n",
            quoted(folder),
            quoted(&own),
        ),
        _ => format!(
            "Settings with secrets belong in your own file, {}. Add these lines, below the keys of\n\
             the same names if it has them:\n\n{own_lines}",
            own.display()
        ),
    });
    if !existing.is_empty() {
        output::note(&format!(
            "That file already has MCP servers of these names: {}. Keep one of each name.",
            existing.join(", ")
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
    let text = haft_config::read_text(path, &shown).ok().flatten();
    let value = text.and_then(|text| haft_config::yaml_value(&text, &shown).ok());
    let value = value.unwrap_or_default();
    let maps = ["/tools/mcp", "/mcpServers"].map(|path| value.pointer(path));
    let maps = maps.into_iter().flatten().filter_map(Value::as_object);
    maps.flatten()
        .map(|(name, server)| (name.clone(), server.clone()))
        .collect()
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
fn advise(is_own: bool) {
    output::note("Values that look like secrets are not copied; check the file for others.");
    output::note(match is_own {
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

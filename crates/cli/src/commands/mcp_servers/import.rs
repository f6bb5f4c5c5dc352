//! `haft mcp import`: adds the servers of another agent to the user's own file.

use super::{clients, edit};
use crate::args::Shared;
use crate::args::mcp_servers::Import;
use crate::commands::init;
use crate::exit::{Exit, Failure};
use crate::{env, output, session};
use haft_config::external::servers;
use haft_import::Target;
use std::path::PathBuf;

/// Runs the command.
pub(super) fn run(shared: &Shared, args: &Import) -> Result<Exit, Failure> {
    let own = edit::own(shared)?;
    let settings = session::settings(shared)?;
    let folders = env::read().folders();
    let home = folders
        .home
        .ok_or_else(|| Failure::failed("HOME is not set"))?;
    let files = clients::named(&args.program).map_or(&[][..], |client| client.files);
    let paths: Vec<PathBuf> = files
        .iter()
        .map(|file| home.join(file))
        .filter(|path| path.is_file())
        .collect();
    if paths.is_empty() {
        let names: Vec<String> = files.iter().map(|file| format!("~/{file}")).collect();
        return Err(Failure::failed(format!(
            "{} has no settings here: {} not found",
            args.program,
            names.join(" and ")
        ))
        .hint("`haft init --from FILE` converts a file in another place"));
    }
    let mut taken = own.names()?;
    let configured = servers::all(&settings).into_iter();
    taken.extend(configured.map(|server| server.configured.name));
    let (mut added, mut left_out, mut variables) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        let shown = path.display().to_string();
        let source = init::read(&path, &shown)?;
        let target = Target {
            is_own: true,
            folder: &settings.paths.started,
            is_elsewhere: true,
            home: Some(&home),
        };
        let conversion = haft_import::convert_servers(&source, target, &init::ThisHost);
        let report = conversion.report();
        if !report.trim().is_empty() {
            output::text(&format!("{shown}:\n{}", report.trim_end()))?;
        }
        for (name, entry) in conversion.servers() {
            match taken.iter().any(|other| other == name) {
                true => left_out.push(name.to_owned()),
                false => {
                    taken.push(name.to_owned());
                    added.push(edit::new(name, entry.clone()));
                }
            }
        }
        let missing = |name: &&str| env::read().variable(name).is_none();
        variables.extend(conversion.variables().filter(missing).map(str::to_owned));
    }
    if !left_out.is_empty() {
        let names = left_out.join(", ");
        output::text(&format!(
            "left out, because haft has servers of these names: {names}"
        ))?;
    }
    if added.is_empty() {
        output::text("nothing to add")?;
        return Ok(Exit::Done);
    }
    own.add(&added)?;
    let names: Vec<&str> = added.iter().map(|server| server.name.as_str()).collect();
    let (names, file) = (names.join(", "), own.file().display());
    output::text(&format!("added {names} to {file}"))?;
    if !variables.is_empty() {
        output::note(&format!("Set these variables: {}", variables.join(", ")));
    }
    output::note("These programs run without `haft trust`, because the file is your own.");
    Ok(Exit::Done)
}

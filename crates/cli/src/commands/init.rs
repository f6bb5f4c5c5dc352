//! `haft init`: a commented `haft.yaml`.

use crate::args::Shared;
use crate::config;
use crate::exit::{Exit, Failure};
use crate::output;
use std::io::{ErrorKind, Write};

/// Writes the file, unless there is one.
#[expect(
    clippy::disallowed_methods,
    reason = "the person's own command writes the file that no tool may write"
)]
pub(crate) fn run(shared: &Shared) -> Result<Exit, Failure> {
    let path = config::folder(shared)?.join(config::FILE);
    let cannot = |error: std::io::Error| {
        if error.kind() == ErrorKind::AlreadyExists {
            Failure::failed(format!(
                "{} is there already; it stays as it is",
                path.display()
            ))
            .hint("haft config show says what is in force")
        } else {
            Failure::failed(format!("cannot write {}: {error}", path.display()))
        }
    };
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&path)
        .map_err(cannot)?;
    file.write_all(config::template::template().as_bytes())
        .map_err(cannot)?;
    output::text(&format!("wrote {}", path.display()))?;
    if !shared.quiet {
        output::note(
            "Next: take the `# ` from the lines you want, then run `haft config show`.\n\
             Editors complete it by the schema that `haft config schema` prints.",
        );
    }
    Ok(Exit::Done)
}

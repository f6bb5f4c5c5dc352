//! What HTTP clients have to know.

use crate::env;
use crate::exit::Failure;
use haft_mcp::Token;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The variable that sets it.
const VARIABLE: &str = "HAFT_MCP_TOKEN";
/// The file in the state folder that keeps it otherwise.
const FILE: &str = "mcp-token";
/// One that is shorter could be guessed.
const SHORTEST: usize = 16;

/// The token: the one of the person, or the one that was made for them once.
pub(super) fn find(state: Option<&Path>) -> Result<Token, Failure> {
    if let Some(token) = env::text(VARIABLE) {
        return checked(&token, VARIABLE);
    }
    let Some(state) = state else {
        return Err(
            Failure::usage("the token is kept in the state folder: set HOME")
                .hint(format!("or set {VARIABLE} to a token of your own")),
        );
    };
    let file = state.join(FILE);
    let failed = |error: io::Error| {
        Failure::failed(format!("{} cannot be used: {error}", file.display()))
            .hint(format!("or set {VARIABLE} to a token of your own"))
    };
    let token = match kept(&file).map_err(failed)? {
        Some(token) => token,
        None => {
            haft::ops::private::folder(state).map_err(failed)?;
            made(state, &file).map_err(failed)?
        }
    };
    checked(&token, &file.display().to_string())
}

fn checked(token: &str, from: &str) -> Result<Token, Failure> {
    if token.len() < SHORTEST || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::usage(format!(
            "{from}: a token has at least {SHORTEST} characters, letters, digits and signs, and no spaces"
        )));
    }
    Ok(Token::new(token))
}

/// The token that was made before.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own file, outside every scope"
)]
fn kept(file: &Path) -> io::Result<Option<String>> {
    let about = match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    if !about.is_file() || about.mode() & 0o077 != 0 {
        return Err(io::Error::other(
            "others may read it; remove it, and a new one is made",
        ));
    }
    let token = std::fs::read_to_string(file)?;
    Ok(Some(token.trim().to_owned()))
}

/// Makes one. Of two that are made at the same time one is kept.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own file, outside every scope"
)]
fn made(state: &Path, file: &Path) -> io::Result<String> {
    let token = Token::random()?;
    let beside = state.join(format!("{FILE}.{}", std::process::id()));
    let mut options = std::fs::OpenOptions::new();
    let write = || -> io::Result<()> {
        let mut open = haft::ops::private::file(options.create_new(true).write(true), &beside)?;
        io::Write::write_all(&mut open, format!("{}\n", token.reveal()).as_bytes())?;
        open.sync_all()?;
        match std::fs::hard_link(&beside, file) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            linked => linked,
        }
    };
    let mut write = write;
    let written = write();
    let _ = std::fs::remove_file(&beside);
    written?;
    kept(file)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

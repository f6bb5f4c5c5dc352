//! Token that HTTP clients must send.

use crate::env;
use crate::exit::Failure;
use haft_mcp::Token;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const VARIABLE: &str = "HAFT_MCP_TOKEN";
/// File in the state folder with the generated token.
const FILE: &str = "mcp-token";
/// Minimum length, so that it cannot be guessed.
const MIN_LENGTH: usize = 16;

/// Returns the user's token, or the one that was generated once.
pub(super) fn find(state: Option<&Path>) -> Result<Token, Failure> {
    if let Some(token) = env::read().text(VARIABLE) {
        return checked(&token, VARIABLE);
    }
    let Some(state) = state else {
        return Err(
            Failure::usage("the token is stored in the state folder: set HOME")
                .hint(format!("or set {VARIABLE} to your own token")),
        );
    };
    let file = state.join(FILE);
    let failed = |error: io::Error| {
        Failure::failed(format!("cannot use {}: {error}", file.display()))
            .hint(format!("or set {VARIABLE} to your own token"))
    };
    let token = match stored(&file).map_err(failed)? {
        Some(token) => token,
        None => {
            haft::ops::private::folder(state).map_err(failed)?;
            generate(state, &file).map_err(failed)?
        }
    };
    checked(&token, &file.display().to_string())
}

fn checked(token: &str, from: &str) -> Result<Token, Failure> {
    if token.len() < MIN_LENGTH || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::usage(format!(
            "{from}: a token needs at least {MIN_LENGTH} printable ASCII characters without spaces"
        )));
    }
    Ok(Token::new(token))
}

/// Returns the token that was generated before.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own file, outside every scope"
)]
fn stored(file: &Path) -> io::Result<Option<String>> {
    let about = match std::fs::symlink_metadata(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        about => about?,
    };
    if !about.is_file() || about.mode() & 0o077 != 0 {
        return Err(io::Error::other(
            "other users may read it; remove it, and haft will create a new one",
        ));
    }
    let token = std::fs::read_to_string(file)?;
    Ok(Some(token.trim().to_owned()))
}

/// Generates a token. If two processes do so at the same time, both use the one that was
/// stored first.
#[expect(
    clippy::disallowed_methods,
    reason = "haft's own file, outside every scope"
)]
fn generate(state: &Path, file: &Path) -> io::Result<String> {
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
    stored(file)?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

//! Reads the process's environment: variables, the current folder, the program's path. No
//! other module does.

#![expect(
    clippy::disallowed_methods,
    reason = "the one module of the command line that reads the environment"
)]

use haft_config::{Environment, Process};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Returns the environment, which is read at the first use.
pub(crate) fn read() -> &'static Environment {
    static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| {
        let current = std::env::current_dir();
        Environment::from(Process {
            variables: std::env::vars_os().collect(),
            current_folder: current.map_err(|error| error.to_string()),
            program: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe")),
            account_home: account_home(),
        })
    });
    &ENVIRONMENT
}

/// Returns the user's editor.
pub(crate) fn editor() -> Option<OsString> {
    let editor = read().variable("VISUAL");
    editor
        .or_else(|| read().variable("EDITOR"))
        .map(OsStr::to_owned)
}

/// Returns the proxy for https.
pub(crate) fn https_proxy() -> Option<String> {
    let proxy = read().variable("HTTPS_PROXY");
    proxy.map(|proxy| proxy.to_string_lossy().into_owned())
}

/// Whether the environment permits colour on a terminal.
pub(crate) fn allows_colour() -> bool {
    let terminal = read().variable("TERM");
    read().variable("NO_COLOR").is_none() && terminal.is_none_or(|name| name != "dumb")
}

/// Returns the operating system, its version, the architecture and the user id.
pub(crate) fn system() -> String {
    let name = rustix::system::uname();
    format!(
        "{} {} {}, user {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy(),
        name.machine().to_string_lossy(),
        rustix::process::geteuid().as_raw()
    )
}

/// Returns the account's home folder according to /etc/passwd. Directory services are not
/// consulted; that would need the C library.
pub(crate) fn account_home() -> Option<PathBuf> {
    let passwd = std::fs::read("/etc/passwd").ok()?;
    home_of(rustix::process::getuid().as_raw(), &passwd)
}

fn home_of(uid: u32, passwd: &[u8]) -> Option<PathBuf> {
    let uid = uid.to_string();
    passwd
        .split(|byte| *byte == b'\n')
        .find_map(|line| {
            let mut fields = line.split(|byte| *byte == b':');
            let is_match = fields.nth(2)? == uid.as_bytes();
            // Skip the group and the full name.
            let home = fields.nth(2)?;
            is_match.then(|| PathBuf::from(OsStr::from_bytes(home)))
        })
        .filter(|home| home.is_absolute())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accounts_home_is_found_by_user_id() {
        let passwd = b"root:x:0:0:root:/root:/bin/sh\n+\n\nbad:x:7\n\
            a:x:1000:1001:Name \xff,,:/home/\xff:/bin/sh\nb:x:1000:1:::\nc:x:7:7::here:\n";
        let home = |uid| home_of(uid, passwd);
        assert_eq!(home(0), Some("/root".into()));
        assert_eq!(home(1000), Some(OsStr::from_bytes(b"/home/\xff").into()));
        assert_eq!(home(1001), None);
        assert_eq!(home(7), None);
    }
}

//! The process's environment: variables, the user's folders, the current folder. No other
//! module reads it.

#![expect(
    clippy::disallowed_methods,
    reason = "the one module that reads the environment"
)]

use crate::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Returns an environment variable. An empty one counts as unset, which is how people
/// often unset variables.
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns a variable as text; invalid UTF-8 is replaced.
pub fn text(name: &str) -> Option<String> {
    variable(name).map(|value| value.to_string_lossy().into_owned())
}

/// Returns the paths in a colon-separated variable.
pub fn paths(name: &str) -> Vec<PathBuf> {
    variable(name)
        .map(|value| {
            std::env::split_paths(&value)
                .filter(|path| !path.as_os_str().is_empty())
                .collect()
        })
        .unwrap_or_default()
}

/// Returns the folder that haft was started in.
pub fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::usage(format!("cannot use the current folder: {error}")))
}

/// Returns the user's folders, without creating any.
pub fn folders() -> haft::Folders {
    let mut folders = folders_of(account_home(), absolute);
    for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        if let (Some(file), Ok(here)) = (variable(name), std::env::current_dir()) {
            folders.git_configs.push(here.join(file));
        }
    }
    folders
}

/// Returns the user's home folders: the one in `HOME` and the account's.
pub(crate) fn homes() -> Vec<PathBuf> {
    absolute("HOME").into_iter().chain(account_home()).collect()
}

fn folders_of(
    account: Option<PathBuf>,
    absolute: impl Fn(&str) -> Option<PathBuf>,
) -> haft::Folders {
    let from_variable = absolute("HOME");
    // Protect the default places even if XDG variables point elsewhere: haft started
    // without those variables reads its settings there.
    let own = from_variable
        .iter()
        .chain(&account)
        .flat_map(|home| [".config/haft", ".local/state/haft"].map(|below| home.join(below)))
        // The account's keys stay secret even if `HOME` points elsewhere.
        .chain(
            account
                .iter()
                .filter(|home| from_variable.as_ref() != Some(home))
                .flat_map(|home| {
                    haft::ops::scope::SECRET
                        .iter()
                        .map(|below| home.join(below))
                }),
        )
        .collect();
    let xdg = absolute("XDG_CONFIG_HOME").map(|folder| folder.join("git/config"));
    let of_account = account
        .iter()
        .flat_map(|home| [".gitconfig", ".config/git/config"].map(|below| home.join(below)));
    let git_configs = xdg.into_iter().chain(of_account).collect();
    let home = from_variable.or(account);
    let below_home = |below: &str| home.as_ref().map(|home| home.join(below));
    haft::Folders {
        config: absolute("XDG_CONFIG_HOME")
            .or_else(|| below_home(".config"))
            .map(|folder| folder.join("haft")),
        state: absolute("XDG_STATE_HOME")
            .or_else(|| below_home(".local/state"))
            .map(|folder| folder.join("haft")),
        home,
        git_configs,
        own,
        // The path by which the user reached the folder, with links unresolved.
        called: absolute("PWD").into_iter().collect(),
    }
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

/// Returns a variable that holds an absolute path. The XDG specification says to ignore
/// relative paths; `HOME` is treated the same way.
fn absolute(name: &str) -> Option<PathBuf> {
    variable(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// Returns the environment of commands.
pub fn for_commands(granted: &[String]) -> Vec<(OsString, OsString)> {
    haft::ops::exec::environment::for_commands(std::env::vars_os(), granted)
}

/// Returns the environment of plugins and executables: a small selection without secrets.
pub fn for_programs(granted: &[String]) -> Vec<(OsString, OsString)> {
    haft::ops::exec::environment::for_programs(std::env::vars_os(), granted)
}

/// Returns the values of secret variables, which must not be logged or recorded.
pub fn secrets() -> Vec<String> {
    haft::ops::exec::environment::secrets(std::env::vars_os())
}

/// Returns the path of the running program.
pub fn own_program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// Returns the environment of the ssh client: all of it. None of it reaches the remote
/// command.
pub fn for_ssh() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// Returns the environment of commands on another machine: locale, terminal and git
/// identity, plus the variables that the configuration grants by name.
pub fn for_another_machine(granted: &[String]) -> Vec<(OsString, OsString)> {
    for_commands(granted)
        .into_iter()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            granted.iter().any(|granted| *granted == name)
                || [
                    "LANG",
                    "TERM",
                    "TZ",
                    "PAGER",
                    "MANPAGER",
                    "GIT_PAGER",
                    "GIT_TERMINAL_PROMPT",
                ]
                .contains(&name.as_ref())
                || ["LC_", "GIT_AUTHOR_", "GIT_COMMITTER_"]
                    .iter()
                    .any(|start| name.starts_with(start))
        })
        .collect()
}

/// Returns the operating system, its version, the architecture and the user id.
pub fn system() -> String {
    let name = rustix::system::uname();
    format!(
        "{} {} {}, user {}",
        name.sysname().to_string_lossy(),
        name.release().to_string_lossy(),
        name.machine().to_string_lossy(),
        rustix::process::geteuid().as_raw()
    )
}

/// Returns the folders in which the user's programs create sockets.
pub fn socket_folders() -> Vec<PathBuf> {
    ["XDG_RUNTIME_DIR", "TMPDIR"]
        .into_iter()
        .filter_map(absolute)
        .collect()
}

/// Returns the user's editor.
pub fn editor() -> Option<OsString> {
    variable("VISUAL").or_else(|| variable("EDITOR"))
}

/// Whether the environment permits colour on a terminal.
pub fn allows_colour() -> bool {
    variable("NO_COLOR").is_none() && variable("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accounts_home_is_used_if_home_is_unset() {
        let unset = folders_of(Some("/account".into()), |_| None);
        assert_eq!(unset.home, Some("/account".into()));
        assert_eq!(unset.config, Some("/account/.config/haft".into()));
        assert_eq!(unset.state, Some("/account/.local/state/haft".into()));
        let all = folders_of(Some("/account".into()), |name| {
            Some(format!("/{name}").into())
        });
        assert_eq!(all.home, Some("/HOME".into()));
        assert_eq!(all.config, Some("/XDG_CONFIG_HOME/haft".into()));
        for config in ["/XDG_CONFIG_HOME/git/config", "/account/.gitconfig"] {
            assert!(all.git_configs.contains(&config.into()), "{all:?}");
        }
        for own in ["/HOME/.config/haft", "/account/.local/state/haft"] {
            assert!(all.own.contains(&own.into()), "{all:?}");
        }
    }

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

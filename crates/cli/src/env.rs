//! What the process was started with: variables, folders, the current place.
//! No other module looks at the environment.

#![expect(
    clippy::disallowed_methods,
    reason = "the one module of the command line that reads the environment"
)]

use crate::exit::Failure;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A variable. One that is empty counts as not set, as people unset them so.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// A variable as text.
pub(crate) fn text(name: &str) -> Option<String> {
    variable(name).map(|value| value.to_string_lossy().into_owned())
}

/// A variable that lists paths, with colons between them.
pub(crate) fn paths(name: &str) -> Vec<PathBuf> {
    variable(name)
        .map(|value| {
            std::env::split_paths(&value)
                .filter(|path| !path.as_os_str().is_empty())
                .collect()
        })
        .unwrap_or_default()
}

/// The folder that haft was started in.
pub(crate) fn current_folder() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::usage(format!("the current folder cannot be used: {error}")))
}

/// The person's folders. None is created here.
pub(crate) fn folders() -> haft::Folders {
    let mut folders = folders_of(account_home(), absolute);
    for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
        if let (Some(file), Ok(here)) = (variable(name), std::env::current_dir()) {
            folders.git_configs.push(here.join(file));
        }
    }
    folders
}

/// The home folders of the person: what `HOME` says, and the account's own.
pub(crate) fn homes() -> Vec<PathBuf> {
    absolute("HOME").into_iter().chain(account_home()).collect()
}

fn folders_of(
    account: Option<PathBuf>,
    absolute: impl Fn(&str) -> Option<PathBuf>,
) -> haft::Folders {
    let given = absolute("HOME");
    // Also where the variables point elsewhere: another start, without them,
    // reads its settings there.
    let own = given
        .iter()
        .chain(&account)
        .flat_map(|home| [".config/haft", ".local/state/haft"].map(|below| home.join(below)))
        // `HOME` may point elsewhere; the keys of the account are no less secret.
        .chain(
            account
                .iter()
                .filter(|home| given.as_ref() != Some(home))
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
    let home = given.or(account);
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
        // The shell knows the folder as the person went to it.
        called: absolute("PWD").into_iter().collect(),
    }
}

/// The home folder of the account. Only what the system's file says: to ask a
/// directory service would take the C library.
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
            let is_it = fields.nth(2)? == uid.as_bytes();
            // The group and the name in between.
            let home = fields.nth(2)?;
            is_it.then(|| PathBuf::from(OsStr::from_bytes(home)))
        })
        .filter(|home| home.is_absolute())
}

/// The XDG specification wants relative values ignored; for `HOME` it is as wise.
fn absolute(name: &str) -> Option<PathBuf> {
    variable(name)
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
}

/// What commands see of the environment.
pub(crate) fn for_commands(granted: &[String]) -> Vec<(OsString, OsString)> {
    haft::ops::exec::environment::for_commands(std::env::vars_os(), granted)
}

/// What plugins and programs that are tools see: little, and nothing secret.
pub(crate) fn for_programs(granted: &[String]) -> Vec<(OsString, OsString)> {
    haft::ops::exec::environment::for_programs(std::env::vars_os(), granted)
}

/// Values that are secrets, and should not be written down.
pub(crate) fn secrets() -> Vec<String> {
    haft::ops::exec::environment::secrets(std::env::vars_os())
}

/// This very program.
pub(crate) fn itself() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("/proc/self/exe"))
}

/// What ssh itself sees: all of it. None of it reaches the command.
pub(crate) fn for_ssh() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// What commands on another machine see: of this one's only what says how to
/// speak to a person, and what was granted by name.
pub(crate) fn for_another_machine(granted: &[String]) -> Vec<(OsString, OsString)> {
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

/// The system, in a few words.
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

/// Folders of the person in which sockets live.
pub(crate) fn socket_folders() -> Vec<PathBuf> {
    ["XDG_RUNTIME_DIR", "TMPDIR"]
        .into_iter()
        .filter_map(absolute)
        .collect()
}

/// The editor that the person has chosen.
pub(crate) fn editor() -> Option<OsString> {
    variable("VISUAL").or_else(|| variable("EDITOR"))
}

/// Whether colour is welcome where a terminal could show it.
pub(crate) fn colour_welcome() -> bool {
    variable("NO_COLOR").is_none() && variable("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_stands_in_for_a_home_that_is_not_set() {
        let nothing = folders_of(Some("/account".into()), |_| None);
        assert_eq!(nothing.home, Some("/account".into()));
        assert_eq!(nothing.config, Some("/account/.config/haft".into()));
        assert_eq!(nothing.state, Some("/account/.local/state/haft".into()));
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
    fn the_account_is_found_by_its_number() {
        let passwd = b"root:x:0:0:root:/root:/bin/sh\n+\n\nbad:x:7\n\
            a:x:1000:1001:Name \xff,,:/home/\xff:/bin/sh\nb:x:1000:1:::\nc:x:7:7::here:\n";
        let home = |uid| home_of(uid, passwd);
        assert_eq!(home(0), Some("/root".into()));
        assert_eq!(home(1000), Some(OsStr::from_bytes(b"/home/\xff").into()));
        assert_eq!(home(1001), None);
        assert_eq!(home(7), None);
    }
}

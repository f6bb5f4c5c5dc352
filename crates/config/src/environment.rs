//! The environment of the process as a value, so that every front end decides what
//! settings may depend on.

use crate::failure::Failure;
use haft::ops::exec::caches::CachePlace;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Facts about the process, which a front end reads at its start.
pub struct Process {
    /// Environment variables.
    pub variables: Vec<(OsString, OsString)>,
    /// The current folder, or the reason why it cannot be used.
    pub current_folder: Result<PathBuf, String>,
    /// Path of the program `haft`, which is started again to run commands and Lua tools.
    pub program: PathBuf,
    /// Home folder of the account, whatever `HOME` says.
    pub account_home: Option<PathBuf>,
}

/// Variables, folders and program of the process. Clones share their content.
#[derive(Clone)]
pub struct Environment(Arc<Process>);

impl From<Process> for Environment {
    fn from(process: Process) -> Self {
        Self(Arc::new(process))
    }
}

/// Shows no values, because many are secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}

impl Environment {
    /// Returns an environment variable. An empty one counts as unset, which is how people
    /// often unset variables.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let mut variables = self.0.variables.iter();
        let (_, value) = variables.find(|(known, _)| known == name)?;
        Some(value.as_os_str()).filter(|value| !value.is_empty())
    }

    /// Returns a variable as text; invalid UTF-8 is replaced.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        let value = self.variable(name)?;
        Some(value.to_string_lossy().into_owned())
    }

    /// Returns the paths in a colon-separated variable.
    #[must_use]
    pub fn paths(&self, name: &str) -> Vec<PathBuf> {
        let value = self.variable(name).unwrap_or_default();
        std::env::split_paths(value)
            .filter(|path| !path.as_os_str().is_empty())
            .collect()
    }

    /// Returns the folder that haft was started in.
    ///
    /// # Errors
    /// If it was removed or cannot be read.
    pub fn current_folder(&self) -> Result<PathBuf, Failure> {
        let current = self.0.current_folder.clone();
        current.map_err(|error| Failure::usage(format!("cannot use the current folder: {error}")))
    }

    /// Returns the user's folders, without creating any.
    #[must_use]
    pub fn folders(&self) -> haft::Folders {
        let mut folders = folders_of(self.0.account_home.clone(), |name| self.absolute(name));
        for name in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
            if let (Some(file), Ok(here)) = (self.variable(name), &self.0.current_folder) {
                folders.git_configs.push(here.join(file));
            }
        }
        folders
    }

    /// Returns the user's home folders: the one in `HOME` and the account's.
    pub(crate) fn homes(&self) -> Vec<PathBuf> {
        let home = self.absolute("HOME").into_iter();
        home.chain(self.account_home()).collect()
    }

    /// Returns the account's home folder.
    pub(crate) fn account_home(&self) -> Option<PathBuf> {
        self.0.account_home.clone()
    }

    /// Returns a variable that holds an absolute path. The XDG specification says to ignore
    /// relative paths; `HOME` is treated the same way.
    fn absolute(&self, name: &str) -> Option<PathBuf> {
        let path = self.variable(name).map(PathBuf::from);
        path.filter(|path| path.is_absolute())
    }

    /// Returns the environment of commands.
    #[must_use]
    pub fn for_commands(&self, granted: &[String]) -> Vec<(OsString, OsString)> {
        haft::ops::exec::environment::for_commands(self.all(), granted)
    }

    /// Returns the environment of plugins and executables: a small selection without
    /// secrets.
    #[must_use]
    pub fn for_programs(&self, granted: &[String]) -> Vec<(OsString, OsString)> {
        haft::ops::exec::environment::for_programs(self.all(), granted)
    }

    /// Returns the values of secret variables, which must not be logged or recorded.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        haft::ops::exec::environment::secrets(self.all())
    }

    /// Returns the path of the program `haft`.
    #[must_use]
    pub fn own_program(&self) -> PathBuf {
        self.0.program.clone()
    }

    /// Returns the environment of the ssh client: all of it. None of it reaches the remote
    /// command.
    #[must_use]
    pub fn for_ssh(&self) -> Vec<(OsString, OsString)> {
        self.0.variables.clone()
    }

    /// Returns the environment of commands on another machine: locale, terminal and git
    /// identity, plus the variables that the configuration grants by name.
    #[must_use]
    pub fn for_another_machine(&self, granted: &[String]) -> Vec<(OsString, OsString)> {
        self.for_commands(granted)
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

    /// Returns the folders in which programs keep caches.
    #[must_use]
    pub fn cache_places(&self) -> Vec<CachePlace> {
        let home = self.absolute("HOME").or_else(|| self.account_home());
        let variable = |name: &str| self.variable(name).map(PathBuf::from);
        haft::ops::exec::caches::places(home.as_deref(), variable)
    }

    /// Returns the folders in which the user's programs create sockets.
    #[must_use]
    pub fn socket_folders(&self) -> Vec<PathBuf> {
        ["XDG_RUNTIME_DIR", "TMPDIR"]
            .into_iter()
            .filter_map(|name| self.absolute(name))
            .collect()
    }

    fn all(&self) -> impl Iterator<Item = (OsString, OsString)> {
        self.0.variables.iter().cloned()
    }
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

/// Returns an environment with only `PATH`, of the system's own programs.
#[cfg(test)]
pub(crate) fn of_test() -> Environment {
    Environment::from(Process {
        variables: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        current_folder: Ok("/".into()),
        program: "/proc/self/exe".into(),
        account_home: None,
    })
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
}

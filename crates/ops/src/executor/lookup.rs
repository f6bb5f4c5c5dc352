//! Finding programs by name.
//!
//! `PATH` may contain folders that a model can write: relative ones, the empty one, and
//! those in the work folder. haft never starts a program from there on its own behalf;
//! otherwise a file in the project could take its place.

use crate::scope::real;
use crate::scope::rules::SYSTEM;
use rustix::fs::{Access, FileType};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Folders to use if the environment has no `PATH`.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// System folders for programs.
const PROGRAMS: [&str; 6] = [
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/run/current-system/sw/bin",
    "/usr/local/sbin",
    "/usr/sbin",
];

/// Folders to search, and their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchOrder {
    /// The folders of `PATH` in their order.
    Path,
    /// System folders that `PATH` contains, then its others.
    SystemFirst,
    /// All system folders, then those of `PATH`.
    System,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Program(PathBuf),
    /// Only a file that is not executable was found.
    NotExecutable,
    Nothing,
}

/// Finds a program that haft itself starts. Searches the folders of `path`, except relative
/// ones and those in a folder of `avoid`, and rejects links into such a folder. A name that
/// is a path is used as it is.
#[must_use]
pub fn look_up(name: &OsStr, path: Option<&OsStr>, avoid: &[PathBuf]) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    match find(name, path, avoid, SearchOrder::Path) {
        Found::Program(program) => Some(program),
        Found::NotExecutable | Found::Nothing => None,
    }
}

/// Removes the folders from `PATH` that [`look_up`] does not use. This is for programs that
/// haft starts, because these look up others in turn (the first line of a script does).
pub fn clean_path(environment: &mut [(OsString, OsString)], avoid: &[PathBuf]) {
    let avoid: Vec<PathBuf> = avoid.iter().map(|folder| real_path(folder)).collect();
    for (_, value) in environment.iter_mut().filter(|(name, _)| name == "PATH") {
        let folders = std::env::split_paths(value)
            .filter(|folder| folder.is_absolute() && !is_avoided(folder, &avoid));
        // They came from such a list, so joining them succeeds.
        *value = std::env::join_paths(folders).unwrap_or_else(|_| USUAL.into());
    }
}

/// Returns the value of `PATH` in an environment.
#[must_use]
pub fn path_of(environment: &[(OsString, OsString)]) -> Option<&OsStr> {
    let named = environment.iter().find(|(name, _)| name == "PATH");
    named.map(|(_, value)| value.as_os_str())
}

pub(super) fn find(
    name: &OsStr,
    path: Option<&OsStr>,
    avoid: &[PathBuf],
    order: SearchOrder,
) -> Found {
    let avoid: Vec<PathBuf> = avoid.iter().map(|folder| real_path(folder)).collect();
    let named: Vec<PathBuf> = std::env::split_paths(path.unwrap_or(OsStr::new(USUAL)))
        .filter(|folder| folder.is_absolute())
        .collect();
    let is_system = |folder: &PathBuf| PROGRAMS.iter().any(|known| folder == Path::new(known));
    let folders: Vec<PathBuf> = match order {
        SearchOrder::Path => named,
        SearchOrder::SystemFirst => {
            let (system, others): (Vec<_>, Vec<_>) = named.into_iter().partition(is_system);
            system.into_iter().chain(others).collect()
        }
        SearchOrder::System => {
            let system = PROGRAMS.iter().map(PathBuf::from);
            system.chain(named).collect()
        }
    };
    let mut found = Found::Nothing;
    for folder in folders {
        let program = folder.join(name);
        let is_file = rustix::fs::stat(&program)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file());
        if !is_file || is_avoided(&folder, &avoid) || is_avoided(&program, &avoid) {
            continue;
        }
        if rustix::fs::access(&program, Access::EXEC_OK).is_ok() {
            return Found::Program(program);
        }
        found = Found::NotExecutable;
    }
    found
}

/// Whether a path is in one of these folders. A system folder inside such a folder is still
/// trusted (if the folder is `/`, for example), but not one that is itself in the list.
fn is_avoided(path: &Path, avoid: &[PathBuf]) -> bool {
    let path = real_path(path);
    avoid.iter().any(|folder| {
        let system = SYSTEM.iter().map(Path::new);
        let mut trusted = system.filter(|system| system.starts_with(folder) && system != folder);
        path.starts_with(folder) && !trusted.any(|system| path.starts_with(system))
    })
}

fn real_path(path: &Path) -> PathBuf {
    real(path).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests create programs to find")]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_writable_system_folder_is_not_trusted() {
        let avoids = |path: &str, folder: &str| is_avoided(Path::new(path), &[folder.into()]);
        assert!(avoids("/opt/bin/tool", "/opt"));
        assert!(avoids("/opt/a/bin/tool", "/opt/a"));
        assert!(!avoids("/opt/bin/tool", "/"));
        let both = [PathBuf::from("/"), PathBuf::from("/opt")];
        assert!(is_avoided(Path::new("/opt/bin/tool"), &both));
    }

    #[test]
    fn a_program_that_a_model_can_write_is_never_found() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (work, own) = (base.join("work"), base.join("own"));
        program(&work.join("bin/tool"));
        program(&work.join("bin/bash"));
        program(&own.join("tool"));
        symlink(work.join("bin"), base.join("linked")).unwrap();
        std::fs::create_dir(base.join("single")).unwrap();
        symlink(work.join("bin/tool"), base.join("single/tool")).unwrap();
        let found = |path: &str, order| {
            let path = path.replace('@', base.to_str().unwrap());
            find(
                "tool".as_ref(),
                Some(path.as_ref()),
                std::slice::from_ref(&work),
                order,
            )
        };
        for path in [
            "@/work/bin",
            "@/linked",
            "@/single",
            "@/own/../work/bin",
            "",
            ":",
            "bin",
            "./bin",
        ] {
            assert_eq!(found(path, SearchOrder::Path), Found::Nothing, "{path}");
            let path = format!("{path}:@/own");
            assert_eq!(
                found(&path, SearchOrder::Path),
                Found::Program(own.join("tool")),
                "{path}"
            );
        }
        let mut environment = vec![(
            "PATH".into(),
            format!(
                ":{0}/work/bin:bin:{0}/linked:{0}/own:/usr/bin",
                base.display()
            )
            .into(),
        )];
        clean_path(&mut environment, std::slice::from_ref(&work));
        let clean = format!("{}:/usr/bin", own.display());
        assert_eq!(path_of(&environment), Some(OsStr::new(&clean)));
        // Shells come from the system folders.
        let path = work.join("bin");
        let shell = |avoid: &[PathBuf]| {
            find(
                "bash".as_ref(),
                Some(path.as_os_str()),
                avoid,
                SearchOrder::System,
            )
        };
        for avoid in [vec![work.clone()], vec![PathBuf::from("/")], vec![]] {
            let Found::Program(bash) = shell(&avoid) else {
                panic!("no bash with {avoid:?}");
            };
            assert!(!bash.starts_with(&work), "{}", bash.display());
        }
    }
}

//! Where a program is that haft starts by its name.
//!
//! `PATH` may name folders that a model can write: relative ones, the empty one, and
//! those in the work folder. A program of haft's own choice is never taken from there,
//! or a file in the project would run in its place.

use crate::scope::real;
use crate::scope::rules::SYSTEM;
use rustix::fs::{Access, FileType};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Where programs are when the environment does not say.
const USUAL: &str = "/usr/local/bin:/usr/bin:/bin";

/// Where the programs of the system are.
const PROGRAMS: [&str; 6] = [
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/run/current-system/sw/bin",
    "/usr/local/sbin",
    "/usr/sbin",
];

/// Which folders are looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Those of `PATH`, as they stand there.
    Path,
    /// Those of the system that `PATH` names, then its others.
    SystemFirst,
    /// Those of the system whatever `PATH` names, then those of `PATH`.
    System,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Program(PathBuf),
    /// Only something that cannot be executed.
    NotExecutable,
    Nothing,
}

/// Finds a program for haft itself: by its name in the folders of `path`, but not in
/// one that is relative or lies in a folder of `avoid`, and not one that is a link into
/// such a folder. A path is taken as it is.
#[must_use]
pub fn look_up(name: &OsStr, path: Option<&OsStr>, avoid: &[PathBuf]) -> Option<PathBuf> {
    if name.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(name));
    }
    match find(name, path, avoid, Order::Path) {
        Found::Program(program) => Some(program),
        Found::NotExecutable | Found::Nothing => None,
    }
}

/// Takes the folders out of `PATH` that [`look_up`] does not use: for programs that haft
/// starts, which look up others in turn, as the first line of a script does.
pub fn clean_path(environment: &mut [(OsString, OsString)], avoid: &[PathBuf]) {
    let avoid: Vec<PathBuf> = avoid.iter().map(|folder| where_it_is(folder)).collect();
    for (_, value) in environment.iter_mut().filter(|(name, _)| name == "PATH") {
        let folders = std::env::split_paths(value)
            .filter(|folder| folder.is_absolute() && !is_avoided(folder, &avoid));
        // They came out of such a list, so they fit into one.
        *value = std::env::join_paths(folders).unwrap_or_else(|_| USUAL.into());
    }
}

/// The value of `PATH` in an environment.
#[must_use]
pub fn path_of(environment: &[(OsString, OsString)]) -> Option<&OsStr> {
    let named = environment.iter().find(|(name, _)| name == "PATH");
    named.map(|(_, value)| value.as_os_str())
}

pub(super) fn find(name: &OsStr, path: Option<&OsStr>, avoid: &[PathBuf], order: Order) -> Found {
    let avoid: Vec<PathBuf> = avoid.iter().map(|folder| where_it_is(folder)).collect();
    let named: Vec<PathBuf> = std::env::split_paths(path.unwrap_or(OsStr::new(USUAL)))
        .filter(|folder| folder.is_absolute())
        .collect();
    let is_system = |folder: &PathBuf| PROGRAMS.iter().any(|known| folder == Path::new(known));
    let folders: Vec<PathBuf> = match order {
        Order::Path => named,
        Order::SystemFirst => {
            let (system, others): (Vec<_>, Vec<_>) = named.into_iter().partition(is_system);
            system.into_iter().chain(others).collect()
        }
        Order::System => {
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

/// Whether something lies in one of these folders. Where such a folder holds one of the
/// system's, as the whole disk does, that one is the system's all the same. A folder of
/// the system that is itself among them is not.
fn is_avoided(path: &Path, avoid: &[PathBuf]) -> bool {
    let path = where_it_is(path);
    avoid.iter().any(|folder| {
        let system = SYSTEM.iter().map(Path::new);
        let mut held = system.filter(|system| system.starts_with(folder) && system != folder);
        path.starts_with(folder) && !held.any(|system| path.starts_with(system))
    })
}

fn where_it_is(path: &Path) -> PathBuf {
    real(path).unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make programs to be found")]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_folder_of_the_system_that_may_be_written_is_not_the_systems() {
        let avoids = |path: &str, folder: &str| is_avoided(Path::new(path), &[folder.into()]);
        assert!(avoids("/opt/bin/tool", "/opt"));
        assert!(avoids("/opt/a/bin/tool", "/opt/a"));
        assert!(!avoids("/opt/bin/tool", "/"));
        let both = [PathBuf::from("/"), PathBuf::from("/opt")];
        assert!(is_avoided(Path::new("/opt/bin/tool"), &both));
    }

    #[test]
    fn what_a_model_could_write_is_never_found() {
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
            assert_eq!(found(path, Order::Path), Found::Nothing, "{path}");
            let path = format!("{path}:@/own");
            assert_eq!(
                found(&path, Order::Path),
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
        // Shells are the system's.
        let path = work.join("bin");
        let shell = |avoid: &[PathBuf]| {
            find(
                "bash".as_ref(),
                Some(path.as_os_str()),
                avoid,
                Order::System,
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

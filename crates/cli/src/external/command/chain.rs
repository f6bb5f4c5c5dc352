//! Which programs the start of one runs: the interpreter of a script, the interpreter of
//! that one, and so on.

use super::known::{self, name_of};
use super::text::fragments;
use haft::ops::executor::clean_path;
use haft::ops::scope::real;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// How often the kernel follows the first line of a script.
const DEEPEST: usize = 6;

/// Programs that are another one by each link to them.
const MANY: [&str; 3] = ["busybox", "toybox", "coreutils"];

/// Looks programs up as a program that haft starts does.
pub(super) struct Finder {
    folders: Vec<PathBuf>,
}

/// A program that is run, and whether it may load code from the folder it runs in.
pub(super) struct Step {
    pub(super) program: PathBuf,
    pub(super) is_loose: bool,
    /// What the first line of the script gives it.
    pub(super) words: String,
}

impl Finder {
    /// `avoid` are the folders that are taken out of `PATH`.
    pub(super) fn new(path: Option<&OsStr>, avoid: &[PathBuf]) -> Self {
        let mut environment = [(
            OsString::from("PATH"),
            path.unwrap_or_default().to_os_string(),
        )];
        clean_path(&mut environment, avoid);
        let folders = environment.iter().flat_map(|(_, path)| {
            let folders: Vec<PathBuf> = std::env::split_paths(path).collect();
            folders
        });
        Self {
            folders: folders.collect(),
        }
    }

    /// The program of a bare name, wherever a link of that name leads.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        if name.is_empty() || name.contains('/') {
            return None;
        }
        let found = self.folders.iter().map(|folder| folder.join(name));
        found.into_iter().find(|file| is_executable(file))
    }

    /// The interpreters that are run for a program, one after the other.
    pub(super) fn interpreters(&self, program: &Path) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut script = program.to_owned();
        while let Some(step) = self.interpreter(&script) {
            let is_end = steps.len() >= DEEPEST || !step.program.is_absolute();
            script.clone_from(&step.program);
            steps.push(step);
            if is_end {
                break;
            }
        }
        steps
    }

    fn interpreter(&self, script: &Path) -> Option<Step> {
        let line = super::super::first_line(script)?;
        let mut words = line.split_whitespace().peekable();
        let is_env = |word: &&str| name_of(Path::new(word)) == "env";
        let by_env = words.next_if(is_env).is_some();
        if by_env {
            words.next_if(|word| ["-S", "--split-string"].contains(word));
        }
        let written = words.next()?;
        let arguments: Vec<String> = words
            .map(str::to_owned)
            .chain([script.display().to_string()])
            .collect();
        let found = match by_env {
            true => self.find(written).unwrap_or_else(|| written.into()),
            false => PathBuf::from(written),
        };
        // An option or a variable of `env`, quotes that it removes, or a path from the folder
        // it runs in.
        let is_unclear = written.starts_with('-')
            || written.contains('=')
            || by_env && line.contains(['\'', '"', '\\', '$'])
            || !found.is_absolute() && (!by_env || written.contains('/'));
        // An interpreter that is not known may take any word for a file with code.
        let given = arguments.split_last().map_or(&[][..], |(_, given)| given);
        let is_unclear = is_unclear
            || !known::is_interpreter(&name_of(&found))
                && given.iter().any(|word| is_relative(word));
        // A link may have a harmless name. One to a program that is many, such as that of
        // `sh` to `busybox`, is what its own name says.
        let behind = real(&found)
            .filter(|real| found.is_absolute() && !MANY.contains(&name_of(real).as_str()));
        let names = [Some(found.as_path()), behind.as_deref()];
        let is_loose = names.into_iter().flatten().any(|program| {
            known::code_of(&name_of(program), &arguments, Path::new("/")).is_from_folder
        });
        Some(Step {
            program: found,
            is_loose: is_unclear || is_loose,
            words: line.clone(),
        })
    }
}

/// Whether a word of a first line may name something in the folder that the program runs in.
fn is_relative(word: &str) -> bool {
    match word.starts_with('-') {
        true => word.contains(['.', '=']) || word.contains('/') && fragments(word).next().is_none(),
        false => !word.starts_with('/'),
    }
}

fn is_executable(file: &Path) -> bool {
    super::super::is_file(file) && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

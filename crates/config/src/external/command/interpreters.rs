//! Finds the interpreters that run when a program is started: a script's interpreter,
//! that one's interpreter, and so on.

use super::program_names::{self, name_of};
use super::text::fragments;
use haft::ops::executor::clean_path;
use haft::ops::scope::real;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Maximum nesting of scripts that the kernel follows.
const MAX_DEPTH: usize = 6;

/// Programs that act according to the name of the link they are started by.
const MULTI_CALL: [&str; 3] = ["busybox", "toybox", "coreutils"];

/// Looks up programs as a program started by haft would.
pub(super) struct Finder {
    folders: Vec<PathBuf>,
}

/// A program that is run.
pub(super) struct Step {
    pub(super) program: PathBuf,
    /// Whether it may load code from its current folder.
    pub(super) is_loose: bool,
    /// Arguments from the first line of the script.
    pub(super) words: String,
}

impl Finder {
    /// `avoid` lists the folders to remove from `PATH`.
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

    /// Returns the program with a bare name, without resolving links.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        if name.is_empty() || name.contains('/') {
            return None;
        }
        let found = self.folders.iter().map(|folder| folder.join(name));
        found.into_iter().find(|file| is_executable(file))
    }

    /// Returns the interpreters that are run for a program, in order.
    pub(super) fn interpreters(&self, program: &Path) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut script = program.to_owned();
        while let Some(step) = self.interpreter(&script) {
            let is_end = steps.len() >= MAX_DEPTH || !step.program.is_absolute();
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
        // An option or variable of `env`, quotes that it removes, or a path relative to
        // the current folder.
        let is_unclear = written.starts_with('-')
            || written.contains('=')
            || by_env && line.contains(['\'', '"', '\\', '$'])
            || !found.is_absolute() && (!by_env || written.contains('/'));
        // An unknown interpreter may treat any word as a file with code.
        let given = arguments.split_last().map_or(&[][..], |(_, given)| given);
        let is_unclear = is_unclear
            || !program_names::is_interpreter(&name_of(&found))
                && given.iter().any(|word| is_relative(word));
        // A link may have a harmless name. But a link to a multi-call program, such as
        // `sh` to `busybox`, acts as its own name says.
        let behind = real(&found)
            .filter(|real| found.is_absolute() && !MULTI_CALL.contains(&name_of(real).as_str()));
        let names = [Some(found.as_path()), behind.as_deref()];
        let is_loose = names.into_iter().flatten().any(|program| {
            program_names::code_of(&name_of(program), &arguments, Path::new("/")).is_from_folder
        });
        Some(Step {
            program: found,
            is_loose: is_unclear || is_loose,
            words: line.clone(),
        })
    }
}

/// Whether a word of a first line may refer to something in the current folder.
fn is_relative(word: &str) -> bool {
    match word.starts_with('-') {
        true => word.contains(['.', '=']) || word.contains('/') && fragments(word).next().is_none(),
        false => !word.starts_with('/'),
    }
}

fn is_executable(file: &Path) -> bool {
    super::super::is_file(file) && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

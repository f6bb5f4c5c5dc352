//! Determines what a configured command line runs, and where: which words are code, which
//! folder they are found in, and whether any of it belongs to the project.
//!
//! Paths start from the folder of the configuration file. A program runs in the work
//! folder unless something there can become part of it: a program that may load code from
//! its current folder (`npx`, `python3 -m`, `make`) runs in `/`, unless its entry sets
//! `cwd`.

mod interpreters;
mod launcher;
mod program_names;
mod text;

use crate::environment::Environment;
use crate::plugins::{AddedVariables, Owner};
use haft::ops::executor::look_up;
use haft::ops::scope::real;
use interpreters::{Finder, Step};
use program_names::Code;
pub(super) use program_names::{CodeSource, is_loader, may_run_code};
pub(crate) use program_names::{is_interpreter, name_of};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use text::fragments;

/// A command line as configured.
pub(crate) struct WrittenCommand<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [String],
    pub(crate) environment: &'a AddedVariables,
    /// Variables that it may inherit.
    pub(crate) process: &'a Environment,
    /// Configured current folder.
    pub(crate) dir: Option<&'a Path>,
    /// Folder that its relative paths start from.
    pub(crate) base: &'a Path,
    pub(crate) owner: Owner,
}

/// Folders that decide whether a path needs trust.
#[derive(Clone, Copy)]
pub(crate) struct Folders<'a> {
    pub(crate) started: &'a Path,
    /// Current folder of haft, if that is another project.
    pub(crate) current: Option<&'a Path>,
    pub(crate) work_dir: &'a Path,
    /// Haft's config folder, which is never part of a project.
    pub(crate) config: Option<&'a Path>,
    /// Other folders that commands can write.
    pub(crate) roots: &'a [PathBuf],
    /// Haft's state folder, which contains the private temp folders.
    pub(crate) state: Option<&'a Path>,
}

/// A command line as it is run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CommandLine {
    /// The program that was checked, so that no other is started instead. A name that was
    /// not found stays a name.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Current folder of the program.
    pub(crate) dir: PathBuf,
    /// Reasons for needing trust, as shown to the user.
    pub(crate) reasons: Vec<String>,
    /// Warning about a probable mistake.
    pub(crate) problem: Option<String>,
    /// Whether the user named it for this run as part of the project.
    pub(crate) is_vouched: bool,
}

impl Folders<'_> {
    /// Describes where a path is, if the project or a command may have written it.
    pub(super) fn place(&self, path: &Path) -> Option<&'static str> {
        if self.is_project(path) {
            return Some("in this folder");
        }
        if self.is_current(path) {
            return Some("in the folder that haft was started in");
        }
        let is_own = self.config.is_some_and(|config| is_below(path, config));
        let temp = self.state.map(|state| state.join("tmp"));
        let mut others = self.roots.iter().chain(&temp);
        let is_writable = !is_own && others.any(|folder| is_below(path, folder));
        is_writable.then_some("where commands can write")
    }

    /// Returns the folders that commands or the project may write.
    fn writable(&self) -> Vec<PathBuf> {
        let temp = self.state.map(|state| state.join("tmp"));
        let folders = [Some(self.started), Some(self.work_dir), self.current];
        let folders = folders.into_iter().flatten().map(Path::to_owned);
        let roots = self.roots.iter().map(|root| self.work_dir.join(root));
        folders.chain(roots).chain(temp).collect()
    }

    /// Describes where something is that a text refers to. For code, paths count whether
    /// they exist or not, and so do folders. For other arguments only files count,
    /// because a folder of the project is just data.
    fn place_in_text(&self, text: &str, dir: &Path, is_code: bool) -> Option<&'static str> {
        let counts = |path: &Path| is_code || super::is_file(path);
        let mut absolute = fragments(text).map(Path::new);
        let place = absolute.find_map(|path| self.place(path).filter(|_| counts(path)));
        let relative = || {
            let words = text::relative(text).filter(|word| is_code || names_a_path(word));
            let mut found = words.map(|word| dir.join(word));
            found.find_map(|path| {
                let is_there = super::is_file(&path) || is_code && path.is_dir();
                is_there.then(|| self.place(&path)).flatten()
            })
        };
        // `~/p*/run.sh` may match the project.
        let searched = || {
            let mut around = text::searched(text).filter(|_| is_code);
            around.find_map(|folder| {
                let current = self.current.filter(|current| is_below(current, folder));
                match is_below(self.work_dir, folder) {
                    true => Some("in this folder"),
                    false => current.map(|_| "in the folder that haft was started in"),
                }
            })
        };
        place.or_else(relative).or_else(searched)
    }

    /// Whether a path is in the project.
    fn is_project(&self, path: &Path) -> bool {
        !self.config.is_some_and(|config| is_below(path, config))
            && (is_below(path, self.started) || is_below(path, self.work_dir))
    }

    /// Whether a path is in haft's current folder.
    fn is_current(&self, path: &Path) -> bool {
        !self.config.is_some_and(|config| is_below(path, config))
            && self.current.is_some_and(|current| is_below(path, current))
    }
}

fn is_below(path: &Path, folder: &Path) -> bool {
    let at = |path: &Path| real(path).unwrap_or_else(|| path.to_owned());
    at(path).starts_with(at(folder))
}

impl WrittenCommand<'_> {
    /// Returns the command line to run.
    pub(crate) fn line(&self, folders: Folders<'_>) -> CommandLine {
        // `env -S` takes `\_` for a blank.
        let spaced: Vec<String> = self
            .arguments
            .iter()
            .map(|word| word.replace("\\_", " "))
            .collect();
        if spaced == self.arguments {
            return self.judged(folders);
        }
        let line = WrittenCommand {
            arguments: &spaced,
            ..*self
        }
        .judged(folders);
        let arguments = line.arguments.into_iter().zip(self.arguments);
        let arguments = arguments.map(|(judged, written)| match written.contains("\\_") {
            true => written.clone(),
            false => judged,
        });
        CommandLine {
            arguments: arguments.collect(),
            ..line
        }
    }

    fn judged(&self, folders: Folders<'_>) -> CommandLine {
        let finder = self.finder(folders);
        let program = self.located(folders);
        let mut code = self.code(&program);
        let runs = self.runs(&program, &finder);
        code.is_from_folder |= runs.iter().any(|step| step.is_loose);
        let variables = self.variables();
        code.is_from_folder |= variables
            .iter()
            .any(|(name, value)| program_names::loads(name, value));
        // A command line named for this run refers to the user's current folder.
        let is_vouched = match self.owner {
            Owner::Typed => true,
            Owner::Named => folders.is_project(self.base) || folders.is_current(self.base),
            Owner::User | Owner::Project => false,
        };
        let dir = match (self.dir, self.owner) {
            (Some(dir), _) => dir.to_owned(),
            (None, Owner::User | Owner::Named) if code.is_from_folder && !is_vouched => {
                PathBuf::from("/")
            }
            (None, _) => folders.work_dir.to_owned(),
        };
        let mut line = CommandLine {
            program,
            arguments: Vec::new(),
            reasons: Vec::new(),
            problem: None,
            is_vouched,
            dir,
        };
        for (at, word) in self.arguments.iter().enumerate() {
            let is_code = at < code.rest;
            let (before, path) = parted(word);
            let placed = self.placed(path, is_code, &line.dir, folders);
            if placed.is_none() && line.dir != folders.work_dir {
                let problem = line.problem.take();
                line.problem = problem.or_else(|| self.elsewhere(path, folders));
                line.problem = line.problem.or_else(|| self.within_text(word, &line.dir));
            }
            let argument = match placed {
                Some(placed) => format!("{before}{}", placed.display()),
                None => word.clone(),
            };
            let is_named = self.owner == Owner::Named && Path::new(parted(word).1).is_absolute();
            let place = |path: &str| {
                let found = line.dir.join(path);
                let is_code = is_code && names_a_path(path) && found.is_dir();
                let counts = super::is_file(&found) || is_code;
                counts.then(|| folders.place(&found)).flatten()
            };
            // As written, and as a shell would read it if the program passes it on to
            // one.
            let read = self.read_by_a_shell(&argument, &line.dir);
            let place = [&argument, &read]
                .into_iter()
                .find_map(|text| paths_of_argument(text).find_map(place));
            let is_text = is_code || word.contains(char::is_whitespace);
            let place = place.or_else(|| folders.place_in_text(&read, &line.dir, is_text));
            match place {
                Some(_) if is_named => line.is_vouched = true,
                Some(place) => line.reasons.push(format!("{word} is {place}")),
                None => {}
            }
            line.arguments.push(argument);
        }
        let place = folders.place(self.program);
        match place.filter(|_| self.program.is_absolute()) {
            Some(_) if self.owner == Owner::Named => line.is_vouched = true,
            Some(place) => line.reasons.push(format!("the program is {place}")),
            None => {}
        }
        for step in runs.iter().filter(|step| step.program.is_absolute()) {
            if let Some(place) = folders.place(&step.program) {
                let program = step.program.display();
                line.reasons
                    .push(format!("it runs {program}, which is {place}"));
            }
        }
        for words in runs.iter().map(|step| step.words.as_str()) {
            let mut paths = fragments(words);
            if let Some(place) = paths.find_map(|path| folders.place(Path::new(path))) {
                line.reasons.push(format!(
                    "the first line of a script refers to something that is {place}"
                ));
            }
        }
        for (name, value) in &variables {
            let value = &self.read_by_a_shell(value, &line.dir);
            if let Some(place) = place_of_value(name, value, &line.dir, folders) {
                line.reasons
                    .push(format!("{name} refers to something that is {place}"));
            }
        }
        let place = folders.place(&line.dir).filter(|_| code.is_from_folder);
        if let Some(place) = place {
            let reason = format!("it may load code from the folder it runs in, which is {place}");
            line.reasons.push(reason);
        }
        if is_vouched {
            line.reasons.clear();
        }
        line
    }

    /// Expands a text as a shell would if the program passes it on to one.
    fn read_by_a_shell(&self, text: &str, dir: &Path) -> String {
        let own = self.variables();
        text::expanded(text, &|name| {
            let own = own.iter().rfind(|(known, _)| known == name);
            own.map(|(_, value)| value.clone()).or_else(|| match name {
                "PWD" => dir.to_str().map(str::to_owned),
                "HOME" | "USER" | "LOGNAME" => self.process.text(name),
                _ => None,
            })
        })
    }

    /// Returns the full path of an argument relative to its file's folder, if it must be
    /// made explicit.
    fn placed(
        &self,
        path: &str,
        is_code: bool,
        dir: &Path,
        folders: Folders<'_>,
    ) -> Option<PathBuf> {
        // With a configured folder, its paths start there.
        let is_said = dir == self.base || self.dir.is_some();
        if is_said || path.is_empty() || Path::new(path).is_absolute() {
            return None;
        }
        let is_elsewhere = dir != folders.work_dir;
        if is_dots(path) {
            // As data, `.` means the work folder, which a file server should serve. As
            // code it starts from the configuration file's folder, like every path. It is
            // never the folder the program starts in.
            let start = if is_code { self.base } else { folders.work_dir };
            return is_elsewhere.then(|| plain(&start.join(path)));
        }
        let beside = self.base.join(path);
        if super::is_file(&beside) || beside.is_dir() && names_a_path(path) {
            return Some(plain(&beside));
        }
        let there = folders.work_dir.join(path);
        let is_meant = !is_code && is_elsewhere && names_a_path(path) && there.is_dir();
        is_meant.then(|| plain(&there))
    }

    /// Warning about a path that is missing beside its file but exists in the work
    /// folder.
    fn elsewhere(&self, path: &str, folders: Folders<'_>) -> Option<String> {
        let is_script = Path::new(path).extension().is_some() || names_a_path(path);
        let is_there = |folder: &Path| super::is_file(&folder.join(path));
        let is_missed = self.owner == Owner::User
            && self.dir.is_none()
            && is_script
            && !Path::new(path).is_absolute()
            && self.base != folders.work_dir
            && !is_there(self.base)
            && is_there(folders.work_dir);
        is_missed.then(|| {
            format!(
                "{path} is looked up in {}, the folder of its configuration file; to run the one in this folder, configure it in this folder's haft.yaml",
                self.base.display()
            )
        })
    }

    /// Warning about a `.` inside a text such as that of `sh -c`, which is not replaced.
    fn within_text(&self, word: &str, dir: &Path) -> Option<String> {
        let mut pieces = word.split_whitespace();
        let has_dot = word.contains(char::is_whitespace) && pieces.any(|piece| piece == ".");
        let is_taken = has_dot && self.dir.is_none() && self.owner != Owner::Project;
        is_taken.then(|| {
            format!(
                "`.` in \"{word}\" means {}, the folder it runs in, not the work folder; pass each word as a separate argument, or set `cwd`",
                dir.display()
            )
        })
    }

    /// Returns the variables it gets in addition to the default ones, and those that its
    /// arguments set for another program.
    fn variables(&self) -> Vec<(String, String)> {
        let passed = self.environment.names.iter();
        let passed = passed.filter_map(|name| Some((name.clone(), self.process.text(name)?)));
        let set = assignments(self.arguments);
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let own = self.environment.values.iter().cloned();
        own.chain(passed).chain(set).collect()
    }

    /// Returns the `PATH` of the program.
    fn path(&self) -> Option<OsString> {
        let mut own = self.environment.values.iter();
        let own = own.rfind(|(name, _)| name == "PATH");
        let own = own.map(|(_, path)| OsString::from(path));
        own.or_else(|| self.process.variable("PATH").map(OsString::from))
    }

    /// Finds the program as it will be found when it is started.
    fn located(&self, folders: Folders<'_>) -> PathBuf {
        let (path, avoid) = (self.path(), folders.writable());
        look_up(self.program.as_os_str(), path.as_deref(), &avoid)
            .unwrap_or_else(|| self.program.to_owned())
    }

    fn finder(&self, folders: Folders<'_>) -> Finder {
        Finder::new(self.path().as_deref(), &folders.writable())
    }

    /// Returns what else is run: interpreters, and programs named by its arguments, as in
    /// `flock FILE PROGRAM`, with their interpreters.
    fn runs(&self, program: &Path, finder: &Finder) -> Vec<Step> {
        let mut steps = finder.interpreters(program);
        if program_names::runs_elsewhere(&name_of(self.program)) {
            return steps;
        }
        for (at, word) in self.arguments.iter().enumerate() {
            let behind = self.arguments.get(at + 1..).unwrap_or_default();
            // Also matches `--command=PROGRAM` and shell text.
            let apart = |c: char| c.is_whitespace() || "'\"`;=()<>|&".contains(c);
            for piece in word.split(apart) {
                if Path::new(piece).is_absolute() {
                    steps.extend(finder.interpreters(Path::new(piece)));
                }
                let Some(named) = finder.find(piece) else {
                    continue;
                };
                steps.extend(finder.interpreters(&named));
                // The program may be a link to an interpreter or into the project.
                let name = name_of(&real(&named).unwrap_or_else(|| named.clone()));
                steps.push(Step {
                    is_loose: program_names::code_of(&name, behind, Path::new("/")).is_from_folder,
                    program: named,
                    words: String::new(),
                });
            }
        }
        steps
    }

    /// Whether it is a script of the user's beside their file or among their tools. The
    /// user chose its name, which does not tell what it runs.
    fn is_own_script(&self, program: &Path) -> bool {
        let place = real(program).filter(|_| self.owner == Owner::User);
        let is_here = place.is_some_and(|place| {
            place.parent() == real(self.base).as_deref() && place.file_name() == program.file_name()
        });
        is_here && super::first_line(program).is_some()
    }

    fn code(&self, program: &Path) -> Code {
        let from = self.dir.unwrap_or(self.base);
        if self.is_own_script(program) {
            return program_names::code_of("", self.arguments, from);
        }
        let named = program_names::code_of(&name_of(self.program), self.arguments, from);
        // A link or a script may have a harmless name.
        let real = real(program).filter(|_| program.is_absolute());
        let really = real.map(|real| program_names::code_of(&name_of(&real), self.arguments, from));
        let code = match really {
            Some(really) if really.is_from_folder && !named.is_from_folder => really,
            Some(really) if !named.is_from_folder => Code {
                rest: named.rest.max(really.rest),
                ..named
            },
            _ => named,
        };
        Code { ..code }
    }
}

/// Describes where something is that a variable refers to: a file, a folder given by a
/// relative path, or any folder that code is loaded from.
fn place_of_value(
    name: &str,
    value: &str,
    dir: &Path,
    folders: Folders<'_>,
) -> Option<&'static str> {
    // Folders of the project are removed from PATH.
    let is_loader = program_names::is_loader(name) && name != "PATH";
    let is_mode = ["_ENV", "_MODE", "_LEVEL", "ENVIRONMENT"]
        .iter()
        .any(|end| name.ends_with(end));
    let inside = || {
        let mut paths = fragments(value).filter(|_| is_loader);
        paths.find_map(|path| folders.place(Path::new(path)))
    };
    let named = paths_of_value(value).find_map(|path| {
        let found = dir.join(path);
        let is_relative = !Path::new(path).is_absolute() && !is_dots(path);
        // `NODE_ENV=test` does not mean the folder `test`.
        let is_meant = names_a_path(path) || path == value && !is_mode;
        let is_folder = || (is_loader || is_relative && is_meant) && found.is_dir();
        let counts = super::is_file(&found) || is_folder();
        counts.then(|| folders.place(&found)).flatten()
    });
    named.or_else(inside)
}

/// Returns the words in an argument that may be paths: `--script=./tool.py`,
/// `file:./tool.py`, `-I./lib` and `-nftool.sed` contain one too.
pub(super) fn paths_of_argument(word: &str) -> impl Iterator<Item = &str> {
    let (before, path) = parted(word);
    let value = Some(path).filter(|_| !before.is_empty());
    let attached = std::iter::successors(after_letter(word), |rest| without_letter(rest));
    [Some(word), value]
        .into_iter()
        .flatten()
        .chain(attached.take(MAX_BUNDLED))
}

/// Returns the paths in a variable's value, which may be a list of folders or flags of an
/// interpreter.
pub(super) fn paths_of_value(value: &str) -> impl Iterator<Item = &str> {
    let pieces = value.split([' ', '\t', '\n', '=', ':', ';', ',']);
    let pieces = pieces.flat_map(|piece| [Some(piece), after_letter(piece)]);
    [Some(value), Some(parted(value).1)]
        .into_iter()
        .chain(pieces)
        .flatten()
        .filter(|path| !path.is_empty())
}

/// Returns the variables that arguments set for another program, as in `env A=1 python3`.
pub(super) fn assignments(arguments: &[String]) -> impl Iterator<Item = (&str, &str)> {
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let parts = arguments.iter().filter_map(|word| word.split_once('='));
    parts.filter(move |(name, _)| is_name(name))
}

/// Returns the paths in a text that is code for a shell or another interpreter.
pub(super) fn paths_in_text(text: &str) -> impl Iterator<Item = &str> {
    let paths = fragments(text).chain(text::relative(text));
    paths.filter(|path| !is_dots(path))
}

/// Returns the source of the code that a command line runs. `located` is the program that
/// was found.
pub(super) fn code_source(program: &Path, located: &Path, arguments: &[String]) -> CodeSource {
    let named = program_names::code_source(&name_of(program), arguments);
    // A link may have a harmless name.
    let real = real(located).filter(|_| located.is_absolute());
    match (named, real) {
        (CodeSource::Program, Some(real)) => program_names::code_source(&name_of(&real), arguments),
        (named, _) => named,
    }
}

/// Whether an argument may contain code for a shell, as `git -c alias.x=!./run` does.
pub(super) fn may_be_script(word: &str) -> bool {
    word.contains(['!', ';', '|', '&', '`']) || word.contains("$(")
}

/// Maximum number of single-letter options in one word that are looked behind.
const MAX_BUNDLED: usize = 8;

/// Returns `./lib` of `-I./lib`.
fn after_letter(word: &str) -> Option<&str> {
    without_letter(word.strip_prefix('-')?)
}

fn without_letter(word: &str) -> Option<&str> {
    word.strip_prefix(|c: char| c.is_ascii_alphabetic())
        .filter(|rest| !rest.is_empty())
}

/// Whether a path is only `.` or `..`.
fn is_dots(path: &str) -> bool {
    ["", ".", "..", "./", "../"].contains(&path)
}

/// Splits a word before a path: `--script=` and `./tool.py`.
pub(super) fn parted(word: &str) -> (&str, &str) {
    let at = match word.split_once('=') {
        Some((flag, _)) if flag.starts_with('-') => flag.len() + 1,
        _ => 0,
    };
    let rest = word.get(at..).unwrap_or_default();
    let at = match rest.strip_prefix("file:") {
        Some(path) if !path.starts_with("//") => at + "file:".len(),
        Some(_) => at + "file://".len(),
        None => at,
    };
    word.split_at_checked(at).unwrap_or(("", word))
}

/// Whether a word is written as a path; a bare word may be anything.
fn names_a_path(word: &str) -> bool {
    word.contains('/') || [".", ".."].contains(&word)
}

/// Removes `.` components.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests;

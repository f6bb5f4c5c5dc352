//! What a command line of a configuration runs, and where: which of its words are code,
//! which folder they are looked for in, and whether any of it belongs to the project.
//!
//! A path of a file starts at that file's folder. A program runs in the work folder as
//! long as nothing there can become part of it; one that may load code from the folder it
//! runs in (`npx`, `python3 -m`, `make`) runs in `/`, unless its entry has a `cwd`.

mod chain;
mod known;
mod launcher;
mod text;

use crate::config::plugins::{Environment, Whose};
use crate::env;
use chain::{Finder, Step};
use haft::ops::executor::look_up;
use haft::ops::scope::real;
use known::Code;
pub(crate) use known::{is_interpreter, name_of};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use text::fragments;

/// A command line as it is written.
pub(crate) struct Written<'a> {
    pub(crate) program: &'a Path,
    pub(crate) arguments: &'a [String],
    pub(crate) environment: &'a Environment,
    /// The folder that its entry says it runs in.
    pub(crate) dir: Option<&'a Path>,
    /// The folder that its paths start at.
    pub(crate) base: &'a Path,
    /// Whose word it is.
    pub(crate) whose: Whose,
}

/// The folders that matter.
#[derive(Clone, Copy)]
pub(crate) struct Folders<'a> {
    pub(crate) started: &'a Path,
    /// The folder that haft itself runs in, where that is another project.
    pub(crate) current: Option<&'a Path>,
    pub(crate) work_dir: &'a Path,
    /// haft's own, which is never part of a project.
    pub(crate) config: Option<&'a Path>,
    /// Others that commands can write.
    pub(crate) roots: &'a [PathBuf],
    /// haft's state, which has the private temp folders.
    pub(crate) state: Option<&'a Path>,
}

/// A command line as it is run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// The program that was judged, so that no other is started in its place. A name that
    /// was not found stays a name.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// Where it runs.
    pub(crate) dir: PathBuf,
    /// Why it may only run where the project is trusted, for who has to say yes.
    pub(crate) reasons: Vec<String>,
    /// What is probably not meant so.
    pub(crate) problem: Option<String>,
    /// Whether the person named it for this run, as something of the project.
    pub(crate) is_vouched: bool,
}

impl Folders<'_> {
    /// Where a path lies, if the project or a command may have put it there.
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

    /// What commands or the project may write.
    fn writable(&self) -> Vec<PathBuf> {
        let temp = self.state.map(|state| state.join("tmp"));
        let folders = [Some(self.started), Some(self.work_dir), self.current];
        let folders = folders.into_iter().flatten().map(Path::to_owned);
        let roots = self.roots.iter().map(|root| self.work_dir.join(root));
        folders.chain(roots).chain(temp).collect()
    }

    /// Where something lies that a text names which a program gets in this folder. What
    /// may be code counts whether it is there or not, and so do folders; of other
    /// arguments only files do: a folder of the project is something to work on.
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
        // `~/p*/run.sh` may find the project.
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

    /// Whether a path lies in the project.
    fn is_project(&self, path: &Path) -> bool {
        !self.config.is_some_and(|config| is_below(path, config))
            && (is_below(path, self.started) || is_below(path, self.work_dir))
    }

    /// Whether a path lies in the folder that haft itself runs in.
    fn is_current(&self, path: &Path) -> bool {
        !self.config.is_some_and(|config| is_below(path, config))
            && self.current.is_some_and(|current| is_below(path, current))
    }
}

fn is_below(path: &Path, folder: &Path) -> bool {
    let at = |path: &Path| real(path).unwrap_or_else(|| path.to_owned());
    at(path).starts_with(at(folder))
}

impl Written<'_> {
    /// What is run.
    pub(crate) fn line(&self, folders: Folders<'_>) -> Line {
        let finder = self.finder(folders);
        let program = self.located(folders);
        let mut code = self.code(&program);
        let runs = self.runs(&program, &finder);
        code.is_from_folder |= runs.iter().any(|step| step.is_loose);
        let variables = self.variables();
        code.is_from_folder |= variables
            .iter()
            .any(|(name, value)| known::loads(name, value));
        // Whoever names a command line for this run means the folder they are in.
        let is_vouched = match self.whose {
            Whose::Typed => true,
            Whose::Named => folders.is_project(self.base) || folders.is_current(self.base),
            Whose::Person | Whose::Project => false,
        };
        let dir = match (self.dir, self.whose) {
            (Some(dir), _) => dir.to_owned(),
            (None, Whose::Person | Whose::Named) if code.is_from_folder && !is_vouched => {
                PathBuf::from("/")
            }
            (None, _) => folders.work_dir.to_owned(),
        };
        let mut line = Line {
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
            let is_named = self.whose == Whose::Named && Path::new(parted(word).1).is_absolute();
            let place = |path: &str| {
                let found = line.dir.join(path);
                let is_code = is_code && names_a_path(path) && found.is_dir();
                let counts = super::is_file(&found) || is_code;
                counts.then(|| folders.place(&found)).flatten()
            };
            // As it is, and as a shell would read it that it is passed on to.
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
            Some(_) if self.whose == Whose::Named => line.is_vouched = true,
            Some(place) => line.reasons.push(format!("the program is {place}")),
            None => {}
        }
        for step in runs.iter().filter(|step| step.program.is_absolute()) {
            if let Some(place) = folders.place(&step.program) {
                let program = step.program.display();
                line.reasons
                    .push(format!("{program}, which it runs, is {place}"));
            }
        }
        for words in runs.iter().map(|step| step.words.as_str()) {
            let mut paths = fragments(words);
            if let Some(place) = paths.find_map(|path| folders.place(Path::new(path))) {
                line.reasons.push(format!(
                    "the first line of a script names something that is {place}"
                ));
            }
        }
        for (name, value) in &variables {
            let value = &self.read_by_a_shell(value, &line.dir);
            if let Some(place) = place_of_value(name, value, &line.dir, folders) {
                line.reasons
                    .push(format!("{name} names something that is {place}"));
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

    /// A text as a shell reads it that the program passes it on to.
    fn read_by_a_shell(&self, text: &str, dir: &Path) -> String {
        let own = self.variables();
        text::expanded(text, &|name| {
            let own = own.iter().rfind(|(known, _)| known == name);
            own.map(|(_, value)| value.clone()).or_else(|| match name {
                "PWD" => dir.to_str().map(str::to_owned),
                "HOME" | "USER" | "LOGNAME" => env::text(name),
                _ => None,
            })
        })
    }

    /// Where an argument leads from the folder of its file, if that has to be said.
    fn placed(
        &self,
        path: &str,
        is_code: bool,
        dir: &Path,
        folders: Folders<'_>,
    ) -> Option<PathBuf> {
        // With a folder of its own, that is where its paths start.
        let is_said = dir == self.base || self.dir.is_some();
        if is_said || path.is_empty() || Path::new(path).is_absolute() {
            return None;
        }
        let is_elsewhere = dir != folders.work_dir;
        if is_dots(path) {
            // As data it is the work folder, which a file server is meant to serve. As code
            // it starts at the folder of the config file, as every path does. It is never the
            // folder that the program starts in.
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

    /// What to say about a path that is not where it starts, but in the work folder.
    fn elsewhere(&self, path: &str, folders: Folders<'_>) -> Option<String> {
        let is_script = Path::new(path).extension().is_some() || names_a_path(path);
        let is_there = |folder: &Path| super::is_file(&folder.join(path));
        let is_missed = self.whose == Whose::Person
            && self.dir.is_none()
            && is_script
            && !Path::new(path).is_absolute()
            && self.base != folders.work_dir
            && !is_there(self.base)
            && is_there(folders.work_dir);
        is_missed.then(|| {
            format!(
                "{path} is looked for in {}, the folder of the file that names it; to run the one of this folder, name it in this folder's haft.yaml",
                self.base.display()
            )
        })
    }

    /// A warning about a `.` inside a text such as that of `sh -c`, which is not replaced.
    fn within_text(&self, word: &str, dir: &Path) -> Option<String> {
        let mut pieces = word.split_whitespace();
        let has_dot = word.contains(char::is_whitespace) && pieces.any(|piece| piece == ".");
        let is_taken = has_dot && self.dir.is_none() && self.whose != Whose::Project;
        is_taken.then(|| {
            format!(
                "`.` in \"{word}\" is {}, the folder it runs in, and not the work folder; give each word as an argument of its own, or set `cwd`",
                dir.display()
            )
        })
    }

    /// The variables that it gets beside the usual ones, with their values.
    fn variables(&self) -> Vec<(String, String)> {
        let passed = self.environment.names.iter();
        let passed = passed.filter_map(|name| Some((name.clone(), env::text(name)?)));
        self.environment
            .values
            .iter()
            .cloned()
            .chain(passed)
            .collect()
    }

    /// The `PATH` that the program gets.
    fn path(&self) -> Option<OsString> {
        let mut own = self.environment.values.iter();
        let own = own.rfind(|(name, _)| name == "PATH");
        let own = own.map(|(_, path)| OsString::from(path));
        own.or_else(|| env::variable("PATH"))
    }

    /// Where the program is, found as it is found when it is started.
    fn located(&self, folders: Folders<'_>) -> PathBuf {
        let (path, avoid) = (self.path(), folders.writable());
        look_up(self.program.as_os_str(), path.as_deref(), &avoid)
            .unwrap_or_else(|| self.program.to_owned())
    }

    fn finder(&self, folders: Folders<'_>) -> Finder {
        Finder::new(self.path().as_deref(), &folders.writable())
    }

    /// What else is run beside the program itself: its interpreters, and programs that its
    /// arguments name, as in `flock FILE PROGRAM`, with theirs.
    fn runs(&self, program: &Path, finder: &Finder) -> Vec<Step> {
        let mut steps = finder.interpreters(program);
        if known::runs_elsewhere(&name_of(self.program)) {
            return steps;
        }
        for (at, word) in self.arguments.iter().enumerate() {
            let behind = self.arguments.get(at + 1..).unwrap_or_default();
            // `--command=PROGRAM`, and text for a shell.
            let apart = |c: char| c.is_whitespace() || "'\"`;=()<>|&".contains(c);
            for piece in word.split(apart) {
                if Path::new(piece).is_absolute() {
                    steps.extend(finder.interpreters(Path::new(piece)));
                }
                let Some(named) = finder.find(piece) else {
                    continue;
                };
                steps.extend(finder.interpreters(&named));
                // It may be a link to an interpreter, or into the project.
                let name = name_of(&real(&named).unwrap_or_else(|| named.clone()));
                steps.push(Step {
                    is_loose: known::code_of(&name, behind, Path::new("/")).is_from_folder,
                    program: named,
                    words: String::new(),
                });
            }
        }
        steps
    }

    /// Whether it is a script of the person's that lies beside their file or among their
    /// tools: they chose its name, which says nothing about what it runs.
    fn is_own_script(&self, program: &Path) -> bool {
        let place = real(program).filter(|_| self.whose == Whose::Person);
        let is_here = place.is_some_and(|place| {
            place.parent() == real(self.base).as_deref() && place.file_name() == program.file_name()
        });
        is_here && super::first_line(program).is_some()
    }

    fn code(&self, program: &Path) -> Code {
        let from = self.dir.unwrap_or(self.base);
        if self.is_own_script(program) {
            return known::code_of("", self.arguments, from);
        }
        let named = known::code_of(&name_of(self.program), self.arguments, from);
        // A link may have a harmless name, and so may a script.
        let real = real(program).filter(|_| program.is_absolute());
        let really = real.map(|real| known::code_of(&name_of(&real), self.arguments, from));
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

/// Where something lies that the value of a variable names: a file, a folder by a relative
/// path, or any folder that code is loaded from.
fn place_of_value(
    name: &str,
    value: &str,
    dir: &Path,
    folders: Folders<'_>,
) -> Option<&'static str> {
    // What of PATH lies in the project is taken out of it.
    let is_loader = known::is_loader(name) && name != "PATH";
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

/// The paths that an argument may name: `--script=./tool.py`, `file:./tool.py` and
/// `-I./lib` name one as well.
pub(super) fn paths_of_argument(word: &str) -> impl Iterator<Item = &str> {
    let (before, path) = parted(word);
    let value = Some(path).filter(|_| !before.is_empty());
    let attached = after_letter(word).filter(|path| names_a_path(path));
    [Some(word), value, attached].into_iter().flatten()
}

/// The paths that the value of a variable may name, which may be a list of folders or the
/// flags of an interpreter.
pub(super) fn paths_of_value(value: &str) -> impl Iterator<Item = &str> {
    let pieces = value.split([' ', '\t', '\n', '=', ':', ';', ',']);
    let pieces = pieces.flat_map(|piece| [Some(piece), after_letter(piece)]);
    [Some(value), Some(parted(value).1)]
        .into_iter()
        .chain(pieces)
        .flatten()
        .filter(|path| !path.is_empty())
}

/// `./lib` of `-I./lib`.
fn after_letter(word: &str) -> Option<&str> {
    let rest = word.strip_prefix('-')?;
    rest.strip_prefix(|c: char| c.is_ascii_alphabetic())
        .filter(|rest| !rest.is_empty())
}

/// Whether a path is a folder itself or the one above it, and nothing in it.
fn is_dots(path: &str) -> bool {
    ["", ".", "..", "./", "../"].contains(&path)
}

/// What stands before a path in a word, and the path: `--script=` and `./tool.py`.
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

/// Whether a word is written as a path: a bare one may be anything.
fn names_a_path(word: &str) -> bool {
    word.contains('/') || [".", ".."].contains(&word)
}

/// Without the steps that lead nowhere.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
mod tests;

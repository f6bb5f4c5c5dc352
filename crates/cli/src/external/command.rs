//! What a command line of a configuration runs, and where: which of its words are code,
//! which folder they are looked for in, and whether any of it belongs to the project.
//!
//! A path of a file starts at that file's folder. A program runs in the work folder as
//! long as nothing there can become part of it; one that may load code from the folder it
//! runs in (`npx`, `python3 -m`, `make`) runs in `/`, unless its entry has a `cwd`.

use crate::config::plugins::{Environment, Whose};
use crate::env;
use haft::ops::scope::real;
use std::path::{Path, PathBuf};

/// Interpreters, whose first word that is no flag is a file with code.
const INTERPRETERS: [&str; 20] = [
    "python",
    "pypy",
    "node",
    "nodejs",
    "ruby",
    "perl",
    "php",
    "lua",
    "luajit",
    "bash",
    "sh",
    "dash",
    "zsh",
    "ksh",
    "fish",
    "rscript",
    "tclsh",
    "guile",
    "osascript",
    "julia",
];

/// Flags of theirs that take no value and load nothing.
const HARMLESS: [&str; 26] = [
    "-u",
    "-B",
    "-E",
    "-I",
    "-s",
    "-S",
    "-O",
    "-OO",
    "-P",
    "-q",
    "-b",
    "-bb",
    "-e",
    "-x",
    "-eu",
    "-ex",
    "-eux",
    "-w",
    "-W0",
    "--no-warnings",
    "--no-deprecation",
    "--enable-source-maps",
    "--experimental-strip-types",
    "--use-system-ca",
    "--norc",
    "--noprofile",
];

/// Programs that fetch a package by its name and run it.
const LAUNCHERS: [&[&str]; 13] = [
    &["npx"],
    &["bunx"],
    &["pnpx"],
    &["uvx"],
    &["npm", "exec"],
    &["npm", "x"],
    &["pnpm", "dlx"],
    &["yarn", "dlx"],
    &["bun", "x"],
    &["uv", "tool", "run"],
    &["pipx", "run"],
    &["python", "-m"],
    &["pypy", "-m"],
];

/// Flags of theirs that take no value.
const QUIET: [&str; 6] = ["-y", "--yes", "-q", "--quiet", "--silent", "--"];

/// Programs that load code from the folder they run in, or run another one that may.
const RUNNERS: [&str; 68] = [
    "npm",
    "npx",
    "pnpm",
    "pnpx",
    "yarn",
    "bun",
    "bunx",
    "deno",
    "tsx",
    "ts-node",
    "nodemon",
    "vite-node",
    "uv",
    "uvx",
    "pipx",
    "poetry",
    "pdm",
    "hatch",
    "pixi",
    "rye",
    "conda",
    "mamba",
    "tox",
    "nox",
    "pytest",
    "go",
    "cargo",
    "make",
    "gmake",
    "just",
    "task",
    "rake",
    "bundle",
    "gradle",
    "gradlew",
    "mvn",
    "ant",
    "sbt",
    "bazel",
    "dotnet",
    "java",
    "jbang",
    "swift",
    "zig",
    "mix",
    "elixir",
    "iex",
    "composer",
    "nix",
    "nix-shell",
    "devbox",
    "mise",
    "asdf",
    "direnv",
    "docker-compose",
    "env",
    "sudo",
    "doas",
    "nice",
    "nohup",
    "timeout",
    "xargs",
    "setsid",
    "stdbuf",
    "time",
    "exec",
    "busybox",
    "watchexec",
];

/// Variables from which interpreters take code.
const LOADERS: [&str; 24] = [
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "NODE_PATH",
    "NODE_OPTIONS",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "RUBYLIB",
    "RUBYOPT",
    "LUA_PATH",
    "LUA_CPATH",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LD_AUDIT",
    "BASH_ENV",
    "ENV",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "GOFLAGS",
    "DOTNET_STARTUP_HOOKS",
];

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
    pub(crate) work_dir: &'a Path,
    /// haft's own, which is never part of a project.
    pub(crate) config: Option<&'a Path>,
}

/// A command line as it is run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub(crate) arguments: Vec<String>,
    /// Where it runs.
    pub(crate) dir: PathBuf,
    /// Why it may only run where the project is trusted, for who has to say yes.
    pub(crate) reasons: Vec<String>,
    /// What is probably not meant so.
    pub(crate) problem: Option<String>,
}

/// Which words of a command line are code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Code {
    /// Whether code may come from the folder it runs in.
    is_from_folder: bool,
    /// The first argument that is not code but something to work on.
    rest: usize,
}

impl Folders<'_> {
    /// Whether a path lies in the project.
    fn has(&self, path: &Path) -> bool {
        let path = real(path).unwrap_or_else(|| path.to_owned());
        let below = |folder: &Path| {
            let folder = real(folder).unwrap_or_else(|| folder.to_owned());
            path.starts_with(folder)
        };
        if self.config.is_some_and(below) {
            return false;
        }
        below(self.started) || below(self.work_dir)
    }
}

impl Written<'_> {
    /// What is run.
    pub(crate) fn line(&self, folders: Folders<'_>) -> Line {
        let mut code = self.code();
        if self.loads_by_environment() {
            code.is_from_folder = true;
        }
        // Whoever names a command line for this run means the folder they are in.
        let is_vouched = match self.whose {
            Whose::Typed => true,
            Whose::Named => folders.has(self.base),
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
            arguments: Vec::new(),
            reasons: Vec::new(),
            problem: None,
            dir,
        };
        for (at, word) in self.arguments.iter().enumerate() {
            let is_code = at < code.rest;
            let (before, path) = parted(word);
            let placed = self.placed(path, is_code, &line.dir, folders);
            if placed.is_none() && line.dir != folders.work_dir {
                line.problem = line.problem.or_else(|| self.elsewhere(path, folders));
            }
            let argument = match placed {
                Some(placed) => format!("{before}{}", placed.display()),
                None => word.clone(),
            };
            let (_, path) = parted(&argument);
            let found = line.dir.join(path);
            let counts = match is_code {
                true => super::is_file(&found) || found.is_dir() && names_a_path(path),
                false => super::is_file(&found),
            };
            let is_named = self.whose == Whose::Named && Path::new(parted(word).1).is_absolute();
            if counts && !is_named && folders.has(&found) {
                line.reasons.push(format!("{word} is in this folder"));
            }
            line.arguments.push(argument);
        }
        if self.whose != Whose::Named && self.program.is_absolute() && folders.has(self.program) {
            line.reasons
                .push("the program is in this folder".to_owned());
        }
        let values = self.environment.values.iter();
        for (name, value) in values.filter(|(_, value)| !value.is_empty()) {
            let found = line.dir.join(value);
            if super::is_file(&found) && folders.has(&found) {
                line.reasons
                    .push(format!("{name} names a file in this folder"));
            }
        }
        if code.is_from_folder && folders.has(&line.dir) {
            line.reasons
                .push("it may load code from this folder, where it runs".to_owned());
        }
        if is_vouched {
            line.reasons.clear();
        }
        line
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
        let is_dots = ["", ".", "..", "./", "../"].contains(&path);
        let is_elsewhere = dir != folders.work_dir;
        if is_dots {
            // To work on: a server of files is given the folder that is worked in.
            let meant = folders.work_dir.join(path);
            return (!is_code && is_elsewhere).then(|| plain(&meant));
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

    /// Whether a variable makes an interpreter load code from the folder it runs in.
    fn loads_by_environment(&self) -> bool {
        let given = self.environment.values.iter().cloned();
        let passed = self.environment.names.iter();
        let passed = passed.filter_map(|name| Some((name.clone(), env::text(name)?)));
        given.chain(passed).any(|(name, value)| {
            let is_list = !name.ends_with("OPTIONS") && !name.ends_with("OPT");
            let is_relative = match is_list {
                true => value.split(':').any(|part| !part.starts_with('/')),
                false => value
                    .split([' ', '=', '\t'])
                    .any(|part| part.contains(['/', '.']) && !part.starts_with('/')),
            };
            LOADERS.contains(&name.as_str()) && !value.is_empty() && is_relative
        })
    }

    fn code(&self) -> Code {
        let from = self.dir.unwrap_or(self.base);
        let named = code_of(&name_of(self.program), self.arguments, from);
        // A link may have a harmless name.
        let real = real(self.program).filter(|_| self.program.is_absolute());
        let really = real.map(|real| code_of(&name_of(&real), self.arguments, from));
        match really {
            Some(really) if really.is_from_folder => really,
            Some(really) if !named.is_from_folder => Code {
                rest: named.rest.max(really.rest),
                ..named
            },
            _ => named,
        }
    }
}

/// Which words are code for a program of this name.
fn code_of(name: &str, arguments: &[String], from: &Path) -> Code {
    let unknown = Code {
        is_from_folder: true,
        rest: arguments.len(),
    };
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    for launcher in LAUNCHERS {
        let Some((program, first)) = launcher.split_first() else {
            continue;
        };
        if name == *program && words.starts_with(first) {
            let flags = words.iter().skip(first.len());
            let flags = flags.take_while(|word| QUIET.contains(word)).count();
            let at = first.len() + flags;
            let is_package = |word: &&str| {
                let plain = word.strip_prefix('@').unwrap_or(word);
                !word.starts_with(['-', '.', '/', '~'])
                    && !word.contains(':')
                    && (plain.len() < word.len() || !plain.contains('/'))
                    && !RUNNERS.contains(word)
                    && !INTERPRETERS.contains(word)
            };
            return match words.get(at).filter(|word| is_package(word)) {
                Some(_) => Code {
                    rest: at + 1,
                    ..unknown
                },
                None => unknown,
            };
        }
    }
    let is_compose = ["docker", "podman"].contains(&name) && words.first() == Some(&"compose");
    if RUNNERS.contains(&name) || is_compose {
        return unknown;
    }
    if !INTERPRETERS.contains(&name) {
        return Code {
            is_from_folder: false,
            rest: 0,
        };
    }
    let is_harmless = |word: &&&str| {
        let number = word
            .strip_prefix("--")
            .and_then(|word| word.split_once('='));
        let is_number = number.is_some_and(|(_, value)| {
            !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
        });
        HARMLESS.contains(*word) || is_number
    };
    let at = words.iter().take_while(is_harmless).count();
    match words.get(at) {
        Some(script) if !script.starts_with('-') && super::is_file(&from.join(script)) => Code {
            is_from_folder: false,
            rest: at + 1,
        },
        _ => unknown,
    }
}

/// `python` for `/usr/bin/python3.12`.
fn name_of(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let name = name.to_ascii_lowercase();
    let name = name.strip_suffix(".exe").unwrap_or(&name);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    match bare.is_empty() {
        true => name.to_owned(),
        false => bare.to_owned(),
    }
}

/// What stands before a path in a word, and the path: `--script=` and `./tool.py`.
fn parted(word: &str) -> (&str, &str) {
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

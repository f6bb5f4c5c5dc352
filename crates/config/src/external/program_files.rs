//! The files of a configured program that are pinned when the user trusts it.

use super::command::{
    CodeSource, assignments, code_source, is_loader, may_be_script, may_run_code, paths_in_text,
    paths_of_argument, paths_of_value,
};
use super::is_file;
use haft::ops::beneath;
use std::path::{Path, PathBuf};

/// Endings that interpreters add to the name of a module.
const ENDINGS: [&str; 12] = [
    "js", "mjs", "cjs", "json", "node", "ts", "mts", "cts", "py", "rb", "lua", "php",
];

/// Files that interpreters run if they are given a folder, or find one in their search path.
const IN_FOLDER: [&str; 9] = [
    "sitecustomize.py",
    "usercustomize.py",
    "__main__.py",
    "__init__.py",
    "package.json",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
];

/// Maximum number of words in a text that are looked up as paths.
const MAX_WORDS: usize = 200;

/// The files of a program, as far as haft knows them.
pub(super) struct ProgramFiles {
    pub(super) files: Vec<PathBuf>,
    /// Whether the code that runs first is one of them, rather than found by its name.
    has_code: bool,
}

/// A program with its arguments and environment.
pub(super) struct ProgramWords<'a> {
    pub(super) program: &'a Path,
    /// The program that was found by that name.
    pub(super) located: &'a Path,
    pub(super) arguments: &'a [String],
    /// Its environment variables that the configuration sets.
    pub(super) variables: Vec<(&'a str, &'a str)>,
    /// Folders in which the program or its configuration would find its files. The first
    /// one is the folder it runs in.
    pub(super) folders: Vec<&'a Path>,
}

impl ProgramFiles {
    /// Warns that a change of the code may go unnoticed.
    pub(super) fn remark(&self) -> Option<String> {
        let remark = match (self.files.is_empty(), self.has_code) {
            (true, _) => "its files are unknown, so changes go unnoticed",
            (false, false) => "its code may load other files; changes to those go unnoticed",
            (false, true) => return None,
        };
        Some(remark.to_owned())
    }
}

impl ProgramWords<'_> {
    /// Returns the files that belong to the program: itself, and files named by its
    /// arguments and variables.
    pub(super) fn files(&self) -> ProgramFiles {
        let mut files = Vec::new();
        add(&mut files, self.program.to_owned());
        let words = self
            .arguments
            .iter()
            .flat_map(|word| paths_of_argument(word));
        for path in words.flat_map(|word| self.paths(word)) {
            add(&mut files, path);
        }
        let own = self.folders.first().copied().unwrap_or(Path::new("/"));
        let texts = self.arguments.iter().flat_map(|word| paths_in_text(word));
        for path in texts.take(MAX_WORDS).flat_map(|word| self.paths(word)) {
            add(&mut files, path);
        }
        let set = assignments(self.arguments);
        let variables: Vec<(&str, &str)> = self.variables.iter().copied().chain(set).collect();
        for (name, value) in &variables {
            let paths = paths_of_value(value).chain(paths_in_text(value));
            for path in paths.take(MAX_WORDS).map(|path| plain(&own.join(path))) {
                if is_loader(name) {
                    for file in candidates(path.clone()) {
                        add(&mut files, file);
                    }
                }
                add(&mut files, path);
            }
        }
        let source = code_source(self.program, self.located, self.arguments);
        let is_pinned = |path: &PathBuf| files.contains(path);
        let has_code = match source {
            CodeSource::Program => is_pinned(&self.program.to_owned()),
            CodeSource::File(at) => {
                let word = self.arguments.get(at);
                word.is_some_and(|word| is_pinned(&plain(&own.join(word))))
            }
            CodeSource::Text(_) | CodeSource::Unknown => false,
        };
        let mut variables = variables.iter();
        let is_steered = self.arguments.iter().any(|word| may_be_script(word))
            || variables.any(|(name, value)| may_run_code(name, value));
        for path in self.modules(source) {
            add(&mut files, path);
        }
        add_interpreters(&mut files, own);
        ProgramFiles {
            files,
            has_code: has_code && !is_steered,
        }
    }

    /// Returns the paths that a word may mean.
    fn paths(&self, word: &str) -> Vec<PathBuf> {
        let folders = self.folders.iter();
        folders.map(|folder| plain(&folder.join(word))).collect()
    }

    /// Returns the files that an interpreter may load for a module, a folder, or the names
    /// in a text.
    fn modules(&self, source: CodeSource) -> Vec<PathBuf> {
        let (at, count) = match source {
            CodeSource::File(at) => (at, 1),
            CodeSource::Text(at) => (at, 2),
            CodeSource::Program | CodeSource::Unknown => (0, 0),
        };
        let texts = self.arguments.iter().skip(at).take(count);
        let words = texts.flat_map(|text| paths_of_argument(text).chain(paths_in_text(text)));
        // `python3 -m package.module`
        let as_path = |word: &str| match word.contains('/') || word.starts_with('.') {
            true => word.to_owned(),
            false => word.replace('.', "/"),
        };
        let words = words.flat_map(|word| [word.to_owned(), as_path(word)]);
        let words: Vec<String> = words.take(MAX_WORDS).collect();
        let paths = words.iter().flat_map(|word| self.paths(word));
        paths.flat_map(candidates).collect()
    }
}

/// Returns the files that an interpreter may load if it is given this path.
fn candidates(path: PathBuf) -> Vec<PathBuf> {
    let with_ending = |ending: &&str| {
        let mut name = path.clone().into_os_string();
        name.push(".");
        name.push(ending);
        PathBuf::from(name)
    };
    let mut all: Vec<PathBuf> = ENDINGS.iter().map(with_ending).collect();
    all.extend(IN_FOLDER.iter().map(|name| path.join(name)));
    all.push(path);
    all
}

fn add(files: &mut Vec<PathBuf>, path: PathBuf) {
    if path.is_absolute() && is_file(&path) && !files.contains(&path) {
        files.push(path);
    }
}

/// Removes `.` components.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

/// Adds the interpreters named in the first lines of scripts, unless they are system
/// programs.
pub(super) fn add_interpreters(files: &mut Vec<PathBuf>, work_dir: &Path) {
    let mut at = 0;
    while let Some(script) = files.get(at) {
        at += 1;
        let Some(line) = first_line(script) else {
            continue;
        };
        for word in line.split_whitespace() {
            let path = work_dir.join(word);
            let is_system = ["/usr/", "/bin/", "/sbin/"]
                .iter()
                .any(|system| path.starts_with(system));
            if word.contains('/')
                && !is_system
                && is_file(&path)
                && !files.contains(&path)
                && at < 20
            {
                files.push(path);
            }
        }
    }
}

/// Returns the text after `#!` in the first line of a script.
pub(super) fn first_line(script: &Path) -> Option<String> {
    let mut begin = [0; 256];
    let read = beneath::open(script).ok()?.begin(&mut begin).ok()?;
    let text = String::from_utf8_lossy(begin.get(..read).unwrap_or_default());
    Some(text.strip_prefix("#!")?.lines().next()?.to_owned())
}

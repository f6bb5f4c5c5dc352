//! Paths of a session: the work folder, additional roots, and protected paths.

use super::sources::{Given, Origin, Sources, in_layer};
use super::{Notes, joined};
use crate::broad_folders;
use crate::environment::Environment;
use crate::failure::Failure;
use crate::flags::Flags;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Paths of a session.
#[derive(Debug)]
pub struct Paths {
    /// The folder that the session works in.
    pub work_dir: PathBuf,
    /// Whether the user chose that folder.
    pub folder_choice: FolderChoice,
    /// The folder the user works in, unless a project's file moves it.
    pub started: PathBuf,
    /// The process's current folder, if `--dir` or `HAFT_DIR` names another one. Its code
    /// is no more trusted than the project's.
    pub(crate) current: Option<PathBuf>,
    /// Additional folders with the rights of the work folder.
    pub roots: Vec<PathBuf>,
    /// Paths in `tools.protect`, and every file that could be a configuration file.
    pub protect: Vec<PathBuf>,
    /// Whether `tools.protect` lists anything.
    pub protects: bool,
    environment: Environment,
}

impl Paths {
    /// Reads the settings. `start` is the folder to start in, `current` that of the process.
    pub(crate) fn load(
        sources: &Sources,
        start: (PathBuf, Origin),
        current: &Path,
        home: Option<&Path>,
        notes: &mut Notes,
    ) -> Result<Self, Failure> {
        let started = start.0.clone();
        let (work_dir, folder_choice) = work_dir(sources, start, home, notes)?;
        let roots = roots(sources, home, notes)?;
        let mut bases = vec![work_dir.as_path()];
        if started != work_dir {
            bases.push(&started);
        }
        let mut protect = protect(sources, &bases, home, notes)?;
        let protects = !protect.is_empty();
        // A tool that could write configuration files would decide what the next session
        // allows.
        protect.extend(sources.searched_files.iter().cloned());
        Ok(Self {
            current: is_another_project(current, &started, &sources.environment)
                .then(|| current.to_owned()),
            work_dir,
            folder_choice,
            started,
            roots,
            protect,
            protects,
            environment: sources.environment.clone(),
        })
    }

    /// Checks that tools may use the work folder.
    ///
    /// # Errors
    /// If it is a home folder or a system folder and the user did not choose it.
    pub fn open_to_tools(&self) -> Result<(), Failure> {
        match broad_folders::describe(&self.work_dir, &self.environment) {
            Some(description) if self.folder_choice == FolderChoice::Default => {
                Err(broad_folders::refusal(&self.work_dir, description))
            }
            _ => Ok(()),
        }
    }

    /// Returns the project's folder: the one haft was started in. If that is a home
    /// folder or `/` and the user chose another folder to work in, it is the work folder.
    pub(crate) fn project(&self) -> &Path {
        let is_elsewhere =
            self.folder_choice == FolderChoice::User && self.started != self.work_dir;
        if is_elsewhere && broad_folders::holds_home(&self.started, &self.environment) {
            &self.work_dir
        } else {
            &self.started
        }
    }
}

/// A path from the configuration.
#[derive(Debug)]
struct NamedPath {
    path: PathBuf,
    /// The path, or its text in the file if that contains variables.
    shown: String,
}

impl NamedPath {
    fn new(path: PathBuf, value: &str, written: &str) -> Self {
        let shown = if value == written {
            path.to_string_lossy().into_owned()
        } else {
            written.to_owned()
        };
        Self { path, shown }
    }
}

/// Whether the user chose the work folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderChoice {
    /// The user, with a flag, a variable or their own file.
    User,
    /// The folder haft was started in, or one set in a project's file.
    Default,
}

/// Returns the folder in `--dir` or `HAFT_DIR`, or the current folder.
pub(crate) fn start_folder(
    flags: &Flags,
    environment: &Environment,
) -> Result<(PathBuf, Origin), Failure> {
    let current = environment.current_folder()?;
    let (given, from) = match (&flags.dir, environment.variable("HAFT_DIR")) {
        (Some(dir), _) => (dir.clone(), Origin::Flag("--dir")),
        (None, Some(dir)) => (PathBuf::from(dir), Origin::Variable("HAFT_DIR")),
        (None, None) => return Ok((current, Origin::Default)),
    };
    let dir = current.join(&given);
    if dir.is_dir() {
        Ok((dir, from))
    } else {
        Err(Failure::usage(format!(
            "{from}: folder not found: {}",
            given.display()
        )))
    }
}

/// Whether the current folder is another project than the one to work in. Clients often
/// start haft in `/` or the home folder, which do not count as projects.
fn is_another_project(current: &Path, started: &Path, environment: &Environment) -> bool {
    let real = |path| haft::ops::scope::real(path);
    real(current) != real(started) && broad_folders::describe(current, environment).is_none()
}

/// Returns the work folder and who chose it.
fn work_dir(
    sources: &Sources,
    (start, from): (PathBuf, Origin),
    home: Option<&Path>,
    notes: &mut Notes,
) -> Result<(PathBuf, FolderChoice), Failure> {
    let given = match from {
        Origin::Default => sources.first(|file| &file.tools.work_dir)?,
        _ => None,
    };
    let (dir, from, choice) = match given {
        Some(given) => {
            let dir = resolve(given.folder(), &given.value, given.text(), home);
            let dir = dir.map_err(|what| given.wrong(&what))?;
            let dir = usable(&given, &dir, &sources.environment)?;
            let choice = match given.is_project() {
                true => FolderChoice::Default,
                false => FolderChoice::User,
            };
            (
                NamedPath::new(dir, &given.value, given.text()),
                given.from,
                choice,
            )
        }
        None => {
            let choice = match from {
                Origin::Default => FolderChoice::Default,
                _ => FolderChoice::User,
            };
            (NamedPath::new(start, "", ""), from, choice)
        }
    };
    notes.show_value("tools.work_dir", dir.shown.into(), from.to_string());
    Ok((dir.path, choice))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the work folder is checked before a scope exists"
)]
fn usable(
    given: &Given<'_, String>,
    dir: &Path,
    environment: &Environment,
) -> Result<PathBuf, Failure> {
    let written = given.text();
    let real = std::fs::canonicalize(dir).ok().filter(|real| real.is_dir());
    let Some(real) = real else {
        return Err(given.wrong(&format!("folder not found: {written}")));
    };
    if given.is_project() {
        // Compare real paths, because a link in the project may lead anywhere.
        let folder = given.folder();
        let project = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        return match real.starts_with(&project) {
            true => Ok(real),
            false => Err(given.wrong(&format!(
                "{written} is outside this folder, which a project's file may not choose"
            ))),
        };
    }
    let folders = environment.folders();
    let mut own = folders.config.iter().chain(&folders.own);
    if own.any(|own| haft::ops::scope::real(own).is_some_and(|own| real.starts_with(own))) {
        let failure = given.wrong(&format!(
            "{written} is in haft's own settings folder, where tools may not work; \
             note that relative paths start from the folder of this file"
        ));
        return Err(
            failure.hint("use an absolute path, or remove work_dir to work in the current folder")
        );
    }
    Ok(real)
}

/// Returns additional folders with the rights of the work folder.
fn roots(
    sources: &Sources,
    home: Option<&Path>,
    notes: &mut Notes,
) -> Result<Vec<PathBuf>, Failure> {
    let (mut roots, mut from) = (Vec::new(), Origin::Default);
    if let Some(given) = sources.first(|file| &file.tools.roots)? {
        for (value, written) in texts(&given) {
            let root = resolve(given.folder(), value, written, home);
            let root = root.map_err(|what| given.wrong(&what))?;
            if !root.is_dir() {
                return Err(given.wrong(&format!("folder not found: {written}")));
            }
            roots.push(NamedPath::new(root, value, written));
        }
        from = given.from;
    }
    notes.show_value("tools.roots", shown(&roots), from.to_string());
    Ok(roots.into_iter().map(|root| root.path).collect())
}

/// Variable that lists protected paths. It comes from the `ah` toolset but applies to
/// all, because a project can choose the toolset and must not remove protection that way.
const PROTECT_VARIABLE: &str = "AH_PROTECT_DIRS";

/// Returns the protected paths: those in all files and in the variable.
fn protect(
    sources: &Sources,
    bases: &[&Path],
    home: Option<&Path>,
    notes: &mut Notes,
) -> Result<Vec<PathBuf>, Failure> {
    let mut places: Vec<NamedPath> = Vec::new();
    let mut add = |place: NamedPath| {
        if !places.iter().any(|known| known.path == place.path) {
            places.push(place);
        }
    };
    let mut origins = Vec::new();
    for layer in &sources.layers {
        let Some(given) = in_layer(layer, |file| &file.tools.protect)? else {
            continue;
        };
        if given.from == Origin::Default {
            continue;
        }
        for (value, written) in texts(&given) {
            let is_there = |base: &&Path| base.join(value).exists();
            if value.contains(['*', '?', '[']) && !bases.iter().any(is_there) {
                let what = format!("must list files and folders, not patterns: \"{written}\"");
                return Err(given.wrong(&what));
            }
            // Relative to every possible work folder: a project that moves the work
            // folder must not remove the user's protection.
            for base in bases {
                let path = resolve(base, value, written, home);
                let path = path.map_err(|what| given.wrong(&what))?;
                add(NamedPath::new(path, value, written));
            }
        }
        origins.push(given.from);
    }
    let from_variable = sources.environment.paths(PROTECT_VARIABLE);
    if !from_variable.is_empty() {
        origins.push(Origin::Variable(PROTECT_VARIABLE));
    }
    for named in from_variable {
        // `~` is expanded here, because no shell does it for variables set in a client's
        // settings.
        let below_home = named.strip_prefix("~").ok().zip(home);
        for base in bases {
            let path = match below_home {
                Some((rest, home)) => home.join(rest),
                None => base.join(&named),
            };
            add(NamedPath::new(path, "", ""));
        }
    }
    notes.show_value("tools.protect", shown(&places), joined(&origins));
    Ok(places.into_iter().map(|place| place.path).collect())
}

/// Returns paths as they are shown, without duplicates: one text may stand for two paths.
fn shown(paths: &[NamedPath]) -> Value {
    let mut shown: Vec<&str> = Vec::new();
    for path in paths {
        if !shown.contains(&path.shown.as_str()) {
            shown.push(&path.shown);
        }
    }
    shown.into()
}

/// Returns the texts of a list that are not empty, each also as written.
fn texts<'a>(given: &'a Given<'_, Vec<String>>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let written = given.written.as_array().into_iter().flatten();
    let written = written.map(|text| text.as_str().unwrap_or_default());
    let values = given.value.iter().map(String::as_str);
    values.zip(written).filter(|(value, _)| !value.is_empty())
}

/// Resolves a path in a configuration file: absolute, below the home folder, or relative
/// to a base.
fn resolve(
    base: &Path,
    value: &str,
    written: &str,
    home: Option<&Path>,
) -> Result<PathBuf, String> {
    let rest = match value.strip_prefix('~') {
        Some("") => "",
        Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
        _ => return Ok(base.join(value)),
    };
    let home = home.map(|home| home.join(rest));
    home.ok_or_else(|| format!("{written} needs a home folder, but HOME is not set"))
}

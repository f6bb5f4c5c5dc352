//! Sources of values, in order of precedence: flag, variable, the project's file (or the
//! one named with `--config`), the user's file, defaults.

use super::file::File;
use super::keys;
use super::layer::{Layer, Role};
use super::node::Node;
use super::reader::FoundValue;
use super::setting::{Setting, Settings};
use super::{Notes, redact, withheld};
use crate::environment::Environment;
use crate::failure::Failure;
use crate::flags::Flags;
use crate::trust::{Item, Trust};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

/// Name of the configuration file, in a work folder and in the user's config folder.
pub const FILE: &str = "haft.yaml";

/// File of a project with MCP servers for several programs.
const SERVERS_FILE: &str = ".mcp.json";

/// Source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag(&'static str),
    Variable(&'static str),
    /// File and line.
    File(String, u64),
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(name) => write!(f, "flag {name}"),
            Self::Variable(name) => write!(f, "variable {name}"),
            Self::File(file, line) => write!(f, "{file}:{line}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value with its source.
#[derive(Debug)]
pub(crate) struct Given<'a, T> {
    pub(crate) value: T,
    /// The value as written, with variables unexpanded. Only this form is shown: a
    /// variable may hold a secret, and the file that uses it may not be the user's.
    pub(crate) written: Value,
    pub(crate) from: Origin,
    layer: &'a Layer,
    found: &'a FoundValue,
}

impl<'a, T> Given<'a, T> {
    fn new(layer: &'a Layer, found: &'a FoundValue, value: T) -> Self {
        Self {
            value,
            written: found.node.plain(),
            from: layer.origin(found),
            layer,
            found,
        }
    }

    /// Returns the value as written, if it is text.
    pub(crate) fn text(&self) -> &str {
        self.written.as_str().unwrap_or_default()
    }

    pub(crate) fn role(&self) -> Role {
        self.layer.role
    }

    /// Whether it is in the file that a project shares with other programs.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_project() && self.layer.file_name() == SERVERS_FILE
    }

    /// Returns the keys that lead to the value, such as `tools.mcp.docs`.
    pub(crate) fn path(&self) -> &str {
        &self.found.path
    }

    pub(crate) fn is_project(&self) -> bool {
        self.role() == Role::Project
    }

    /// Returns the folder that relative paths start from.
    pub(crate) fn folder(&self) -> &'a Path {
        &self.layer.folder
    }

    pub(crate) fn environment(&self) -> &'a Environment {
        &self.layer.environment
    }

    /// Whether variables were expanded.
    pub(crate) fn has_variables(&self) -> bool {
        !self.found.node.variables().is_empty()
    }

    /// Creates an error about this value. It must not contain the value itself, which may
    /// be secret.
    pub(crate) fn wrong(&self, what: &str) -> Failure {
        let message = format!("{}: {what}", self.found.path);
        self.layer.problem(self.found.node.at, &message)
    }

    /// Creates a warning that this value is ignored.
    pub(crate) fn ignored(&self, reason: &str) -> String {
        let value = match &self.written {
            Value::String(text) => format!(" {text}"),
            Value::Number(number) => format!(" {number}"),
            // It may contain secrets.
            _ => String::new(),
        };
        let (from, path) = (&self.from, &self.found.path);
        format!("{from}: {path}{value} is ignored: {reason}")
    }
}

impl<T: Readable> Given<'_, T> {
    /// Returns the value without expanding variables.
    pub(crate) fn literal(self) -> Result<Self, Failure> {
        let value = self.layer.as_written(self.found)?;
        Ok(Self { value, ..self })
    }
}

impl<'a, T> Given<'a, Result<T, Failure>> {
    /// Returns the value or the error from expanding it.
    pub(crate) fn ready(self) -> Result<Given<'a, T>, Failure> {
        Ok(Given {
            value: self.value?,
            written: self.written,
            from: self.from,
            layer: self.layer,
            found: self.found,
        })
    }
}

/// All sources of values.
#[derive(Debug)]
pub(crate) struct Sources {
    /// In order of precedence.
    pub(crate) layers: Vec<Layer>,
    /// Every file that was looked for, whether it exists or not, and the links on the way
    /// to it.
    pub(crate) searched_files: Vec<PathBuf>,
    /// Reasons why files are not used.
    problems: Vec<String>,
    /// Variables and folders of the process.
    pub(crate) environment: Environment,
}

impl Sources {
    /// Reads the files. `folder` is the work folder, unless a file sets another.
    pub(crate) fn read(
        flags: &Flags,
        environment: &Environment,
        current: &Path,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let mut layers = vec![explicit(flags, environment)?];
        let mut searched_files = Vec::new();
        let mut problems = Vec::new();
        let config = environment.folders().config;
        let user = config.map(|folder| folder.join(FILE));
        let named = flags
            .config
            .clone()
            .or_else(|| environment.variable("HAFT_CONFIG").map(PathBuf::from));
        if let Some(named) = named {
            let shown = named.to_string_lossy();
            let path = current.join(&named);
            searched_files.extend(with_links(&path));
            let layer = Layer::load(Role::Named, &path, &shown, environment)?
                .ok_or_else(|| Failure::at(&shown, "file not found"))?;
            layers.push(layer);
        } else {
            let path = folder.join(FILE);
            searched_files.extend(with_links(&path));
            let shown = path
                .strip_prefix(current)
                .unwrap_or(&path)
                .to_string_lossy();
            if user.as_ref() != Some(&path) && !flags.ignore_project {
                layers.extend(Layer::load(Role::Project, &path, &shown, environment)?);
                let servers = folder.join(SERVERS_FILE);
                let shown = servers.strip_prefix(current).unwrap_or(&servers);
                // Other programs write it, so a mistake in it must not stop haft.
                match Layer::load_servers(&servers, &shown.to_string_lossy(), environment) {
                    Ok(layer) => layers.extend(layer),
                    Err(failure) => problems.push(format!("{failure}; the file is ignored")),
                }
            }
        }
        if let Some(user) = user {
            searched_files.extend(with_links(&user));
            let shown = user.to_string_lossy();
            layers.extend(Layer::load(Role::User, &user, &shown, environment)?);
        }
        let defaults = Layer::read(Role::Default, &Node::of(&keys::defaults()), environment);
        layers.push(defaults.map_err(|problem| Failure::failed(problem.to_string()))?);
        Ok(Self {
            layers,
            searched_files,
            problems,
            environment: environment.clone(),
        })
    }

    /// Withholds settings of the project's files that they may not set, and those that use
    /// variables they may not read. Returns the items to trust with which the user could
    /// allow some of them.
    pub(crate) fn withhold(
        &mut self,
        trust: &Trust,
        notes: &mut Notes,
    ) -> Result<Vec<Item>, Failure> {
        for problem in std::mem::take(&mut self.problems) {
            notes.warn(problem);
        }
        let mut items = Vec::new();
        let layers = self.layers.iter_mut();
        for layer in layers.filter(|layer| layer.role == Role::Project) {
            let item = withheld::of_project(layer);
            let is_trusted = item.as_ref().is_some_and(|item| trust.allows(item));
            withheld::withhold(layer, is_trusted, notes)?;
            items.extend(item);
        }
        Ok(items)
    }

    /// Returns the keys, tokens and passwords in the files.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = String> {
        self.layers.iter().flat_map(|layer| {
            let values = layer.values.iter().enumerate();
            let values = values.filter(|(number, _)| !layer.withheld.contains(number));
            values
                .flat_map(|(_, found)| redact::secrets(&found.path, &found.node, &self.environment))
        })
    }

    /// Whether a value of the project's file was withheld.
    pub(crate) fn is_withheld(&self, path: &str) -> bool {
        self.project().is_some_and(|layer| {
            let mut values = layer.values.iter().enumerate();
            values.any(|(number, found)| found.path == path && layer.withheld.contains(&number))
        })
    }

    /// Returns the project's file, if there is one.
    pub(crate) fn project(&self) -> Option<&Layer> {
        self.layers.iter().find(|layer| layer.role == Role::Project)
    }

    /// Returns the value of a key with the highest precedence.
    pub(crate) fn first<T: Readable>(
        &self,
        pick: Pick<T>,
    ) -> Result<Option<Given<'_, T>>, Failure> {
        self.in_layers(pick, |_| true)
    }

    /// Returns the value of a key that has a default, and shows it.
    pub(crate) fn shown<T: Readable>(
        &self,
        key: &'static str,
        pick: Pick<T>,
        notes: &mut Notes,
    ) -> Result<Given<'_, T>, Failure> {
        let given = self.first(pick)?;
        let given = given.ok_or_else(|| Failure::failed(format!("{key} has no default")))?;
        notes.show(key, &given);
        Ok(given)
    }

    /// Returns the user's value and the project's. A flag or a variable overrides the
    /// project's.
    #[expect(clippy::type_complexity, reason = "the same type twice")]
    pub(crate) fn apart<T: Readable>(
        &self,
        pick: Pick<T>,
    ) -> Result<(Option<Given<'_, T>>, Option<Given<'_, T>>), Failure> {
        let person = self.in_layers(pick, |role| role != Role::Project)?;
        match &person {
            Some(given) if given.role() == Role::Explicit => Ok((person, None)),
            _ => Ok((person, self.in_layers(pick, |role| role == Role::Project)?)),
        }
    }

    /// Returns the user's value, or the project's if it is stricter, and shows it. Warns
    /// with this reason if the project's is looser.
    pub(crate) fn stricter<T: Readable>(
        &self,
        key: &'static str,
        pick: Pick<T>,
        strictness: impl Fn(&T) -> f64,
        notes: &mut Notes,
        reason: Option<&str>,
    ) -> Result<Option<T>, Failure> {
        let given = match self.apart(pick)? {
            (Some(person), Some(project)) => {
                let (own, theirs) = (strictness(&person.value), strictness(&project.value));
                if let (true, Some(reason)) = (theirs < own, reason) {
                    notes.warn(project.ignored(reason));
                }
                Some(if theirs > own { project } else { person })
            }
            (person, project) => person.or(project),
        };
        if let Some(given) = &given {
            notes.show(key, given);
        }
        Ok(given.map(|given| given.value))
    }

    /// Returns the settings of a list or a map in all files, in order of precedence, with
    /// their names. Each is expanded separately, so that an unset variable invalidates only
    /// its own.
    pub(crate) fn all<T: Readable, const NAMED: bool>(
        &self,
        pick: fn(&File) -> &Settings<T, NAMED>,
    ) -> Result<Vec<Entry<'_, T>>, Failure> {
        let layers = self.layers.iter();
        layers
            .flat_map(|layer| entries(layer, pick(&layer.file)))
            .collect()
    }

    /// Returns a value of the project's file as written.
    pub(crate) fn of_project<T>(&self, pick: Pick<T>) -> Option<Value> {
        let layer = self.project()?;
        let found = layer.found(pick(&layer.file).as_ref()?)?;
        Some(found.node.plain())
    }

    fn in_layers<T: Readable>(
        &self,
        pick: Pick<T>,
        admit: impl Fn(Role) -> bool,
    ) -> Result<Option<Given<'_, T>>, Failure> {
        for layer in self.layers.iter().filter(|layer| admit(layer.role)) {
            if let Some(given) = in_layer(layer, pick)? {
                return Ok(Some(given));
            }
        }
        Ok(None)
    }
}

/// Chooses a key.
pub(crate) type Pick<T> = fn(&File) -> &Option<Setting<T>>;

/// The name of a setting in a map, and its value or the error from expanding it.
pub(crate) type Entry<'a, T> = (&'a str, Given<'a, Result<T, Failure>>);

/// The type of a setting.
pub(crate) trait Readable: for<'a> Deserialize<'a> + 'static {}

impl<T: for<'a> Deserialize<'a> + 'static> Readable for T {}

/// Returns the settings of a list or a map in one file, as [`Sources::all`] does.
pub(crate) fn entries<'a, T: Readable, const NAMED: bool>(
    layer: &'a Layer,
    settings: &'a Settings<T, NAMED>,
) -> impl Iterator<Item = Result<Entry<'a, T>, Failure>> {
    settings.0.iter().filter_map(|(name, setting)| {
        let found = layer.found(setting)?;
        let value = match layer.expanded(found) {
            Ok(node) => layer.read_node(&found.path, &node).map(Ok),
            Err(unset) => Ok(Err(unset)),
        };
        Some(value.map(|value| (name.as_str(), Given::new(layer, found, value))))
    })
}

/// Returns the value of a key in one file.
pub(crate) fn in_layer<T: Readable>(
    layer: &Layer,
    pick: Pick<T>,
) -> Result<Option<Given<'_, T>>, Failure> {
    let setting = pick(&layer.file).as_ref();
    let Some(found) = setting.and_then(|setting| layer.found(setting)) else {
        return Ok(None);
    };
    Ok(Some(Given::new(layer, found, layer.value(found)?)))
}

/// Reads the flags and variables that set keys, as if they were a file.
fn explicit(flags: &Flags, environment: &Environment) -> Result<Layer, Failure> {
    let mut file = json!({});
    let (mut origins, mut texts) = (BTreeMap::new(), BTreeMap::new());
    for key in keys::keys() {
        let flag = key.flag();
        let flag = flag.and_then(|name| Some((flags.text(name)?, Origin::Flag(name))));
        let variable = || {
            let name = key.variable()?;
            Some((environment.text(name)?, Origin::Variable(name)))
        };
        if let Some((text, origin)) = flag.or_else(variable) {
            key.set(&mut file, key.parse(&text));
            origins.insert(key.path(), origin);
            texts.insert(key.path(), text);
        }
    }
    let layer = Layer::read(Role::Explicit, &Node::of(&file), environment).map_err(|problem| {
        let source = match origins.get(problem.path()) {
            Some(Origin::Flag(name) | Origin::Variable(name)) => name,
            _ => "",
        };
        let text = texts.get(problem.path()).map_or("", String::as_str);
        let Some(expected) = problem.expected() else {
            let problem = problem.to_string();
            let what = problem.strip_prefix("network ").unwrap_or(&problem);
            return Failure::usage(format!("{source} {what}"));
        };
        Failure::usage(format!("{source} must be {expected}, got \"{text}\""))
    })?;
    Ok(Layer { origins, ..layer })
}

/// Returns a path and all links it leads through.
fn with_links(path: &Path) -> Vec<PathBuf> {
    let mut all = vec![path.to_owned()];
    let mut path = path.to_owned();
    // The kernel's limit.
    for _ in 0..40 {
        let (Ok(target), Some(folder)) = (std::fs::read_link(&path), path.parent()) else {
            break;
        };
        path = folder.join(target);
        all.push(path.clone());
    }
    all
}

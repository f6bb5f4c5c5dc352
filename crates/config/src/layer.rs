//! One configuration file, read and checked. Every value in it is expanded here, so that
//! nothing gets a value that was withheld.

use super::file::File;
use super::node::{self, Content, Node, Position};
use super::reader::{self, FoundValue, Problem, Values};
use super::setting::Setting;
use super::sources::{Origin, Readable};
use super::{read, redact};
use crate::environment::Environment;
use crate::failure::Failure;
use haft::ops::text::decode::visible;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Owner of a file, which decides what it may set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Flags and variables of this run, in the form of a file.
    Explicit,
    /// The project's, in the work folder; it can only tighten.
    Project,
    /// The user's own, for all folders.
    User,
    /// Named with `--config` for this run; has the rights of the user's own file and
    /// takes precedence over it.
    Named,
    /// The defaults, in the form of a file.
    Default,
}

/// Values of one file.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) role: Role,
    /// Name of the file in messages.
    pub(crate) shown: String,
    /// Folder that relative paths start from.
    pub(crate) folder: PathBuf,
    pub(crate) file: File,
    /// The settings of `file`, by number.
    pub(crate) values: Vec<FoundValue>,
    /// Numbers of values that use variables which the file may not read, or that the file
    /// may not set.
    pub(crate) withheld: BTreeSet<usize>,
    /// Text of the file.
    pub(crate) text: String,
    /// For [`Role::Explicit`], the flag or variable of each value by its path.
    pub(crate) origins: BTreeMap<String, Origin>,
    /// Values of variables.
    pub(crate) environment: Environment,
}

/// Whether a project's file is a link out of the project. Reading it would show the
/// target's content in error messages.
fn leads_out(path: &Path) -> bool {
    let folder = path.parent();
    folder.is_some_and(|folder| haft::ops::beneath::real_within(folder, path).is_err())
}

impl Layer {
    /// Reads a file; `None` if it does not exist.
    pub(crate) fn load(
        role: Role,
        path: &Path,
        shown: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, Failure> {
        let shown = visible(shown);
        match Self::text(role, path, &shown)? {
            Some(text) => Self::parse(role, path, &shown, text, environment).map(Some),
            None => Ok(None),
        }
    }

    /// Reads the MCP servers in a project's `.mcp.json`; `None` if it has none. It belongs to
    /// other programs too, so nothing else in it counts.
    pub(crate) fn load_servers(
        path: &Path,
        shown: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, Failure> {
        let shown = visible(shown);
        let Some(text) = Self::text(Role::Project, path, &shown)? else {
            return Ok(None);
        };
        let mut root =
            node::parse(&text).map_err(|malformed| syntax_error(&malformed, &shown, &text))?;
        if let Content::Map(entries) = &mut root.content {
            entries.retain(|(name, _)| name.text == "mcpServers");
        }
        Self::of_root(Role::Project, path, &shown, text, &root, environment).map(Some)
    }

    /// Reads the text of a file; `None` if it does not exist.
    fn text(role: Role, path: &Path, shown: &str) -> Result<Option<String>, Failure> {
        if role == Role::Project && leads_out(path) {
            return Err(Failure::at(
                shown,
                "is a link that leads out of this folder",
            ));
        }
        // Open exactly the file that was checked: a link that appears now is not
        // followed.
        let real = match role {
            Role::Project => haft::ops::scope::real(path),
            _ => None,
        };
        let follow = match real {
            Some(_) => read::Links::Refused,
            None => read::Links::Followed,
        };
        read::read(real.as_deref().unwrap_or(path), shown, follow)
    }

    /// Parses and checks the text of a file.
    pub(crate) fn parse(
        role: Role,
        path: &Path,
        shown: &str,
        text: String,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let root =
            node::parse(&text).map_err(|malformed| syntax_error(&malformed, shown, &text))?;
        Self::of_root(role, path, shown, text, &root, environment)
    }

    fn of_root(
        role: Role,
        path: &Path,
        shown: &str,
        text: String,
        root: &Node,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let place = |at: Position| format!("{shown}:{}:{}", at.line, at.column);
        if !root.is_null() && !matches!(root.content, Content::Map(_)) {
            let message = format!("the file must be a map of settings, got {}", root.kind());
            return Err(Failure::at(&place(root.at), &message));
        }
        let folder = path.parent().map(Path::to_owned).unwrap_or_default();
        let layer = Self::read(role, root, environment).map_err(|problem| {
            let at = problem.at.unwrap_or(root.at);
            Failure::at(&place(at), &problem.to_string())
        })?;
        Ok(Self {
            shown: shown.to_owned(),
            folder,
            text,
            ..layer
        })
    }

    /// Reads the settings in a tree.
    pub(crate) fn read(
        role: Role,
        root: &Node,
        environment: &Environment,
    ) -> Result<Self, Problem> {
        let values = Values::default();
        let file = match root.is_null() {
            true => File::default(),
            false => reader::read(root, "", &values)?,
        };
        Ok(Self {
            role,
            file,
            values: values.into_inner(),
            shown: String::new(),
            folder: PathBuf::new(),
            withheld: BTreeSet::new(),
            text: String::new(),
            origins: BTreeMap::new(),
            environment: environment.clone(),
        })
    }

    /// Returns the name of the file without its folder.
    pub(crate) fn file_name(&self) -> &str {
        self.shown.rsplit('/').next().unwrap_or_default()
    }

    /// Returns a value, unless it is withheld.
    pub(crate) fn found<T>(&self, setting: &Setting<T>) -> Option<&FoundValue> {
        match self.withheld.contains(&setting.number) {
            true => None,
            false => self.values.get(setting.number),
        }
    }

    /// Expands the variables in a value and reads it.
    pub(crate) fn value<T: Readable>(&self, found: &FoundValue) -> Result<T, Failure> {
        self.read_node(&found.path, &self.expanded(found)?)
    }

    /// Reads a value without expanding variables.
    pub(crate) fn as_written<T: Readable>(&self, found: &FoundValue) -> Result<T, Failure> {
        self.read_node(&found.path, &found.node)
    }

    /// Expands the variables in a value.
    pub(crate) fn expanded(&self, found: &FoundValue) -> Result<Node, Failure> {
        // Text that the user typed is meant literally.
        if self.role == Role::Explicit {
            return Ok(found.node.clone());
        }
        let lookup = |name: &str| self.environment.text(name);
        found.node.expanded(&lookup).map_err(|(at, variable)| {
            let path = &found.path;
            self.problem(
                at,
                &format!("{path} needs variable {variable}, which is not set"),
            )
        })
    }

    pub(crate) fn read_node<T: Readable>(&self, path: &str, node: &Node) -> Result<T, Failure> {
        reader::read(node, path, &Values::default())
            .map_err(|problem| self.problem(problem.at.unwrap_or(node.at), &problem.to_string()))
    }

    /// Returns the origin of a value.
    pub(crate) fn origin(&self, found: &FoundValue) -> Origin {
        match (self.role, self.origins.get(&found.path)) {
            (Role::Default, _) => Origin::Default,
            (_, Some(origin)) => origin.clone(),
            (_, None) => Origin::File(self.shown.clone(), found.node.at.line),
        }
    }

    /// Creates an error at a position in the file.
    pub(crate) fn problem(&self, at: Position, message: &str) -> Failure {
        let place = format!("{}:{}:{}", self.shown, at.line, at.column);
        Failure::at(&place, message)
    }
}

/// Creates an error that also shows the line, which a parser's message needs to be
/// understood.
fn syntax_error(malformed: &node::Malformed, shown: &str, text: &str) -> Failure {
    let mut failure = malformed.failure(shown);
    let Some(at) = malformed.at else {
        return failure;
    };
    let index = usize::try_from(at.line.saturating_sub(1)).unwrap_or(usize::MAX);
    if let Some(line) = text.lines().nth(index) {
        let (line, hidden) = redact::source_line(line);
        let number = at.line.to_string();
        failure.message.push_str(&format!("\n {number} | {line}"));
        if !hidden && at.column < 120 {
            let column = usize::try_from(at.column.saturating_sub(1)).unwrap_or_default();
            // Tabs are kept, so that the caret is below the right column.
            let before = line.chars().take(column);
            let before: String = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let margin = " ".repeat(number.len());
            failure
                .message
                .push_str(&format!("\n {margin} | {before}^"));
        }
    }
    failure
}

//! Reads a `tools` folder: Lua modules, and programs with a Markdown page.

use super::command::Folders;
use super::lua_names as lua;
use super::page::{self, Page};
use crate::Settings;
use crate::plugins::AddedVariables;
use crate::trust::{Item, Pin};
use haft::ops::beneath;
use haft::ops::scope::real;
use haft::ops::text::decode::visible;
use haft::{Check, Definition, Executable, Installer, Plugin, Takes};
use std::path::{Path, PathBuf};

/// Maximum number of tools in a folder.
const MAX_TOOLS: usize = 500;

/// Maximum number of files that are examined.
const MAX_FILES: usize = 20_000;

/// Maximum size of a module or a page in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Owner of a `tools` folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tier {
    User,
    Project,
}

/// A tool in a folder.
#[derive(Debug, Clone)]
pub(crate) struct FoundTool {
    pub(crate) name: String,
    pub(crate) tier: Tier,
    /// Path in messages.
    pub(crate) shown: String,
    pub(super) path: PathBuf,
    /// Folder that a project's tools may not lead out of.
    root: PathBuf,
    kind: ToolKind,
    page: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolKind {
    Lua,
    Program,
}

impl FoundTool {
    /// Explains why a tool of the user's is not used here: it is a link to something that
    /// the project or a command may have written.
    pub(super) fn link_problem(&self, folders: Folders<'_>) -> Option<String> {
        if self.tier == Tier::Project {
            return None;
        }
        let files = self.files();
        let place = files.iter().find_map(|file| folders.place(file));
        place.map(|place| {
            format!(
                "skipped {}: it is a link to something that is {place}; to use it, replace the link \
                 by a copy of the file",
                visible(&self.shown)
            )
        })
    }
}

/// A tool that is ready to be added to a session.
pub(crate) enum BuiltTool {
    Lua(Box<Plugin>),
    Program(Box<Executable>),
}

/// Returns the tools in `tools`, sorted by name, and problems with the others. Only file
/// names and metadata are read, and nothing is run. A project's tools must be inside the
/// project, because a link could lead to something secret.
#[expect(
    clippy::disallowed_methods,
    reason = "programs are checked before a scope exists"
)]
pub(crate) fn look(root: &Path, tier: Tier, settings: &Settings) -> (Vec<FoundTool>, Vec<String>) {
    let (mut found, mut problems): (Vec<FoundTool>, Vec<String>) = (Vec::new(), Vec::new());
    let written = &root.join("tools");
    // The user's folder may be a link, for example into a repository of settings. The
    // sandbox does not contain the link, so programs are run from its target.
    let led = real(written).filter(|_| tier == Tier::User);
    let folder = led.as_deref().unwrap_or(written);
    let Ok(entries) = std::fs::read_dir(folder) else {
        return (found, problems);
    };
    let secrets = match tier {
        Tier::Project => Vec::new(),
        Tier::User => secret_places(settings),
    };
    let leads_out = |path: &Path, shown: &str| -> Option<String> {
        let why = match tier {
            Tier::Project => beneath::real_within(root, path).err()?.to_string(),
            Tier::User => {
                let led = real(path)?;
                let is_secret = secrets.iter().any(|secret| led.starts_with(secret));
                is_secret
                    .then(|| "it leads to a secret place, which no tool may read".to_owned())?
            }
        };
        Some(format!(
            "skipped {shown}: {why}; to use it, replace the link by a copy of the file"
        ))
    };
    let shown = match tier {
        Tier::Project => "tools".to_owned(),
        Tier::User => visible(&written.to_string_lossy()),
    };
    if let Some(problem) = leads_out(folder, &shown) {
        problems.push(problem);
        return (found, problems);
    }
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .take(MAX_FILES)
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    for path in paths {
        let Some((name, kind)) = tool_of(&path) else {
            continue;
        };
        let shown = match tier {
            Tier::Project => format!(
                "tools/{}",
                path.file_name().unwrap_or_default().to_string_lossy()
            ),
            Tier::User => {
                let name = path.file_name().unwrap_or_default();
                written.join(name).display().to_string()
            }
        };
        let page = page_of(&path);
        let name_of = |path: &Path| {
            let name = path.file_name().unwrap_or_default();
            match tier {
                Tier::Project => format!("tools/{}", visible(&name.to_string_lossy())),
                Tier::User => visible(&written.join(name).to_string_lossy()),
            }
        };
        let pages = page.iter().map(PathBuf::as_path);
        let mut all = std::iter::once(path.as_path()).chain(pages);
        if let Some(problem) = all.find_map(|path| leads_out(path, &name_of(path))) {
            problems.push(problem);
            continue;
        }
        let tool = FoundTool {
            page,
            root: root.to_owned(),
            name,
            tier,
            shown,
            path,
            kind,
        };
        let is_full = found.len() == MAX_TOOLS;
        match found.iter_mut().find(|other| other.name == tool.name) {
            None if is_full => {
                problems.push(format!(
                    "{} has more than {MAX_TOOLS} tools; skipped {} and those after it",
                    folder.display(),
                    tool.shown
                ));
                break;
            }
            None => found.push(tool),
            Some(other) => {
                let (used, skipped) = if other.kind == ToolKind::Lua {
                    (&*other, &tool)
                } else {
                    (&tool, &*other)
                };
                problems.push(format!(
                    "skipped {}: {} has the same name",
                    skipped.shown, used.shown
                ));
                if other.kind != ToolKind::Lua {
                    *other = tool;
                }
            }
        }
    }
    (found, problems)
}

/// Returns the places of keys, credentials and haft's own state.
fn secret_places(settings: &Settings) -> Vec<PathBuf> {
    let state = settings.folders.state.as_deref().and_then(real);
    let keys = haft::ops::executor::sandbox::secrets(&settings.environment.homes());
    keys.into_iter().chain(state).collect()
}

/// Returns the links in the user's `tools`, whether or not they lead to a tool now:
/// anyone who can write their targets decides what runs in other folders.
#[expect(
    clippy::disallowed_methods,
    reason = "only names are read, before a scope exists"
)]
pub(super) fn links(root: &Path) -> Vec<PathBuf> {
    let folder = root.join("tools");
    let entries = real(&folder).and_then(|real| std::fs::read_dir(real).ok());
    let entries = entries.into_iter().flatten().flatten().take(MAX_FILES);
    let inside = entries.map(|entry| entry.path());
    let is_link = |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
    std::iter::once(folder)
        .chain(inside)
        .filter(is_link)
        .collect()
}

/// Returns the tool's name and kind, if a file is a tool.
#[expect(
    clippy::disallowed_methods,
    reason = "programs are checked before a scope exists"
)]
fn tool_of(path: &Path) -> Option<(String, ToolKind)> {
    use std::os::unix::fs::PermissionsExt;
    let data = std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)?;
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    if stem.starts_with('.') {
        return None;
    }
    let kind = match path.extension().and_then(|extension| extension.to_str()) {
        Some("md") => return None,
        Some("lua") => ToolKind::Lua,
        _ if data.permissions().mode() & 0o111 != 0 => ToolKind::Program,
        _ => return None,
    };
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            c
        } else {
            '_'
        }
    };
    Some((stem.chars().map(plain).take(64).collect(), kind))
}

/// Returns `deploy.sh.md` or `deploy.md` beside `deploy.sh`.
fn page_of(path: &Path) -> Option<PathBuf> {
    let mut whole = path.as_os_str().to_owned();
    whole.push(".md");
    [PathBuf::from(whole), path.with_extension("md")]
        .into_iter()
        .find(|page| super::is_file(page))
}

impl FoundTool {
    /// Returns the names under which it may replace another tool: the file's name and,
    /// for a Lua module, the names declared in its text. Nothing is run, so that they can
    /// be shown before the module is trusted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = vec![self.name.clone()];
        if self.kind == ToolKind::Lua
            && let Ok(source) = self.text(&self.path, &|_, _| true)
        {
            names.extend(lua::declared_names(&source));
        }
        names.dedup();
        names
    }

    /// Returns the paths that the tool must be able to read: its folder, and the targets
    /// of links.
    pub(crate) fn read(&self) -> Vec<PathBuf> {
        let folder = self.path.parent().map(Path::to_owned);
        let led = self.files().into_iter().filter_map(|file| real(&file));
        folder.into_iter().chain(led).collect()
    }

    /// Whether both are the same file.
    pub(super) fn is_file_of(&self, other: &Self) -> bool {
        real(&self.path).is_some_and(|file| real(&other.path) == Some(file))
    }

    /// Returns the tool's files.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let files = [Some(self.path.clone()), self.page.clone()];
        files.into_iter().flatten().collect()
    }

    /// Whether it is a program, and not a Lua module.
    pub(super) fn is_program(&self) -> bool {
        self.kind == ToolKind::Program
    }

    /// Returns the item to trust.
    pub(crate) fn item(&self) -> Item {
        let mut files = self.files();
        if let Some(project) = self.path.parent().and_then(Path::parent) {
            super::add_interpreters(&mut files, project);
        }
        Item {
            kind: match self.kind {
                ToolKind::Lua => "lua",
                ToolKind::Program => "program",
            },
            name: self.name.clone(),
            shown: self.shown.clone(),
            pin: Pin {
                written: String::new(),
                files,
            },
            remarks: Vec::new(),
        }
    }

    /// Builds the tool.
    pub(crate) fn build(
        &self,
        check: Option<Check>,
        is_trusted: &dyn Fn(&Path, &[u8]) -> bool,
        settings: &Settings,
    ) -> Result<BuiltTool, String> {
        match self.kind {
            ToolKind::Lua => {
                let source = self
                    .text(&self.path, is_trusted)
                    .map_err(|error| format!("{}: {error}", self.shown))?;
                Ok(BuiltTool::Lua(Box::new(super::lua(
                    self, source, check, settings,
                ))))
            }
            ToolKind::Program => {
                let program = self.program(check, is_trusted, settings)?;
                Ok(BuiltTool::Program(Box::new(program)))
            }
        }
    }

    /// Returns the text of one of its files, if it is trusted.
    fn text(
        &self,
        file: &Path,
        is_trusted: &dyn Fn(&Path, &[u8]) -> bool,
    ) -> Result<String, String> {
        let opened = match self.tier {
            Tier::Project => beneath::open_within(&self.root, file),
            Tier::User => beneath::open(file),
        };
        let bytes = opened
            .and_then(|mut opened| opened.read(MAX_BYTES))
            .map_err(|error| error.to_string())?;
        if !is_trusted(file, &bytes) {
            return Err("the file changed just now, so it is not used".to_owned());
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the name of its page in messages, even if it has none yet.
    fn page_shown(&self) -> String {
        let page = match &self.page {
            Some(page) => page.clone(),
            None => self.path.with_extension("md"),
        };
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        match self.tier {
            Tier::Project => format!("tools/{}", visible(&name)),
            Tier::User => {
                let shown =
                    Path::new(&self.shown).with_file_name(page.file_name().unwrap_or_default());
                visible(&shown.to_string_lossy())
            }
        }
    }

    fn program(
        &self,
        check: Option<Check>,
        is_trusted: &dyn Fn(&Path, &[u8]) -> bool,
        settings: &Settings,
    ) -> Result<Executable, String> {
        let page = match &self.page {
            Some(file) => {
                let read = self
                    .text(file, is_trusted)
                    .and_then(|text| page::read(&text));
                read.map_err(|error| format!("{}: {error}", file.display()))?
            }
            // Without a page, the program is later run with --help.
            None => Page {
                description: String::new(),
                parameters: None,
                guidance: None,
                timeout: None,
            },
        };
        let takes = match page.parameters {
            Some(_) => Takes::Json,
            None => Takes::Words,
        };
        // A program that needed trust is a guest, no matter whose it is.
        let installer = match check.is_some() {
            true => Installer::Project,
            false => super::installer_of(self.tier, settings),
        };
        Ok(Executable {
            definition: Definition {
                name: self.name.clone(),
                // A program with a page is never run with --help.
                description: if self.page.is_some() && page.description.is_empty() {
                    format!("Command-line tool: {}", self.name)
                } else {
                    page.description
                },
                parameters: page.parameters.unwrap_or_else(Executable::words),
                guidance: page.guidance,
            },
            program: self.path.clone(),
            takes,
            environment: super::environment(&AddedVariables::default(), settings),
            timeout: page.timeout,
            timeout_set_in: format!("the front matter of {}", self.page_shown()),
            check,
            installer,
            files: self.files(),
        })
    }
}

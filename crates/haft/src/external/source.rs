//! Other sources of tools, such as MCP servers. The session asks a source for its tools and
//! gives them unique names.

use super::installer::Installer;
use super::plugin::{LOG, Programs, clean};
use crate::tool::Redefined;
use crate::{AnyTool, Definition, Error, Reply, schema};
use futures::future::BoxFuture;
use haft_ops::exec::network::is_proxy_variable;
use haft_ops::exec::{self, Exec};
use haft_ops::executor::sandbox::Confinement;
use haft_ops::executor::{
    Conversation, Disk, Input, Keep, Program, Prompts, Refusal, Streams, When, clean_path, look_up,
    path_of,
};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Maximum length of a tool name, in characters.
const MAX_NAME: usize = 64;

/// A source of tools for a session.
pub trait Source: Send + Sync {
    /// Returns the name in messages, such as `MCP server docs`.
    fn label(&self) -> String;

    /// Returns the tools of the source. Called before the first call that could need one,
    /// and again whenever [`Source::changes`] wakes. A tool with an unchanged definition is
    /// assumed to be the same. `programs` is how to run programs in this session.
    fn tools<'a>(
        &'a self,
        programs: Option<&'a Programs>,
    ) -> BoxFuture<'a, Result<SourceTools, Error>>;

    /// Returns a receiver that wakes when the tools have changed.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// The tools of a source.
#[derive(Default)]
pub struct SourceTools {
    /// Tools, with the names that the source would like for them.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Problems with other tools, for the user.
    pub problems: Vec<String>,
}

/// How to start a program that communicates over its standard streams.
#[derive(Debug, Clone)]
pub struct Start {
    /// Unique name, which identifies its private folders.
    pub name: String,
    /// The program: a path, or a name to look up in its `PATH`, except in folders that
    /// commands can write.
    pub program: PathBuf,
    /// The program as shown in messages; `None` for the program itself.
    pub shown: Option<String>,
    /// Arguments of the program.
    pub arguments: Vec<OsString>,
    /// The complete environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Folder for code that the program downloads.
    pub cache: Option<Cache>,
    /// Folder to run in; `None` for the work folder.
    pub dir: Option<PathBuf>,
    /// File for its log (standard error).
    pub log: Option<PathBuf>,
    /// Origin of the program (user or project), which decides how it is sandboxed.
    pub installer: Installer,
}

/// Folder for a program that downloads code, such as `npx`. In the sandbox the program
/// cannot use the home folder, and the code must not be where commands could change it, so
/// it gets a folder that only it can write.
#[derive(Debug, Clone)]
pub struct Cache {
    /// The folder; created if missing.
    pub folder: PathBuf,
    /// Environment variables that point the program to it. Each is set to a subfolder.
    pub variables: Vec<&'static str>,
}

impl Start {
    /// Returns the program as shown in messages.
    fn shown(&self) -> String {
        let as_it_is = || self.program.display().to_string();
        self.shown.clone().unwrap_or_else(as_it_is)
    }

    /// Returns a further hint for a program that does not exist.
    fn remedy(&self) -> &'static str {
        match self.program.to_string_lossy().contains(char::is_whitespace) {
            true => "; if that is a command line, put its arguments into `args`",
            false => "",
        }
    }
}

impl Programs {
    /// Returns the work folder of the session.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a program in the sandbox for commands. Dropping the conversation ends the
    /// program and everything it started; so does the end of haft.
    ///
    /// # Errors
    /// When it cannot be started.
    pub async fn converse(&self, start: Start) -> Result<Conversation, Error> {
        let (shown, remedy) = (start.shown(), start.remedy());
        self.begin(start).await.map_err(|error| match error {
            Error::Operation(haft_ops::Error::CannotStart {
                refusal, detail, ..
            }) => Error::Operation(haft_ops::Error::CannotStart {
                program: shown,
                refusal,
                detail: match refusal {
                    Refusal::Missing => detail + remedy,
                    _ => detail,
                },
            }),
            other => other,
        })
    }

    async fn begin(&self, start: Start) -> Result<Conversation, Error> {
        let mut exec_context = self.around(start.installer, &start.name);
        let words = std::iter::once(self.located(&start)?.into_os_string());
        let request = Exec {
            program: Program::Direct(words.chain(start.arguments).collect()),
            dir: start.dir.unwrap_or_else(|| self.dir.clone()),
            streams: Streams::Separate,
            limit: None,
            keep: Keep {
                head: 0,
                tail: 64 << 10,
                disk: start.log.map(|log| Disk {
                    output: log.with_extension("out"),
                    error: log,
                    max: LOG,
                    when: When::Always,
                }),
            },
            prompts: Prompts::Wait,
            input: Input::Nothing,
        };
        self.connections
            .admit(&mut exec_context, &start.name, &request);
        let exec_context = &exec_context;
        let (mut launch, after) = exec::launch(exec_context, request).await?;
        // The program keeps running between calls, so protected paths are checked after
        // each call and before commands.
        after.stay(exec_context);
        launch.recording = self.recording(&start.name);
        let temp = launch
            .environment
            .iter()
            .find(|(name, _)| name == "TMPDIR")
            .cloned();
        let mut proxies = launch.environment;
        proxies.retain(|(name, _)| exec_context.pass.is_some() && is_proxy_variable(name));
        launch.environment = start.environment;
        launch
            .environment
            .retain(|(name, _)| !proxies.iter().any(|(proxy, _)| proxy == name));
        launch.environment.extend(proxies);
        clean_path(&mut launch.environment, &self.writable(start.installer));
        if let (Some(cache), Some(confinement)) = (start.cache, &mut launch.confinement) {
            cache
                .open(&mut launch.environment, confinement)
                .map_err(|error| {
                    Error::failed(format!(
                        "its cache {} cannot be used: {error}",
                        cache.folder.display()
                    ))
                })?;
        }
        if let Some(temp) = temp {
            launch.environment.retain(|(name, _)| name != "TMPDIR");
            launch.environment.push(temp);
        }
        Ok(exec_context.executor.converse(launch).await?)
    }
}

impl Cache {
    /// Creates the folder, allows the program to write it, and sets its variables.
    fn open(
        &self,
        environment: &mut Vec<(OsString, OsString)>,
        confinement: &mut Confinement,
    ) -> Result<(), Box<dyn std::error::Error>> {
        haft_ops::private::folder(&self.folder)?;
        confinement.plan.add_own_folder(&self.folder)?;
        for variable in &self.variables {
            if !environment.iter().any(|(name, _)| name == variable) {
                environment.push((variable.into(), self.folder.join(variable).into()));
            }
        }
        Ok(())
    }
}

impl Programs {
    /// Returns the folders that commands and programs may write. Programs are never looked
    /// up by name there.
    pub(crate) fn writable(&self, installer: Installer) -> Vec<PathBuf> {
        let mut folders = vec![self.dir.clone()];
        let sandbox = self.of(installer).sandbox.as_ref();
        if let Some(request) = sandbox.map(|sandbox| sandbox.request()) {
            folders.push(request.work_dir.clone());
            folders.extend(request.roots.iter().map(|root| request.work_dir.join(root)));
            folders.push(request.temp.clone());
            // This is the folder that a program finds there.
            folders.extend(haft_ops::scope::SHARED_TEMP.iter().map(PathBuf::from));
        }
        folders
    }

    /// Finds a program in its `PATH`, except in folders that commands can write.
    fn located(&self, start: &Start) -> Result<PathBuf, Error> {
        let avoid = self.writable(start.installer);
        let name = start.program.as_os_str();
        look_up(name, path_of(&start.environment), &avoid).ok_or_else(|| {
            Error::failed(format!(
                "cannot start {}: not found in PATH, of which relative folders and those in the \
                 project or where commands can write are not used; install it, or configure its absolute path{}",
                start.shown(),
                start.remedy()
            ))
        })
    }
}

/// Checks a tool that another program describes and returns its definition for the model:
/// the texts are limited and cleaned, and the schema can be checked quickly.
///
/// # Errors
/// When its name or schema is invalid; the error says why.
pub fn foreign(name: &str, description: &str, parameters: &Value) -> Result<Definition, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(plain) {
        return Err(Error::invalid(format!(
            "a name is at most {MAX_NAME} letters, digits, _ and -"
        )));
    }
    let parameters = super::plugin::cleaned(parameters);
    schema::check(name, &parameters)?;
    Ok(Definition {
        name: name.to_owned(),
        description: clean(description),
        parameters,
        guidance: None,
    })
}

/// Parses a result as other programs write it: `content` with blocks, `is_error`, `details`.
#[must_use]
pub fn foreign_reply(result: Map<String, Value>) -> Reply {
    super::plugin::taken(result)
        .map(Reply::from)
        .unwrap_or_default()
}

/// A source in a session, and the names of its tools there.
pub(crate) struct Sourced {
    pub(crate) source: Arc<dyn Source>,
    names: Mutex<Vec<String>>,
}

impl Sourced {
    pub(crate) fn new(source: Arc<dyn Source>) -> Self {
        Self {
            source,
            names: Mutex::default(),
        }
    }

    fn names(&self) -> MutexGuard<'_, Vec<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the registered tools of the source, each under a unique name, and returns
    /// the problems found.
    pub(crate) fn register(
        &self,
        tools: &crate::Tools,
        loaded: Result<SourceTools, Error>,
    ) -> Vec<String> {
        let label = self.source.label();
        let (brought, mut problems) = match loaded {
            Ok(SourceTools { tools, problems }) => (tools, problems),
            Err(error) => (Vec::new(), vec![error.to_string()]),
        };
        let mut held = self.names();
        let before = std::mem::take(&mut *held);
        for tool in brought {
            let wanted = tool.definition().name.clone();
            let is_taken = |name: &String| {
                held.contains(name) || tools.get(name).is_some() && !before.contains(name)
            };
            let name = free_name(&wanted, is_taken);
            let tool = if name == wanted {
                tool
            } else {
                problems.push(format!(
                    "{label}: its tool \"{wanted}\" is called \"{name}\" here, because a tool with that name exists"
                ));
                Arc::new(renamed(tool, &name))
            };
            let now = tools.get(&name);
            if now.is_none_or(|now| now.definition() != tool.definition()) {
                tools.replace(tool);
            }
            held.push(name);
        }
        for gone in before.iter().filter(|name| !held.contains(name)) {
            tools.remove(gone);
        }
        problems
    }
}

/// Returns the name, or the first free one with a number appended.
pub fn free_name(wanted: &str, is_taken: impl Fn(&String) -> bool) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while is_taken(&name) {
        let end = format!("_{number}");
        let start: String = wanted.chars().take(MAX_NAME - end.len()).collect();
        name = start + &end;
        number += 1;
    }
    name
}

/// Returns a tool under another name.
fn renamed(tool: Arc<dyn AnyTool>, name: &str) -> Redefined {
    let definition = Definition {
        name: name.to_owned(),
        ..tool.definition().clone()
    };
    Redefined { tool, definition }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_name_gets_a_number_and_stays_short_enough() {
        let taken = ["a".to_owned(), "a_2".to_owned(), "x".repeat(64)];
        let is_taken = |name: &String| taken.contains(name);
        assert_eq!(free_name("b", is_taken), "b");
        assert_eq!(free_name("a", is_taken), "a_3");
        let long = free_name(&"x".repeat(64), is_taken);
        assert_eq!(long.len(), 64);
        assert!(long.ends_with("x_2"));
    }
}

//! Whatever else brings tools: something that speaks a protocol of its own, such as
//! the server of another one. The session asks it which tools it has, and gives them
//! names that nothing else has.

use super::plugin::{LOG, Programs, clean};
use crate::{AnyTool, Context, Definition, Effect, Error, Reply, Resource, schema};
use futures::future::BoxFuture;
use haft_ops::exec::{self, Exec};
use haft_ops::executor::{
    Conversation, Disk, Input, Keep, Program, Prompts, Refusal, Streams, When, clean_path, look_up,
    path_of,
};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// The longest name of a tool.
const LONGEST_NAME: usize = 64;

/// Something that brings tools to a session.
pub trait Source: Send + Sync {
    /// What it is called in messages, as in `MCP server docs`.
    fn label(&self) -> String;

    /// Which tools it has. Asked before the first call that could need one, and again
    /// whenever [`Source::changes`] wakes; a tool whose definition is the same then is
    /// the one it was. `programs` is how programs are run here.
    fn tools<'a>(&'a self, programs: Option<&'a Programs>)
    -> BoxFuture<'a, Result<Brought, Error>>;

    /// Wakes when it has other tools than it had.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// What a source has.
#[derive(Default)]
pub struct Brought {
    /// Its tools, by the names it would like for them.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// What the person should know about the others.
    pub problems: Vec<String>,
}

/// A program that is spoken to over its streams.
#[derive(Debug, Clone)]
pub struct Start {
    /// The program: a path, or a name to look up in its `PATH`, of which folders that a
    /// command could write are not used.
    pub program: PathBuf,
    /// The program as messages show it; as it is if there is nothing.
    pub shown: Option<String>,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Variables that name caches, which programs have in the home folder otherwise:
    /// where that is closed they are set to folders of the private temp.
    pub caches: Vec<&'static str>,
    /// The folder it runs in; the work folder if there is none.
    pub dir: Option<PathBuf>,
    /// Where what it says to its log is kept.
    pub log: Option<PathBuf>,
    /// Whether it is a guest, as what a project brings is: then it has the network
    /// only where commands have it.
    pub is_guest: bool,
}

impl Start {
    /// What messages call the program.
    fn shown(&self) -> String {
        let as_it_is = || self.program.display().to_string();
        self.shown.clone().unwrap_or_else(as_it_is)
    }

    /// What else may help if there is no such program.
    fn remedy(&self) -> &'static str {
        match self.program.to_string_lossy().contains(char::is_whitespace) {
            true => "; if that is a command line, put its arguments into `args`",
            false => "",
        }
    }
}

impl Programs {
    /// The work folder of the session.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a program, confined as commands are. Dropping the conversation ends it
    /// and all that it started, and so does the end of haft.
    ///
    /// # Errors
    /// When it did not begin.
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
        let surroundings = self.of(start.is_guest);
        let words = std::iter::once(self.located(&start)?.into_os_string());
        let request = Exec {
            program: Program::Direct(words.chain(start.arguments).collect()),
            dir: start.dir.unwrap_or_else(|| self.dir.clone()),
            streams: Streams::Apart,
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
        let (mut launch, after) = exec::launch(surroundings, request).await?;
        // It goes on between calls: it is looked at after each, and before commands.
        after.stay(surroundings);
        let temp = launch
            .environment
            .iter()
            .find(|(name, _)| name == "TMPDIR")
            .cloned();
        launch.environment = start.environment;
        clean_path(&mut launch.environment, &self.writable(start.is_guest));
        if let Some(temp) = temp {
            let is_closed = surroundings.sandbox.is_some();
            for cache in start.caches.into_iter().filter(|_| is_closed) {
                if !launch.environment.iter().any(|(name, _)| name == cache) {
                    let folder = Path::new(&temp.1).join("caches").join(cache);
                    launch.environment.push((cache.into(), folder.into()));
                }
            }
            launch.environment.retain(|(name, _)| name != "TMPDIR");
            launch.environment.push(temp);
        }
        Ok(surroundings.executor.converse(launch).await?)
    }
}

impl Programs {
    /// The folders that commands and programs may write, where nothing is taken from
    /// that is run by its name.
    pub(crate) fn writable(&self, is_guest: bool) -> Vec<PathBuf> {
        let mut folders = vec![self.dir.clone()];
        let sandbox = self.of(is_guest).sandbox.as_ref();
        if let Some(request) = sandbox.map(|sandbox| sandbox.request()) {
            folders.push(request.work_dir.clone());
            folders.extend(request.roots.iter().map(|root| request.work_dir.join(root)));
            folders.push(request.temp.clone());
        }
        folders
    }

    /// Where a program is: by its name in its `PATH`, but in no folder that a command
    /// could write.
    fn located(&self, start: &Start) -> Result<PathBuf, Error> {
        let avoid = self.writable(start.is_guest);
        let name = start.program.as_os_str();
        look_up(name, path_of(&start.environment), &avoid).ok_or_else(|| {
            Error::failed(format!(
                "cannot start {}: not found in PATH, of which relative folders and those in the \
                 work folder are not used; install it, or configure its absolute path{}",
                start.shown(),
                start.remedy()
            ))
        })
    }
}

/// What a model sees of a tool that somebody else describes, once it is sure that it
/// can: texts are bounded and hide nothing, and the schema can be checked quickly.
///
/// # Errors
/// Says what is wrong with its name or its schema.
pub fn foreign(name: &str, description: &str, parameters: &Value) -> Result<Definition, Error> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(plain) {
        return Err(Error::invalid(format!(
            "a name is at most {LONGEST_NAME} letters, digits, _ and -"
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

/// A source of a session, and the tools that it has in it.
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

    /// Puts its tools in the place of those it had, each under a name that is its own,
    /// and says what is wrong.
    pub(crate) fn take_in(&self, tools: &crate::Tools, met: Result<Brought, Error>) -> Vec<String> {
        let label = self.source.label();
        let (brought, mut problems) = match met {
            Ok(Brought { tools, problems }) => (tools, problems),
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
                    "{label}: its tool \"{wanted}\" is called \"{name}\" here, because there is one of that name"
                ));
                Arc::new(Renamed::new(tool, &name))
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

/// The name, or the first with a number after it that is free.
pub fn free_name(wanted: &str, is_taken: impl Fn(&String) -> bool) -> String {
    let mut name = wanted.to_owned();
    let mut number = 2;
    while is_taken(&name) {
        let end = format!("_{number}");
        let start: String = wanted.chars().take(LONGEST_NAME - end.len()).collect();
        name = start + &end;
        number += 1;
    }
    name
}

/// A tool under another name.
struct Renamed {
    tool: Arc<dyn AnyTool>,
    definition: Definition,
}

impl Renamed {
    fn new(tool: Arc<dyn AnyTool>, name: &str) -> Self {
        let definition = Definition {
            name: name.to_owned(),
            ..tool.definition().clone()
        };
        Self { tool, definition }
    }
}

impl AnyTool for Renamed {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn effect(&self) -> Effect {
        self.tool.effect()
    }

    fn resources(&self, arguments: &Value) -> Vec<Resource> {
        self.tool.resources(arguments)
    }

    fn timeout(&self) -> Option<Duration> {
        self.tool.timeout()
    }

    fn limit(&self, session: Option<Duration>) -> Option<Duration> {
        self.tool.limit(session)
    }

    fn only_waits(&self) -> bool {
        self.tool.only_waits()
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        cx: &'a Context,
    ) -> BoxFuture<'a, Result<Reply, Error>> {
        self.tool.call(arguments, cx)
    }
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

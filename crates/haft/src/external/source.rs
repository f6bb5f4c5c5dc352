//! Whatever else brings tools: something that speaks a protocol of its own, such as
//! the server of another one. The session asks it which tools it has, and gives them
//! names that nothing else has.

use super::plugin::{LOG, Programs, clean};
use super::standing::Standing;
use crate::tool::Redefined;
use crate::{AnyTool, Definition, Error, schema};
use futures::future::BoxFuture;
use haft_ops::exec::{self, Exec};
use haft_ops::executor::sandbox::Confinement;
use haft_ops::executor::{
    Conversation, Disk, Input, Keep, Program, Prompts, Refusal, Streams, When, clean_path, look_up,
    path_of,
};
use serde_json::Value;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
    /// What tells it from other programs.
    pub name: String,
    /// The program: a path, or a name to look up in its `PATH`, of which folders that a
    /// command could write are not used.
    pub program: PathBuf,
    /// The program as messages show it; as it is if there is nothing.
    pub shown: Option<String>,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// All of its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Where it keeps what it fetches.
    pub cache: Option<Cache>,
    /// The folder it runs in; the work folder if there is none.
    pub dir: Option<PathBuf>,
    /// Where what it says to its log is kept.
    pub log: Option<PathBuf>,
    /// Who vouches for it.
    pub standing: Standing,
}

/// Where a program that fetches code keeps it. In the sandbox it cannot use the home
/// folder for that, nor may the code lie where commands could change it, so it has a
/// folder that nobody else can write.
#[derive(Debug, Clone)]
pub struct Cache {
    /// The folder; it is made if it is missing.
    pub folder: PathBuf,
    /// The variables that tell the program to use it. Each names a folder in it.
    pub variables: Vec<&'static str>,
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
        let surroundings = &self.around(start.standing, &start.name);
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
        clean_path(&mut launch.environment, &self.writable(start.standing));
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
        Ok(surroundings.executor.converse(launch).await?)
    }
}

impl Cache {
    /// Makes the folder, lets the program write it, and tells it so.
    fn open(
        &self,
        environment: &mut Vec<(OsString, OsString)>,
        confinement: &mut Confinement,
    ) -> Result<(), Box<dyn std::error::Error>> {
        haft_ops::private::folder(&self.folder)?;
        confinement.plan.give(&self.folder)?;
        for variable in &self.variables {
            if !environment.iter().any(|(name, _)| name == variable) {
                environment.push((variable.into(), self.folder.join(variable).into()));
            }
        }
        Ok(())
    }
}

impl Programs {
    /// The folders that commands and programs may write, where nothing is taken from
    /// that is run by its name.
    pub(crate) fn writable(&self, standing: Standing) -> Vec<PathBuf> {
        let mut folders = vec![self.dir.clone()];
        let sandbox = self.of(standing).sandbox.as_ref();
        if let Some(request) = sandbox.map(|sandbox| sandbox.request()) {
            folders.push(request.work_dir.clone());
            folders.extend(request.roots.iter().map(|root| request.work_dir.join(root)));
            folders.push(request.temp.clone());
            // That is what a program finds there.
            folders.extend(haft_ops::scope::SHARED_TEMP.iter().map(PathBuf::from));
        }
        folders
    }

    /// Where a program is: by its name in its `PATH`, but in no folder that a command
    /// could write.
    fn located(&self, start: &Start) -> Result<PathBuf, Error> {
        let avoid = self.writable(start.standing);
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

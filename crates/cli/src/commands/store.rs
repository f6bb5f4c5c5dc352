//! `haft store`: files that outlive sessions, with `backend: store`.

use crate::args::Shared;
use crate::args::store::Store as Command;
use crate::exit::{Exit, Failure};
use crate::{file_backend, output, session, signals, text};
use haft::ops::backend::{Expect, Kind};
use haft::ops::text::decode::visible;
use haft::ops::text::moment;
use haft::ops::{Access, Backend, Error, FilePath, Scope};
use haft::truncate::format_size;
use haft_config::Settings;
use haft_config::files::{Backend as Configured, Namespace};
use haft_store::{MAX_FILE, Store};
use serde_json::json;
use std::io::{IsTerminal, Read};
use std::path::Path;

/// Runs the command.
pub(crate) fn run(shared: &Shared, command: &Command) -> Result<Exit, Failure> {
    let settings = session::settings(shared)?;
    let part = match command {
        Command::List { part, .. }
        | Command::Get { part, .. }
        | Command::Put { part, .. }
        | Command::Delete { part, .. } => part,
    };
    let store = SelectedStore {
        namespace: namespace(&settings, part.namespace.as_deref())?,
        settings: &settings,
    };
    signals::block_on(async {
        match command {
            Command::List { folder, json, .. } => store.list(folder.as_deref(), *json).await,
            Command::Get { path, .. } => store.get(path).await,
            Command::Put { path, file, .. } => store.put(path, file.as_deref()).await,
            Command::Delete { paths, .. } => store.delete(paths).await,
        }
    })?;
    Ok(Exit::Done)
}

/// Returns the namespace to use: the given one, or the only one in the settings, or the
/// user's unnamed one.
fn namespace(settings: &Settings, given: Option<&str>) -> Result<Namespace, Failure> {
    let mut known = Vec::new();
    match &settings.files.backend {
        Configured::Store(namespace) => known.push(namespace.clone()),
        Configured::Routes(routes) => {
            for (_, backend) in routes {
                if let Configured::Store(namespace) = backend
                    && !known.contains(namespace)
                {
                    known.push(namespace.clone());
                }
            }
        }
        Configured::Filesystem { .. } | Configured::State => {}
    }
    let own = |name: &str| Namespace {
        name: name.to_owned(),
        project: None,
    };
    match (given, known.as_slice()) {
        (Some(name), _) => {
            let known = known.iter().find(|known| known.name == name);
            Ok(known.cloned().unwrap_or_else(|| own(name)))
        }
        (None, []) => Ok(own("")),
        (None, [only]) => Ok(only.clone()),
        (None, several) => {
            let names: Vec<_> = several.iter().map(|one| visible(&one.name)).collect();
            Err(Failure::usage(format!(
                "{} uses several namespaces of the store",
                settings.files.from
            ))
            .hint(format!(
                "pass --namespace with one of: {}",
                names.join(", ")
            )))
        }
    }
}

struct SelectedStore<'a> {
    settings: &'a Settings,
    namespace: Namespace,
}

impl SelectedStore<'_> {
    /// Opens the store. `None` if it was never written to.
    fn existing(&self) -> Result<Option<Store>, Failure> {
        let is_there = file_backend::store_file(self.settings)?.exists();
        is_there.then(|| self.store()).transpose()
    }

    fn store(&self) -> Result<Store, Failure> {
        file_backend::store(self.settings, &self.namespace)
    }

    async fn list(&self, folder: Option<&str>, as_json: bool) -> Result<(), Failure> {
        let folder = folder.unwrap_or("/");
        let mut files = Vec::new();
        if let Some(store) = self.existing()? {
            let start = resolved(folder, Access::Read)?;
            match store.stat(&start).await {
                Ok(stat) if stat.kind == Kind::Directory => {
                    files = walked(&store, start).await?;
                }
                Ok(stat) => files.push((start, stat)),
                Err(Error::NotFound { .. }) if folder == "/" => {}
                Err(error) => return Err(self.failure(folder, &error)),
            }
        }
        if files.is_empty() && !as_json {
            output::note(&match self.namespace.name.as_str() {
                "" => "no files in the store".to_owned(),
                name => format!("no files in namespace {} of the store", visible(name)),
            });
            return Ok(());
        }
        let mut rows = Vec::new();
        for (path, stat) in files {
            let path = path.real().to_string_lossy().into_owned();
            let modified = stat.modified.map(moment::to_seconds);
            if as_json {
                output::json(&json!({ "path": path, "bytes": stat.size, "modified": modified }))?;
            } else {
                let path = visible(&path).replace('\n', "\\n");
                let modified = modified.unwrap_or_default();
                rows.push(vec![format_size(stat.size), modified, path]);
            }
        }
        match as_json {
            true => Ok(()),
            false => output::text(&text::table(&rows, None)),
        }
    }

    async fn get(&self, path: &str) -> Result<(), Failure> {
        let file = named(path, Access::Read)?;
        let Some(store) = self.existing()? else {
            return Err(self.missing(path));
        };
        let content = store.read(&file).await;
        let content = content.map_err(|error| self.failure(path, &error))?;
        output::bytes(content.reader)
    }

    async fn put(&self, path: &str, from: Option<&Path>) -> Result<(), Failure> {
        let file = named(path, Access::Write)?;
        let bytes = content(from)?;
        let written = self.store()?.write(&file, bytes, Expect::Anything).await;
        written.map_err(|error| self.failure(path, &error))?;
        Ok(())
    }

    async fn delete(&self, paths: &[String]) -> Result<(), Failure> {
        let store = self.existing()?;
        let mut files = Vec::new();
        // Check all files before deleting any.
        for path in paths {
            let file = named(path, Access::Unlink)?;
            let Some(store) = &store else {
                return Err(self.missing(path));
            };
            match store.stat(&file).await {
                Ok(stat) if stat.kind == Kind::Directory => {
                    let path = file.real().to_string_lossy().into_owned();
                    return Err(self.failure(&path.clone(), &Error::IsDirectory { path }));
                }
                Ok(_) => files.push((path, file)),
                Err(error) => return Err(self.failure(path, &error)),
            }
        }
        for (path, file) in files {
            if let Some(store) = &store {
                let removed = store.remove(&file).await;
                removed.map_err(|error| self.failure(path, &error))?;
            }
        }
        Ok(())
    }

    fn missing(&self, path: &str) -> Failure {
        let similar = Vec::new();
        let path = path.to_owned();
        self.failure(&path.clone(), &Error::NotFound { path, similar })
    }

    /// Returns the command that lists a folder of the same namespace.
    fn list_command(&self, folder: &str) -> String {
        let mut words = vec!["haft store list".to_owned()];
        if !folder.is_empty() {
            words.push(visible(&text::shell_word(folder)));
        }
        if !self.namespace.name.is_empty() {
            let name = visible(&text::shell_word(&self.namespace.name));
            words.push(format!("--namespace {name}"));
        }
        words.join(" ")
    }

    /// Turns an error of the store into the failure of the command.
    fn failure(&self, path: &str, error: &Error) -> Failure {
        let failure = Failure::failed(visible(&error.to_string()));
        match error {
            Error::NotFound { .. } => {
                let list = self.list_command("");
                let mut failure = failure.hint(format!("`{list}` lists all files"));
                if let Configured::Routes(routes) = &self.settings.files.backend {
                    let stores = routes.iter().filter(|(at, backend)| {
                        let at = at.trim_end_matches('/');
                        let is_store = matches!(backend, Configured::Store(_));
                        is_store && !at.is_empty() && Path::new(path).starts_with(at)
                    });
                    for (at, _) in stores {
                        let note = "is where tools see the store; omit it from the path";
                        failure = failure.hint(format!("{at} {note}"));
                    }
                }
                failure
            }
            Error::IsDirectory { .. } => {
                let list = self.list_command(path);
                failure.hint(format!(
                    "name a file; `{list}` lists the files in this folder"
                ))
            }
            Error::NotADirectory { .. } => {
                let list = self.list_command("");
                failure.hint(format!(
                    "a part of this path is a file; `{list}` lists all files"
                ))
            }
            _ => failure,
        }
    }
}

/// Resolves the path of a file in the store.
fn named(path: &str, access: Access) -> Result<FilePath, Failure> {
    let is_folder = path.ends_with('/') || path.split('/').all(|part| matches!(part, "" | "."));
    if is_folder {
        let shown = visible(path);
        return Err(
            Failure::usage(format!("not a file in the store: \"{shown}\""))
                .hint("name a file, such as /notes.md; `haft store list` lists all files"),
        );
    }
    resolved(path, access)
}

/// Resolves a path in the store, with or without a leading slash.
fn resolved(path: &str, access: Access) -> Result<FilePath, Failure> {
    let has_parent = path.split('/').any(|part| part == "..");
    if has_parent {
        return Err(Failure::usage(format!("not a path in the store: {path}"))
            .hint("write the path without .."));
    }
    let rooted = format!("/{}", path.trim_start_matches('/'));
    Scope::detached()
        .resolve(&rooted, access)
        .map_err(|error| Failure::usage(error.to_string()))
}

/// Returns every file below a folder, sorted by path.
async fn walked(
    store: &Store,
    start: FilePath,
) -> Result<Vec<(FilePath, haft::ops::backend::Stat)>, Failure> {
    let (mut open, mut files) = (vec![start], Vec::new());
    while let Some(folder) = open.pop() {
        let entries = match store.list(&folder).await {
            Ok(entries) => entries,
            // The folder was deleted meanwhile.
            Err(Error::NotFound { .. }) => continue,
            Err(error) => return Err(Failure::failed(visible(&error.to_string()))),
        };
        for entry in entries {
            let Some(path) = folder.child(&entry.name) else {
                continue;
            };
            match entry.stat.kind {
                Kind::Directory => open.push(path),
                _ => files.push((path, entry.stat)),
            }
        }
    }
    files.sort_by(|(one, _), (other, _)| one.real().cmp(other.real()));
    Ok(files)
}

/// Reads the content to write, from a file or from stdin.
#[expect(
    clippy::disallowed_methods,
    reason = "the user names this file on the command line"
)]
fn content(from: Option<&Path>) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let (read, name) = match from {
        None => {
            let stdin = std::io::stdin().lock();
            if stdin.is_terminal() {
                output::note("reading from the terminal; press Ctrl-D on an empty line to end");
            }
            (
                stdin.take(MAX_FILE + 1).read_to_end(&mut bytes),
                "stdin".to_owned(),
            )
        }
        Some(path) => {
            let file = std::fs::File::open(path);
            let read = file.and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes));
            (read, visible(&path.to_string_lossy()))
        }
    };
    read.map_err(|error| Failure::failed(format!("cannot read {name}: {error}")))?;
    if bytes.len() as u64 > MAX_FILE {
        let most = format_size(MAX_FILE);
        return Err(Failure::failed(format!(
            "{name} is too large for the store: the limit is {most}"
        )));
    }
    Ok(bytes)
}

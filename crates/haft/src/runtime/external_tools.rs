//! Loading tools from plugins, executables and other sources: once at the start, and again
//! when their files change.

use super::{Builder, Runtime, Session};
use crate::external::plugin::{self, Host};
use crate::external::source::{Source, SourceTools, Sourced};
use crate::{AnyTool, Error, Plugin};
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Interval between checks of plugin files.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Time for which sources wait for each other, so that the order of their tools and the
/// names of equal ones do not depend on which is faster.
const SOURCES_TOGETHER: Duration = Duration::from_secs(2);

impl Builder {
    /// Adds the tools of a source, such as an MCP server.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.sources.push(Arc::new(Sourced::new(source)));
        self
    }
}

impl Runtime {
    /// Loads plugins, executables and sources once, and adds their tools. Returns the
    /// problems found; tools without problems are available. Every call waits for this.
    /// Callers that list tools before the first call should do so too.
    pub async fn ready(&self) -> &[String] {
        let session = &self.session;
        if let Some(first) = &session.tools_from {
            return Box::pin(first.ready()).await;
        }
        if session.external.plugins.is_empty()
            && session.external.executables.is_empty()
            && session.external.sources.is_empty()
        {
            return &[];
        }
        session
            .external
            .loaded
            .get_or_init(|| self.load_external_tools())
            .await
    }

    /// Waits for [`Runtime::ready`] only if that could matter to a call: a built-in tool
    /// does not wait for unrelated programs.
    pub(super) async fn ready_for(&self, tool: &str) {
        let session = match &self.session.tools_from {
            Some(first) => &first.session,
            None => &self.session,
        };
        let may_change = session
            .external
            .plugins
            .iter()
            .any(|host| host.overrides(tool))
            || session
                .external
                .executables
                .iter()
                .any(|program| program.definition.name == tool);
        if may_change || session.tools.get(tool).is_none() {
            self.ready().await;
        }
    }

    async fn load_external_tools(&self) -> Vec<String> {
        let session = &self.session;
        // Taken before the programs start, so that a change in the meantime is noticed.
        let stamps: Vec<_> = session
            .external
            .plugins
            .iter()
            .map(|host| host.stamp())
            .collect();
        let hosts = session.external.plugins.iter().map(Arc::clone);
        let changes = session
            .external
            .sources
            .iter()
            .map(|sourced| (Arc::clone(sourced), sourced.source.changes()));
        let changes: Vec<_> = changes.collect();
        let mut loading = SourcesLoading::new(session);
        // All at once; their tools are registered in the order of the configuration.
        let plugins = futures::future::join_all(hosts.map(|host| session.loaded(host)));
        let (loaded, ()) = futures::future::join(plugins, loading.wait(SOURCES_TOGETHER)).await;
        let mut problems = Vec::new();
        for (host, loaded) in session.external.plugins.iter().zip(loaded) {
            problems.extend(session.register(host, loaded));
        }
        let mut programs = Vec::new();
        for program in &session.external.executables {
            let name = &program.definition.name;
            match session.kept_from_prompt(&program.files) {
                Some(why) => problems.push(format!("the tool {name} is left out: {why}")),
                None => programs.push(program.clone()),
            }
        }
        let programs = programs.into_iter();
        let described = programs
            .map(|program| program.described(session.programs.as_ref(), session.scope.work_dir()));
        for program in futures::future::join_all(described).await {
            let name = program.definition.name.clone();
            match program.tool() {
                Ok(tool) => session.tools.replace(tool),
                Err(error) => problems.push(format!("the tool {name} is left out: {error}")),
            }
        }
        // Last, so that tools from outside cannot replace any of the others.
        problems.extend(loading.register(session));
        // A source that takes its time does not delay the others.
        while loading.next().await {
            problems.extend(loading.register(session));
        }
        for (sourced, changes) in changes {
            if let Some(changes) = changes {
                let (session, sourced) = (Arc::downgrade(session), Arc::downgrade(&sourced));
                tokio::spawn(follow_source(session, sourced, changes));
            }
        }
        if stamps.iter().any(Option::is_some) {
            let hosts = session.external.plugins.iter().map(Arc::downgrade);
            let watched = hosts.zip(stamps).collect();
            tokio::spawn(watch_plugins(Arc::downgrade(session), watched));
        }
        problems
    }
}

/// Sources that load their tools.
struct SourcesLoading<'a> {
    loading: FuturesUnordered<BoxFuture<'a, (usize, Result<SourceTools, Error>)>>,
    /// Loaded tools that are not registered yet, by the position of their source.
    loaded: BTreeMap<usize, Result<SourceTools, Error>>,
}

impl<'a> SourcesLoading<'a> {
    fn new(session: &'a Session) -> Self {
        let sources = session.external.sources.iter().enumerate();
        let loading = sources.map(|(position, sourced)| {
            let tools = sourced.source.tools(session.programs.as_ref());
            tools.map(move |loaded| (position, loaded)).boxed()
        });
        Self {
            loading: loading.collect(),
            loaded: BTreeMap::new(),
        }
    }

    /// Waits for all sources, but not longer than this.
    async fn wait(&mut self, time: Duration) {
        let all = async { while self.next().await {} };
        let _ = tokio::time::timeout(time, all).await;
    }

    /// Waits for one more source; `false` if all are loaded.
    async fn next(&mut self) -> bool {
        let Some((position, loaded)) = self.loading.next().await else {
            return false;
        };
        self.loaded.insert(position, loaded);
        true
    }

    /// Registers what is loaded, in the order of the configuration.
    fn register(&mut self, session: &Session) -> Vec<String> {
        let mut problems = Vec::new();
        for (position, loaded) in std::mem::take(&mut self.loaded) {
            if let Some(sourced) = session.external.sources.get(position) {
                problems.extend(sourced.register(&session.tools, loaded));
            }
        }
        problems
    }
}

/// The tools of a plugin and the problems with some of them, or why it could not be loaded.
type PluginTools = Result<(Vec<Arc<dyn AnyTool>>, Vec<String>), Error>;

impl Session {
    /// Loads a plugin, unless the rules forbid it.
    async fn loaded(&self, host: Arc<Host>) -> PluginTools {
        match self.kept_from_prompt(host.files()) {
            Some(why) => Err(Error::failed(format!(
                "the tool {} is left out: {why}",
                host.label()
            ))),
            None => plugin::tools(host).await,
        }
    }

    /// Starts a plugin in a running session and registers its tools.
    pub(crate) async fn add_plugin(self: &Arc<Self>, plugin: Plugin) -> Result<Vec<String>, Error> {
        let Some(programs) = &self.programs else {
            return Err(Error::failed(format!(
                "cannot start plugin {}: the session has no way to run programs; \
                 `Builder::commands` or `Builder::programs_run` adds one",
                plugin.label
            )));
        };
        let host = Arc::new(Host::new(plugin, programs));
        let stamp = host.stamp();
        let problems = self.register(&host, plugin::tools(Arc::clone(&host)).await);
        let names = host.names();
        if names.is_empty() {
            return Err(Error::failed(problems.join("\n")));
        }
        for problem in problems {
            tracing::warn!("{problem}");
        }
        if stamp.is_some() {
            let watched = vec![(Arc::downgrade(&host), stamp)];
            tokio::spawn(watch_plugins(Arc::downgrade(self), watched));
        }
        Ok(names)
    }

    /// Replaces the registered tools of a plugin and returns the problems found.
    fn register(&self, host: &Host, loaded: PluginTools) -> Vec<String> {
        let (tools, mut problems) = match loaded {
            Ok(loaded) => loaded,
            Err(error) => (Vec::new(), vec![error.to_string()]),
        };
        let before = host.take_names();
        let mut names = Vec::new();
        for tool in tools {
            let name = tool.definition().name.clone();
            let is_others = self.tools.get(&name).is_some() && !before.contains(&name);
            if is_others && !host.overrides(&name) || names.contains(&name) {
                problems.push(format!(
                    "plugin {}: its tool \"{name}\" is left out, because a tool with that name exists ({})",
                    host.label(),
                    host.how_to_override(&name)
                ));
                continue;
            }
            self.tools.replace(tool);
            names.push(name);
        }
        for gone in before.iter().filter(|name| !names.contains(name)) {
            self.tools.remove(gone);
        }
        host.set_names(names);
        problems
    }
}

/// Updates the tools of a source whenever it reports a change, until the session ends.
async fn follow_source(
    session: Weak<Session>,
    sourced: Weak<Sourced>,
    mut changes: tokio::sync::watch::Receiver<u64>,
) {
    while changes.changed().await.is_ok() {
        let (Some(session), Some(sourced)) = (session.upgrade(), sourced.upgrade()) else {
            return;
        };
        let brought = sourced.source.tools(session.programs.as_ref()).await;
        for problem in sourced.register(&session.tools, brought) {
            tracing::warn!("{problem}");
        }
    }
}

/// Restarts plugins whose files changed, until the session ends.
async fn watch_plugins(session: Weak<Session>, mut watched: Vec<(Weak<Host>, Option<u64>)>) {
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        let Some(session) = session.upgrade() else {
            return;
        };
        for (host, known) in &mut watched {
            let Some(host) = host.upgrade() else {
                continue;
            };
            let now = host.stamp();
            if now == *known {
                continue;
            }
            // The file may not be completely written yet.
            tokio::time::sleep(POLL_INTERVAL / 2).await;
            if host.stamp() != now {
                continue;
            }
            *known = now;
            host.restart().await;
            let loaded = plugin::tools(Arc::clone(&host)).await;
            for problem in session.register(&host, loaded) {
                tracing::warn!("{problem}");
            }
        }
    }
}

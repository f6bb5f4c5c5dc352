//! Programs that are tools or bring some: they are met once, and again when their
//! files change.

use super::{Builder, Runtime, Session};
use crate::external::plugin::{self, Host};
use crate::external::source::{Source, Sourced};
use crate::{AnyTool, Error, Plugin};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(500);

impl Builder {
    /// With the tools of something that speaks a protocol of its own.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.sources.push(Arc::new(Sourced::new(source)));
        self
    }
}

impl Runtime {
    /// Starts the plugins, once, and adds their tools. What was wrong with some of
    /// them is the answer: the others are there. Every call waits for it; who lists
    /// tools before the first call should too.
    pub async fn ready(&self) -> &[String] {
        let session = &self.session;
        if let Some(elder) = &session.elder {
            return Box::pin(elder.ready()).await;
        }
        if session.plugins.is_empty()
            && session.executables.is_empty()
            && session.sources.is_empty()
        {
            return &[];
        }
        session.met.get_or_init(|| self.meet()).await
    }

    /// The same, where it could make a difference to a call: a built-in tool does
    /// not wait for programs that it has nothing to do with.
    pub(super) async fn ready_for(&self, tool: &str) {
        let session = match &self.session.elder {
            Some(elder) => &elder.session,
            None => &self.session,
        };
        let may_change = session.plugins.iter().any(|host| host.overrides(tool))
            || session
                .executables
                .iter()
                .any(|program| program.definition.name == tool);
        if may_change || session.tools.get(tool).is_none() {
            self.ready().await;
        }
    }

    async fn meet(&self) -> Vec<String> {
        let session = &self.session;
        // Before they are started: what changes meanwhile is seen as a change.
        let stamps: Vec<_> = session.plugins.iter().map(|host| host.stamp()).collect();
        let hosts = session.plugins.iter().map(Arc::clone);
        let changes = session
            .sources
            .iter()
            .map(|sourced| (Arc::clone(sourced), sourced.source.changes()));
        let changes: Vec<_> = changes.collect();
        let asked = session
            .sources
            .iter()
            .map(|sourced| sourced.source.tools(session.programs.as_ref()));
        // All at once, and their tools in the order of the configuration.
        let (met, brought) = futures::future::join(
            futures::future::join_all(hosts.map(|host| session.met(host))),
            futures::future::join_all(asked),
        )
        .await;
        let mut problems = Vec::new();
        for (host, met) in session.plugins.iter().zip(met) {
            problems.extend(session.take_in(host, met));
        }
        let mut programs = Vec::new();
        for program in &session.executables {
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
        // After all the others: nothing of theirs is hidden by what comes from outside.
        for (sourced, brought) in session.sources.iter().zip(brought) {
            problems.extend(sourced.take_in(&session.tools, brought));
        }
        for (sourced, changes) in changes {
            if let Some(changes) = changes {
                let (session, sourced) = (Arc::downgrade(session), Arc::downgrade(&sourced));
                tokio::spawn(follow(session, sourced, changes));
            }
        }
        if stamps.iter().any(Option::is_some) {
            let hosts = session.plugins.iter().map(Arc::downgrade);
            let watched = hosts.zip(stamps).collect();
            tokio::spawn(watch(Arc::downgrade(session), watched));
        }
        problems
    }
}

/// What came of meeting a plugin.
type Met = Result<(Vec<Arc<dyn AnyTool>>, Vec<String>), Error>;

impl Session {
    /// Meets a plugin, unless the rules are against it.
    async fn met(&self, host: Arc<Host>) -> Met {
        match self.kept_from_prompt(host.files()) {
            Some(why) => Err(Error::failed(format!(
                "the tool {} is left out: {why}",
                host.label()
            ))),
            None => plugin::tools(host).await,
        }
    }

    /// Starts a plugin and takes in its tools, in a session that is under way.
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
        let problems = self.take_in(&host, plugin::tools(Arc::clone(&host)).await);
        let names = host.names();
        if names.is_empty() {
            return Err(Error::failed(problems.join("\n")));
        }
        for problem in problems {
            tracing::warn!("{problem}");
        }
        if stamp.is_some() {
            let watched = vec![(Arc::downgrade(&host), stamp)];
            tokio::spawn(watch(Arc::downgrade(self), watched));
        }
        Ok(names)
    }

    /// Puts the tools of a plugin in the place of those it had, and says what is wrong.
    fn take_in(&self, host: &Host, met: Met) -> Vec<String> {
        let (tools, mut problems) = match met {
            Ok(met) => met,
            Err(error) => (Vec::new(), vec![error.to_string()]),
        };
        let before = host.take_names();
        let mut names = Vec::new();
        for tool in tools {
            let name = tool.definition().name.clone();
            let is_others = self.tools.get(&name).is_some() && !before.contains(&name);
            if is_others && !host.overrides(&name) || names.contains(&name) {
                problems.push(format!(
                    "plugin {}: its tool \"{name}\" is left out, because there is one of that name ({})",
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

/// Takes in what a source has whenever that is something else, for as long as the
/// session lives.
async fn follow(
    session: Weak<Session>,
    sourced: Weak<Sourced>,
    mut changes: tokio::sync::watch::Receiver<u64>,
) {
    while changes.changed().await.is_ok() {
        let (Some(session), Some(sourced)) = (session.upgrade(), sourced.upgrade()) else {
            return;
        };
        let brought = sourced.source.tools(session.programs.as_ref()).await;
        for problem in sourced.take_in(&session.tools, brought) {
            tracing::warn!("{problem}");
        }
    }
}

/// Looks after the files of plugins, for as long as the session lives.
async fn watch(session: Weak<Session>, mut watched: Vec<(Weak<Host>, Option<u64>)>) {
    loop {
        tokio::time::sleep(LOOK).await;
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
            // It may still be being written.
            tokio::time::sleep(LOOK / 2).await;
            if host.stamp() != now {
                continue;
            }
            *known = now;
            host.renew().await;
            let met = plugin::tools(Arc::clone(&host)).await;
            for problem in session.take_in(&host, met) {
                tracing::warn!("{problem}");
            }
        }
    }
}

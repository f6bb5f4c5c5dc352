//! The registry of a session's tools, in a stable order.

use crate::runtime::{Session, exceptions};
use crate::{AnyTool, Definition, Error, Offered, Plugin, Tool, erase, schema};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use tokio::sync::watch;

/// A tool with this name already exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a tool named \"{0}\" is already registered; use replace to put another in its place")]
pub struct Duplicate(pub String);

/// The tools that can be called. They can be added and removed while calls run: a running
/// call keeps its tool.
#[derive(Clone, Default)]
pub struct Tools {
    entries: Arc<RwLock<Vec<Entry>>>,
    changes: Arc<watch::Sender<u64>>,
    /// The session that these tools belong to.
    session: Arc<OnceLock<Weak<Session>>>,
    left_out: Arc<RwLock<Vec<String>>>,
}

/// A tool and the checker for its arguments.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) checker: Arc<schema::Checker>,
    /// Checker of the arguments where the tool has the parameter for requesting exceptions.
    requesting: Arc<OnceLock<schema::Checker>>,
    pub(crate) origin: ToolOrigin,
}

/// The way a tool came into the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolOrigin {
    /// It belongs to the toolset, so it is known to yield to the scheduler.
    Toolset,
    /// The host program, a plugin or another source added it.
    Added,
}

impl Entry {
    fn new(tool: Arc<dyn AnyTool>, origin: ToolOrigin) -> Self {
        let ranges = match origin {
            ToolOrigin::Toolset => schema::Ranges::Clamp,
            ToolOrigin::Added => schema::Ranges::Refuse,
        };
        let checker = schema::Checker::new(&tool.definition().parameters, ranges);
        Self {
            tool,
            checker: Arc::new(checker),
            requesting: Arc::default(),
            origin,
        }
    }

    /// Returns the checker for a call that may request exceptions.
    pub(crate) fn requesting(&self) -> &schema::Checker {
        self.requesting.get_or_init(|| {
            let schema = exceptions::with_parameter(&self.tool.definition().parameters);
            schema::Checker::new(&schema, schema::Ranges::Clamp)
        })
    }
}

impl Tools {
    /// Returns a receiver that wakes when tools are added or removed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Starts a plugin in the session of these tools and appends its tools, or replaces
    /// existing ones as [`Plugin::overrides`] allows. The plugin ends when its tools are
    /// removed, or with the session. Returns the names of the added tools.
    ///
    /// # Errors
    /// When it cannot be started, or none of its tools can be used.
    pub async fn add_plugin(&self, plugin: Plugin) -> Result<Vec<String>, Error> {
        let session = self.session.get().and_then(Weak::upgrade);
        match session {
            Some(session) => session.add_plugin(plugin).await,
            None => Err(Error::failed(
                "cannot add a plugin: these tools do not belong to a running session",
            )),
        }
    }

    pub(crate) fn belong_to(&self, session: &Arc<Session>) {
        let _ = self.session.set(Arc::downgrade(session));
    }

    /// Returns the tools that the preset lists but that are not offered, because the
    /// session cannot run commands ([`Builder::commands`](crate::Builder::commands) enables
    /// them).
    #[must_use]
    pub fn left_out(&self) -> Vec<String> {
        let names = self.left_out.read();
        names.unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn leave_out(&self, name: &str) {
        tracing::warn!(
            "tool {name} is not offered: the session cannot run commands (`Builder::commands` enables them)"
        );
        let names = self.left_out.write();
        let mut names = names.unwrap_or_else(PoisonError::into_inner);
        names.push(name.to_owned());
    }

    /// Appends a tool.
    ///
    /// # Errors
    /// When a tool with this name exists.
    pub fn add(&self, tool: impl Tool) -> Result<(), Duplicate> {
        self.add_any(erase(tool))
    }

    /// Appends a tool with JSON arguments.
    ///
    /// # Errors
    /// When a tool with this name exists.
    pub fn add_any(&self, tool: Arc<dyn AnyTool>) -> Result<(), Duplicate> {
        self.insert(tool, ToolOrigin::Added)
    }

    pub(crate) fn insert(
        &self,
        tool: Arc<dyn AnyTool>,
        origin: ToolOrigin,
    ) -> Result<(), Duplicate> {
        let name = tool.definition().name.clone();
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entries
            .iter()
            .any(|entry| entry.tool.definition().name == name)
        {
            return Err(Duplicate(name));
        }
        entries.push(Entry::new(tool, origin));
        drop(entries);
        self.changed();
        Ok(())
    }

    /// Returns a snapshot of all entries.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.clone()
    }

    /// Appends a tool of another session.
    pub(crate) fn take(&self, entry: Entry) {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.push(entry);
        drop(entries);
        self.changed();
    }

    /// Replaces the tool with the same name, or appends it.
    pub fn replace(&self, tool: Arc<dyn AnyTool>) {
        let entry = Entry::new(tool, ToolOrigin::Added);
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        match entries
            .iter_mut()
            .find(|old| old.tool.definition().name == entry.tool.definition().name)
        {
            Some(old) => *old = entry,
            None => entries.push(entry),
        }
        drop(entries);
        self.changed();
    }

    /// Removes a tool and returns whether it existed.
    pub fn remove(&self, name: &str) -> bool {
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let before = entries.len();
        entries.retain(|entry| entry.tool.definition().name != name);
        let is_gone = entries.len() < before;
        drop(entries);
        if is_gone {
            self.changed();
        }
        is_gone
    }

    /// Returns the tool with the given name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<dyn AnyTool>> {
        self.entry(name).map(|entry| entry.tool)
    }

    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries
            .iter()
            .find(|entry| entry.tool.definition().name == name)
            .cloned()
    }

    /// Whether any of the tools runs programs.
    #[must_use]
    pub fn any_executes(&self) -> bool {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries
            .iter()
            .any(|entry| entry.tool.effect() == crate::Effect::Execute)
    }

    /// Returns all definitions as the model sees them, in order.
    #[must_use]
    pub fn definitions(&self) -> Vec<Definition> {
        let entries = self.entries();
        let names = entries.iter();
        let names = names.map(|entry| entry.tool.definition().name.clone());
        let offered = Offered::new(names.collect());
        let all = entries.iter();
        all.map(|entry| entry.tool.definition_among(&offered))
            .collect()
    }

    /// Returns all names, in order.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries
            .iter()
            .map(|entry| entry.tool.definition().name.clone())
            .collect()
    }
}

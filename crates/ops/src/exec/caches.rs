//! Layers over the folders in which programs keep caches.
//!
//! Commands cannot write in the user's home, but builds need caches. So each cache folder
//! gets a layer that belongs to the work folder: commands see the user's files, and whatever
//! they write goes to haft's state folder, where nothing outside the sandbox looks for it.
//!
//! The layers are kept between sessions. Two mounts must not share one, so a session leases
//! a *slot*; sessions of the same process share it. Where no layer can be mounted, variables
//! lead programs to plain folders in the slot, as far as they have such variables.

pub(super) mod disk;
mod layout;
mod places;
mod slot;

pub use disk::Size;
pub use places::{CachePlace, places};
pub use slot::{clean, kept};

use crate::blocking::{self, Weight};
use crate::executor::sandbox::{
    Helper, LayerSource, Level, Plan, Request, Scaffold, SessionLayers,
};
use crate::scope::Reading;
use layout::Layout;
use slot::Slot;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as Lock, PoisonError, Weak};
use tokio::sync::Mutex;

/// Settings for the caches of a work folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// Folders in which programs keep caches.
    pub places: Vec<CachePlace>,
    /// Maximum size of all layers of the work folder in bytes. When it is exceeded, they
    /// are emptied.
    pub max: u64,
}

/// Caches of a session's commands. They are opened when the first command runs.
#[derive(Debug)]
pub struct Caches {
    settings: CacheSettings,
    /// Folder for the layers of this work folder.
    folder: PathBuf,
    opened: Lock<Option<Arc<OpenCaches>>>,
}

/// What decides whether two sessions can share a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    settings: CacheSettings,
    folder: PathBuf,
    level: Level,
    reading: Reading,
    roots: Vec<PathBuf>,
}

/// Everything that is open in this process.
static OPENED: Mutex<Vec<(Key, Weak<OpenCaches>)>> = Mutex::const_new(Vec::new());

impl Caches {
    /// Creates the caches of a work folder, with their layers in `folder`.
    #[must_use]
    pub fn new(settings: CacheSettings, folder: PathBuf) -> Self {
        Self {
            settings,
            folder,
            opened: Lock::default(),
        }
    }

    /// Returns the folder of the layers.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns why some folders have no layer. Empty before the first command.
    #[must_use]
    pub fn problems(&self) -> Vec<String> {
        let opened = lock(&self.opened);
        opened
            .as_ref()
            .map(|opened| opened.problems.clone())
            .unwrap_or_default()
    }

    /// Returns the caches for a command, or `None` if there can be none: a command works
    /// without them, too.
    pub(super) async fn open(
        &self,
        helper: &Helper,
        level: Level,
        request: &Request,
    ) -> Option<Arc<OpenCaches>> {
        let key = Key {
            settings: self.settings.clone(),
            folder: self.folder.clone(),
            level,
            reading: request.rules.reading,
            roots: super::sandbox::roots(request),
        };
        let known = lock(&self.opened).clone();
        if let Some(known) = known.filter(|known| known.key == key && !known.slot.is_full()) {
            known.slot.check_size(self.settings.max);
            return Some(known);
        }
        let mut all = OPENED.lock().await;
        all.retain(|(_, opened)| opened.strong_count() > 0);
        let shared = all.iter().find(|(known, _)| *known == key);
        let shared = shared
            .and_then(|(_, opened)| opened.upgrade())
            .filter(|opened| !opened.slot.is_full());
        let opened = match shared {
            Some(opened) => opened,
            None => {
                // Its slot can be used again at once if no command uses it.
                *lock(&self.opened) = None;
                let (helper, request, key) = (helper.clone(), request.clone(), key.clone());
                let open = move || Ok(OpenCaches::new(&helper, &request, key));
                let opened = Arc::new(blocking::run(Weight::Heavy, open).await.ok()??);
                all.push((opened.key.clone(), Arc::downgrade(&opened)));
                opened
            }
        };
        drop(all);
        *lock(&self.opened) = Some(Arc::clone(&opened));
        Some(opened)
    }

    /// Measures the layers at the end of a session, if that was not done lately.
    pub(super) async fn end(&self) {
        let opened = lock(&self.opened).take();
        if let Some(opened) = opened {
            let measure = move || {
                opened.slot.measure_briefly();
                Ok(())
            };
            let _ = blocking::run(Weight::Heavy, measure).await;
        }
    }
}

/// Caches that are ready for commands.
#[derive(Debug)]
pub(super) struct OpenCaches {
    key: Key,
    pub(super) layers: Option<Arc<SessionLayers>>,
    /// Folders with a layer, in the order of the layers.
    paths: Vec<PathBuf>,
    scaffolds: Vec<Scaffold>,
    /// Files of the user to show in a layer that hides them.
    readable: Vec<PathBuf>,
    /// Folder that the variables lead to.
    plain: Option<PathBuf>,
    pub(super) variables: Vec<(&'static str, PathBuf)>,
    problems: Vec<String>,
    slot: Slot,
}

impl OpenCaches {
    fn new(helper: &Helper, request: &Request, key: Key) -> Option<Self> {
        let is_strict = matches!(key.reading, Reading::Roots | Reading::RootsAndSystem);
        // What was read at a lower mode must not appear at `strict`.
        let kind = if is_strict { "strict-" } else { "" };
        let slot = match Slot::lease(&key.folder, kind, key.settings.max) {
            Ok(slot) => slot,
            Err(error) => {
                tracing::warn!(%error, "commands have no caches");
                return None;
            }
        };
        let mut caches = Self {
            layers: None,
            paths: Vec::new(),
            scaffolds: Vec::new(),
            readable: Vec::new(),
            plain: None,
            variables: Vec::new(),
            problems: Vec::new(),
            slot,
            key,
        };
        let all = &caches.key.settings.places;
        let layout = Layout::new(all, request, &caches.key.folder);
        let mut mounted = Vec::new();
        if caches.key.level == Level::Full {
            mounted = caches.mount(helper, &layout);
        }
        let mut moved: Vec<_> = layout
            .places
            .iter()
            .filter(|(path, _)| !mounted.iter().any(|mounted| path.starts_with(mounted)))
            .map(|(_, place)| place.clone())
            .collect();
        moved.dedup();
        caches.redirect(&moved);
        caches.slot.check_size(caches.key.settings.max);
        Some(caches)
    }

    /// Mounts the layers. Returns the folders that have one.
    fn mount(&mut self, helper: &Helper, layout: &Layout) -> Vec<PathBuf> {
        let mut sources: Vec<(PathBuf, LayerSource)> = Vec::new();
        for layer in &layout.layers {
            if layout.unreachable.contains(&layer.path) {
                let reason = "its folder cannot be added to the one around it";
                self.problems
                    .push(format!("{}: {reason}", layer.path.display()));
                continue;
            }
            match self.slot.source(&layer.path, layer.lower.as_deref()) {
                Ok(source) => sources.push((layer.path.clone(), source)),
                Err(error) => self
                    .problems
                    .push(format!("{}: {error}", layer.path.display())),
            }
        }
        let lease = match self.slot.handle() {
            Ok(lease) => lease,
            Err(error) => {
                self.problems.push(error.to_string());
                return Vec::new();
            }
        };
        let (paths, sources): (Vec<_>, Vec<_>) = sources.into_iter().unzip();
        match SessionLayers::open(helper, &sources, lease) {
            Ok((layers, failures)) => {
                for (path, failure) in paths.into_iter().zip(failures) {
                    match failure {
                        None => self.paths.push(path),
                        Some(reason) => {
                            self.problems.push(format!("{}: {reason}", path.display()));
                        }
                    }
                }
                self.layers = Some(Arc::new(layers));
                self.scaffolds.clone_from(&layout.scaffolds);
                self.readable.clone_from(&layout.readable);
            }
            Err(error) => self.problems.push(error.to_string()),
        }
        self.paths.clone()
    }

    /// Leads programs to plain folders instead.
    fn redirect(&mut self, places: &[CachePlace]) {
        let plain = match self.slot.plain() {
            Ok(plain) => plain,
            Err(error) => return self.problems.push(error.to_string()),
        };
        let variables = places.iter().flat_map(|place| place.moved(&plain));
        self.variables = variables.collect();
        for (_, folder) in &self.variables {
            if let Err(error) = crate::private::folder(folder) {
                self.problems.push(format!("{}: {error}", folder.display()));
            }
        }
        self.plain = (!self.variables.is_empty()).then_some(plain);
    }

    /// Adds the caches to a command's plan.
    pub(super) fn add_to(&self, plan: &mut Plan) -> crate::executor::sandbox::Result<()> {
        if let Some(plain) = &self.plain {
            plan.add_own_folder(plain)?;
        }
        if self.layers.is_some() {
            let readable = self.readable.clone();
            plan.add_layers(self.paths.clone(), self.scaffolds.clone(), readable);
        }
        Ok(())
    }
}

fn lock<T>(what: &Lock<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

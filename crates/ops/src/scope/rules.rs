//! The guard that applies the file rules of a sandbox mode to real paths.

use super::links::{self, Last};
use super::mode::{FileRules, Reading, Writing};
use super::protect::Protect;
use super::secret::{
    HOST_KEYS, SECRET, SYSTEM_SECRET, below_home_is_secret, is_secret_elsewhere,
    is_secret_of_system, is_secret_proc,
};
use super::temp::{PrivateTemp, SHARED, Temp};
use super::{Access, FilePath, Root, ScopeConfig};
use crate::{Error, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders readable at `strict`: programs, libraries and their settings.
pub(crate) const SYSTEM: [&str; 11] = [
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/libo32", "/etc", "/opt",
    "/nix",
];

/// Applies the rules to real paths. Shared by every path it admitted.
#[derive(Debug)]
pub(super) struct Guard {
    rules: FileRules,
    /// The work folder first, then the other roots.
    roots: Vec<Arc<Root>>,
    readable: Vec<PathBuf>,
    /// The root of the disk, if the rules allow anything outside the roots.
    whole: Option<Arc<Root>>,
    own: Vec<PathBuf>,
    homes: Vec<PathBuf>,
    /// Real paths of secret paths that are links.
    secrets: Vec<PathBuf>,
    protect: Protect,
    temp: Option<Temp>,
    detached: bool,
}

impl Guard {
    pub(super) fn build(config: ScopeConfig) -> Result<Self> {
        let ScopeConfig {
            work_dir,
            roots: more,
            readable,
            home,
            git_configs,
            own,
            protect,
            temp,
            rules,
        } = config;
        let real = |path: &Path| {
            links::real_path(path, Last::Follow, Reading::Anywhere).map_err(|_| {
                Error::InvalidPath {
                    path: path.to_string_lossy().into_owned(),
                    reason: "too many levels of symbolic links",
                }
            })
        };
        let work_dir = real(&work_dir)?;
        let mut roots = vec![Arc::new(Root::open(work_dir.clone())?)];
        for root in more {
            let root = work_dir.join(root);
            // A program that may write there could redirect the link to any path.
            let led = links::real_below(Path::new("/"), &root, Last::Follow, Reading::Anywhere)
                .is_ok_and(|found| {
                    let writable = |link: &PathBuf| containing(&roots, link).is_some();
                    found.aliases.iter().any(writable)
                });
            if led {
                return Err(Error::InvalidPath {
                    path: root.to_string_lossy().into_owned(),
                    reason: "a root must not lead through a link in a writable folder",
                });
            }
            roots.push(Arc::new(Root::open(real(&root)?)?));
        }
        let readable = readable
            .iter()
            .map(|path| real(path))
            .collect::<Result<Vec<_>>>()?;
        let whole = match rules.reading {
            Reading::Roots if rules.writing != Writing::Anywhere => None,
            _ => Some(Arc::new(Root::open(PathBuf::from("/"))?)),
        };
        let own_links = own.iter().flat_map(|path| super::links_on(path)).collect();
        let own = own
            .iter()
            .map(|path| real(path))
            .collect::<Result<Vec<_>>>()?;
        let homes = home
            .iter()
            .map(|path| real(path))
            .collect::<Result<Vec<_>>>()?;
        let secrets = homes
            .iter()
            .chain(home.iter())
            .flat_map(|home| SECRET.iter().map(|secret| home.join(secret)))
            .chain(SYSTEM_SECRET.map(PathBuf::from))
            .filter_map(|secret| real(&secret).ok())
            .collect();
        let protect = Protect::build(
            &roots,
            &own,
            own_links,
            homes.first().map(PathBuf::as_path),
            &git_configs,
            protect,
        );
        let temp = match temp {
            Some(PrivateTemp {
                folder,
                replaces_shared,
            }) if rules.reading != Reading::Anywhere => {
                Some(Temp::new(real(&folder)?, replaces_shared))
            }
            _ => None,
        };
        Ok(Self {
            rules,
            roots,
            readable,
            whole,
            own,
            homes,
            secrets,
            protect,
            temp,
            detached: false,
        })
    }

    pub(super) fn detached() -> Self {
        Self {
            rules: FileRules {
                reading: Reading::Roots,
                writing: Writing::Roots,
            },
            roots: vec![Arc::new(Root::detached())],
            readable: Vec::new(),
            whole: None,
            own: Vec::new(),
            homes: Vec::new(),
            secrets: Vec::new(),
            protect: Protect::nothing(),
            temp: None,
            detached: true,
        }
    }

    pub(super) const fn is_detached(&self) -> bool {
        self.detached
    }

    pub(super) const fn rules(&self) -> FileRules {
        self.rules
    }

    /// Returns the roots other than the work folder.
    pub(super) fn more_roots(&self) -> Vec<PathBuf> {
        let roots = self.roots.iter().skip(1);
        roots.map(|root| root.path().to_owned()).collect()
    }

    pub(super) fn work_dir(&self) -> &Path {
        self.roots
            .first()
            .map_or(Path::new("/"), |root| root.path())
    }

    /// Returns the root that an absolute path is below, and the rest of the path.
    pub(super) fn known<'a>(&'a self, absolute: &'a Path) -> (&'a Path, &'a Path) {
        containing(&self.roots, absolute)
            .and_then(|root| Some((root.path(), absolute.strip_prefix(root.path()).ok()?)))
            .unwrap_or((Path::new("/"), absolute))
    }

    /// Returns the real path of something that is named in a shared temp folder. Roots
    /// there are not redirected.
    pub(super) fn moved(&self, path: &Path) -> Option<PathBuf> {
        let temp = self.temp.as_ref()?;
        let is_named = containing(&self.roots, path).is_some()
            || self.readable.iter().any(|folder| path.starts_with(folder))
            || temp.contains(path);
        if is_named { None } else { temp.place_of(path) }
    }

    pub(super) fn visible_path(&self, real: &Path) -> Option<PathBuf> {
        self.temp.as_ref()?.visible_path(real)
    }

    /// Decides about a real path. A protected path is reported as protected before any
    /// other check.
    pub(super) fn admit(
        self: &Arc<Self>,
        given: &str,
        real: PathBuf,
        aliases: &[PathBuf],
        access: Access,
    ) -> Result<FilePath> {
        if let Some(temp) = self.temp.as_ref().filter(|temp| temp.contains(&real)) {
            return Ok(self.anchor(given, real, &Arc::new(temp.open()?)));
        }
        let writes = access != Access::Read;
        // Names in the private temp folder are only the link's own location.
        let in_temp = |path: &&PathBuf| self.temp.as_ref().is_some_and(|temp| temp.contains(path));
        let named = || aliases.iter().filter(|path| !in_temp(path)).chain([&real]);
        if writes && named().any(|path| self.protect.covers(path)) {
            let reason = named().find_map(|path| Protect::why(given, path));
            return Err(Error::Protected {
                path: given.to_owned(),
                reason,
            });
        }
        if !writes
            && let Some(folder) = self.readable.iter().find(|folder| real.starts_with(folder))
        {
            // Opened now, because the folder may not exist before the first output.
            let root = Root::open(folder.clone()).map_err(|_| Error::NotFound {
                path: given.to_owned(),
                similar: Vec::new(),
            })?;
            return Ok(self.anchor(given, real, &Arc::new(root)));
        }
        if named().any(|path| self.hides(path)) {
            let remedy = match self.rules.reading {
                Reading::Roots => "it is a secret place",
                _ => "it is a secret place; only `--sandbox off` allows those",
            };
            return Err(Error::NotAllowed {
                path: given.to_owned(),
                remedy: remedy.to_owned(),
            });
        }
        let root = if writes {
            match self.rules.writing {
                Writing::Nothing => None,
                Writing::Roots => containing(&self.roots, &real),
                Writing::Anywhere => containing(&self.roots, &real).or(self.whole.as_ref()),
            }
        } else {
            containing(&self.roots, &real).or_else(|| match self.rules.reading {
                Reading::Anywhere | Reading::NotSecret => self.whole.as_ref(),
                Reading::RootsAndSystem if is_system(&real) => self.whole.as_ref(),
                Reading::RootsAndSystem | Reading::Roots => None,
            })
        };
        match root {
            Some(root) => {
                root.check()?;
                Ok(self.anchor(given, real, root))
            }
            None => Err(self.not_allowed(given, access)),
        }
    }

    pub(super) fn anchor_detached(self: &Arc<Self>, given: &str, real: &Path) -> FilePath {
        let below = real.strip_prefix("/").unwrap_or(real).to_owned();
        let root = self
            .roots
            .first()
            .map_or_else(|| Arc::new(Root::detached()), Arc::clone);
        FilePath {
            given: given.to_owned(),
            real: real.to_owned(),
            below,
            root,
            guard: Arc::clone(self),
            mounted: None,
            filter: None,
            was_there: false,
            was_file: false,
        }
    }

    fn anchor(self: &Arc<Self>, given: &str, real: PathBuf, root: &Arc<Root>) -> FilePath {
        let below = real.strip_prefix(root.path()).unwrap_or(&real).to_owned();
        FilePath {
            given: given.to_owned(),
            real,
            below,
            root: Arc::clone(root),
            guard: Arc::clone(self),
            mounted: None,
            filter: None,
            was_there: false,
            was_file: false,
        }
    }

    /// Whether a real path is secret. At `off` none is.
    pub(super) fn hides(&self, real: &Path) -> bool {
        if self.detached || self.rules.reading == Reading::Anywhere {
            return false;
        }
        if self.own.iter().any(|own| real.starts_with(own)) {
            return !self.readable.iter().any(|folder| real.starts_with(folder))
                && !self.temp.as_ref().is_some_and(|temp| temp.contains(real));
        }
        self.moved(real).is_some()
            || self.secrets.iter().any(|secret| real.starts_with(secret))
            || is_secret_proc(real)
            || self
                .homes
                .iter()
                .any(|home| below_home_is_secret(home, real))
            || is_secret_elsewhere(real)
            || is_secret_of_system(real)
    }

    /// Whether [`hides`](Self::hides) may be true for anything in or below `folder`.
    pub(super) fn hides_below(&self, folder: &Path) -> bool {
        if self.detached || self.rules.reading == Reading::Anywhere {
            return false;
        }
        let related = |place: &Path| place.starts_with(folder) || folder.starts_with(place);
        let in_home = |home: &Path| {
            home.starts_with(folder)
                || folder.strip_prefix(home).is_ok_and(|below| {
                    SECRET.iter().any(|secret| {
                        Path::new(secret).starts_with(below) || below.starts_with(secret)
                    })
                })
        };
        let in_some_home = Path::new("/home").starts_with(folder)
            || folder.strip_prefix("/home").is_ok_and(|below| {
                below
                    .components()
                    .next()
                    .is_some_and(|name| in_home(&Path::new("/home").join(name)))
            });
        self.own.iter().any(|own| related(own))
            || related(Path::new("/proc"))
            || self.temp.is_some() && SHARED.iter().any(|shared| related(Path::new(shared)))
            || self.homes.iter().any(|home| in_home(home))
            || self.secrets.iter().any(|secret| related(secret))
            || in_home(Path::new("/root"))
            || in_some_home
            || related(Path::new(HOST_KEYS))
            || SYSTEM_SECRET
                .iter()
                .any(|secret| related(Path::new(secret)))
    }

    /// Returns the refusal, which is the same whether the path exists or not.
    pub(super) fn not_allowed(&self, given: &str, access: Access) -> Error {
        let remedy = if access == Access::Read {
            match self.rules.reading {
                Reading::Anywhere | Reading::NotSecret => {
                    "it is a secret place; only `--sandbox off` allows those"
                }
                Reading::RootsAndSystem => {
                    "add its folder to `tools.roots`, or use `--sandbox workspace`"
                }
                Reading::Roots => "add its folder to `tools.roots`",
            }
        } else {
            match self.rules.writing {
                Writing::Nothing => {
                    "nothing is writable; use `--sandbox workspace` to write in the work folder"
                }
                Writing::Roots if self.rules.reading == Reading::Roots => {
                    "add its folder to `tools.roots`"
                }
                Writing::Roots => {
                    "only the work folder is writable; add the folder to `tools.roots`, or use `--sandbox off`"
                }
                Writing::Anywhere => "it is one of haft's own folders",
            }
        };
        Error::NotAllowed {
            path: given.to_owned(),
            remedy: remedy.to_owned(),
        }
    }
}

/// Returns the innermost root that contains `real`, compared by components.
fn containing<'a>(roots: &'a [Arc<Root>], real: &Path) -> Option<&'a Arc<Root>> {
    roots
        .iter()
        .filter(|root| real.starts_with(root.path()))
        .max_by_key(|root| root.path().components().count())
}

fn is_system(real: &Path) -> bool {
    SYSTEM.iter().any(|folder| real.starts_with(folder))
}

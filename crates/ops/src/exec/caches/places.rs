//! The folders in which programs keep caches, and the variables that move them.

use std::path::{Path, PathBuf};

/// A folder for caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePlace {
    /// Its absolute path. Need not exist.
    pub path: PathBuf,
    /// How programs are led elsewhere where no layer can be mounted.
    redirects: Vec<Redirect>,
}

/// A variable that moves a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Redirect {
    variable: &'static str,
    /// Content of the folder; decides whether an existing one may be left unused.
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Results that can be made again without a network.
    Results,
    /// Downloads, settings or data: if the folder exists, it must be read.
    Needed,
}

use Content::{Needed, Results};

/// A row of the table: the variable that names the folder, its usual place in the home, the
/// part of it that is a cache, and the variables that move the cache.
struct Row(
    Option<&'static str>,
    &'static str,
    &'static [&'static str],
    &'static [(&'static str, Content)],
);

/// The folders, outer ones before the ones that are usually inside them.
const ROWS: [Row; 33] = [
    Row(
        Some("XDG_CACHE_HOME"),
        ".cache",
        &[""],
        &[("XDG_CACHE_HOME", Needed)],
    ),
    Row(
        Some("XDG_DATA_HOME"),
        ".local/share",
        &[""],
        &[("XDG_DATA_HOME", Needed)],
    ),
    Row(
        Some("XDG_STATE_HOME"),
        ".local/state",
        &[""],
        &[("XDG_STATE_HOME", Needed)],
    ),
    Row(
        Some("npm_config_cache"),
        ".npm",
        &[""],
        &[("npm_config_cache", Results)],
    ),
    Row(Some("NPM_CONFIG_CACHE"), ".npm", &[""], &[]),
    Row(
        Some("CARGO_HOME"),
        ".cargo",
        &["registry", "git"],
        &[("CARGO_HOME", Needed)],
    ),
    Row(Some("GOPATH"), "go", &["pkg"], &[]),
    Row(
        Some("GOMODCACHE"),
        "go/pkg/mod",
        &[""],
        &[("GOMODCACHE", Needed)],
    ),
    Row(
        Some("GOCACHE"),
        ".cache/go-build",
        &[""],
        &[("GOCACHE", Results)],
    ),
    Row(
        Some("GRADLE_USER_HOME"),
        ".gradle",
        &[""],
        &[("GRADLE_USER_HOME", Needed)],
    ),
    Row(None, ".m2", &["repository"], &[]),
    Row(
        None,
        ".pnpm-store",
        &[""],
        &[("npm_config_store_dir", Needed)],
    ),
    Row(Some("PNPM_HOME"), ".local/share/pnpm", &[""], &[]),
    Row(
        Some("YARN_GLOBAL_FOLDER"),
        ".yarn",
        &[""],
        &[("YARN_GLOBAL_FOLDER", Needed)],
    ),
    Row(
        Some("YARN_CACHE_FOLDER"),
        ".cache/yarn",
        &[""],
        &[("YARN_CACHE_FOLDER", Results)],
    ),
    Row(Some("BUN_INSTALL"), ".bun", &[""], &[]),
    Row(
        Some("BUN_INSTALL_CACHE_DIR"),
        ".bun/install/cache",
        &[""],
        &[("BUN_INSTALL_CACHE_DIR", Needed)],
    ),
    Row(None, ".deno", &[""], &[]),
    Row(
        Some("DENO_DIR"),
        ".cache/deno",
        &[""],
        &[("DENO_DIR", Needed)],
    ),
    Row(
        Some("NUGET_PACKAGES"),
        ".nuget/packages",
        &[""],
        &[("NUGET_PACKAGES", Needed)],
    ),
    Row(None, ".gem", &[""], &[("GEM_SPEC_CACHE", Results)]),
    Row(
        None,
        ".bundle",
        &["cache"],
        &[("BUNDLE_USER_CACHE", Needed)],
    ),
    Row(
        Some("PIP_CACHE_DIR"),
        ".cache/pip",
        &[""],
        &[("PIP_CACHE_DIR", Results)],
    ),
    Row(
        Some("UV_CACHE_DIR"),
        ".cache/uv",
        &[""],
        &[("UV_CACHE_DIR", Results)],
    ),
    Row(
        Some("POETRY_CACHE_DIR"),
        ".cache/pypoetry",
        &[""],
        &[("POETRY_CACHE_DIR", Results)],
    ),
    Row(
        Some("PLAYWRIGHT_BROWSERS_PATH"),
        ".cache/ms-playwright",
        &[""],
        &[],
    ),
    Row(Some("HF_HOME"), ".cache/huggingface", &[""], &[]),
    Row(
        Some("CCACHE_DIR"),
        ".cache/ccache",
        &[""],
        &[("CCACHE_DIR", Results)],
    ),
    Row(
        Some("SCCACHE_DIR"),
        ".cache/sccache",
        &[""],
        &[("SCCACHE_DIR", Results)],
    ),
    Row(
        Some("PUB_CACHE"),
        ".pub-cache",
        &[""],
        &[("PUB_CACHE", Needed)],
    ),
    Row(
        Some("COMPOSER_CACHE_DIR"),
        ".composer/cache",
        &[""],
        &[("COMPOSER_CACHE_DIR", Results)],
    ),
    Row(Some("CONAN_HOME"), ".conan2", &[""], &[]),
    Row(Some("JULIA_DEPOT_PATH"), ".julia", &[""], &[]),
];

/// Folders that get a layer only if they exist, because few programs use them.
const RARE: [&str; 16] = [
    ".bundle",
    ".pub-cache",
    ".composer/cache",
    ".conan2",
    ".julia",
    ".ccache",
    ".ivy2",
    ".sbt",
    ".stack",
    ".cabal",
    ".hex",
    ".mix",
    ".konan",
    ".node-gyp",
    ".electron",
    ".nv",
];

/// Returns the folders for caches, as the variables and the home say.
pub fn places(home: Option<&Path>, variable: impl Fn(&str) -> Option<PathBuf>) -> Vec<CachePlace> {
    let mut places: Vec<CachePlace> = Vec::new();
    let mut add = |path: PathBuf, redirects: Vec<Redirect>| match places
        .iter_mut()
        .find(|known| known.path == path)
    {
        Some(known) => known.redirects.extend(redirects),
        None => places.push(CachePlace { path, redirects }),
    };
    for Row(name, usual, parts, redirects) in ROWS {
        let named = name.and_then(&variable);
        let is_rare = RARE.contains(&usual);
        let usual = home.map(|home| home.join(usual));
        let Some(base) = named.clone().or(usual) else {
            continue;
        };
        if is_rare && named.is_none() && !is_folder(&base) {
            continue;
        }
        let redirects = redirects.iter().map(|(variable, content)| Redirect {
            variable,
            content: *content,
        });
        let redirects: Vec<_> = redirects.collect();
        for (number, part) in parts.iter().enumerate() {
            // A `GOPATH` can be a list.
            for base in std::env::split_paths(&base).filter(|base| base.is_absolute()) {
                let redirects = if number == 0 {
                    redirects.clone()
                } else {
                    Vec::new()
                };
                let path = if part.is_empty() {
                    base
                } else {
                    base.join(part)
                };
                add(path, redirects);
            }
        }
    }
    for name in RARE {
        if let Some(path) = home
            .map(|home| home.join(name))
            .filter(|path| is_folder(path))
        {
            add(path, Vec::new());
        }
    }
    places
}

impl CachePlace {
    /// Returns the variables that lead programs to folders in `plain`, if this folder cannot
    /// be written.
    pub(super) fn moved(&self, plain: &Path) -> Vec<(&'static str, PathBuf)> {
        let is_there = is_folder(&self.path);
        let redirects = self.redirects.iter();
        redirects
            .filter(|redirect| redirect.content == Results || !is_there)
            .map(|redirect| (redirect.variable, plain.join(redirect.variable)))
            .collect()
    }
}

fn is_folder(path: &Path) -> bool {
    let found = rustix::fs::stat(path);
    found.is_ok_and(|found| rustix::fs::FileType::from_raw_mode(found.st_mode).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| PathBuf::from(value))
        };
        let places = places(Some(Path::new("/no-home")), variable);
        let paths = places.iter().map(|place| place.path.display().to_string());
        paths.collect()
    }

    #[test]
    fn the_usual_folders_are_used_if_no_variable_moves_them() {
        let found = paths(&[]);
        for path in [
            ".cache",
            ".npm",
            ".cargo/registry",
            ".cargo/git",
            "go/pkg",
            ".m2/repository",
        ] {
            assert!(
                found.contains(&format!("/no-home/{path}")),
                "{path}: {found:?}"
            );
        }
        assert!(!found.contains(&"/no-home/.julia".to_owned()), "{found:?}");
    }

    #[test]
    fn variables_move_them() {
        let found = paths(&[
            ("XDG_CACHE_HOME", "/c"),
            ("GOPATH", "/a:/b"),
            ("CARGO_HOME", "/cargo"),
        ]);
        for path in ["/c", "/a/pkg", "/b/pkg", "/cargo/registry"] {
            assert!(found.contains(&path.to_owned()), "{path}: {found:?}");
        }
        for path in ["/no-home/.cache", "/no-home/go/pkg"] {
            assert!(!found.contains(&path.to_owned()), "{path}: {found:?}");
        }
    }

    #[test]
    fn only_what_can_be_made_again_is_moved_away_from_an_existing_folder() {
        let home = tempfile::tempdir().unwrap();
        rustix::fs::mkdir(home.path().join(".npm"), rustix::fs::Mode::RWXU).unwrap();
        let moved: Vec<&str> = places(Some(home.path()), |_| None)
            .iter()
            .flat_map(|place| place.moved(Path::new("/plain")))
            .map(|(variable, _)| variable)
            .collect();
        assert!(
            moved.contains(&"GOCACHE") && moved.contains(&"CARGO_HOME"),
            "{moved:?}"
        );
        assert!(moved.contains(&"npm_config_cache"), "{moved:?}");
        rustix::fs::mkdir(home.path().join(".cargo"), rustix::fs::Mode::RWXU).unwrap();
        rustix::fs::mkdir(home.path().join(".cargo/registry"), rustix::fs::Mode::RWXU).unwrap();
        let all = places(Some(home.path()), |_| None);
        let cargo = all
            .iter()
            .find(|place| place.path.ends_with("registry"))
            .unwrap();
        assert_eq!(cargo.moved(Path::new("/plain")), []);
    }
}

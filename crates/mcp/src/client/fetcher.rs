//! Programs that download a server before they start it, such as `npx`, and the folder in
//! which they keep what they downloaded.
//!
//! A fetch that is killed can leave a package that never works again. Each start is
//! therefore noted in the folder; after a failed start, or before the next one if haft
//! itself was killed, the packages that this start wrote are removed.

use haft::Cache;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Folder of the notes about starts in progress.
const STARTS: &str = "starts";

/// Folders with unpacked packages, one folder for each package. Everything else in the
/// caches of these programs is written atomically.
const UNPACKED: [&str; 4] = [
    "npm_config_cache/_npx",
    "PIPX_HOME/.cache",
    "PIPX_HOME/venvs",
    "UV_TOOL_DIR",
];

/// File times may be a little older than the clock says.
const CLOCK_SLACK: Duration = Duration::from_millis(50);

/// A program that downloads a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fetcher {
    /// Name of the program, such as `npx`.
    program: String,
    /// The package, if the arguments name it.
    package: Option<String>,
    /// Variables that tell the program where its cache is.
    variables: Vec<&'static str>,
}

impl Fetcher {
    /// Returns the fetcher of a command line. Another program may start it, as in `env npx`
    /// or `timeout 5 npx`.
    pub(super) fn of(program: &Path, arguments: &[OsString]) -> Option<Self> {
        let words = arguments.iter().filter_map(|word| word.to_str());
        let words = words.flat_map(str::split_whitespace);
        let words: Vec<&str> = program.to_str().into_iter().chain(words).collect();
        let mut found: Option<Self> = None;
        for (at, word) in words.iter().enumerate() {
            let Some((name, variables)) = known(word) else {
                continue;
            };
            match &mut found {
                Some(found) => found.variables.extend(variables),
                None => {
                    let rest = words.get(at + 1..).unwrap_or_default();
                    found = Some(Self {
                        program: name.to_owned(),
                        package: package(name, rest),
                        variables: variables.to_vec(),
                    });
                }
            }
        }
        if let Some(found) = &mut found {
            found.variables.sort_unstable();
            found.variables.dedup();
        }
        found
    }

    /// Describes the download for the user.
    pub(super) fn describe(&self) -> String {
        match &self.package {
            Some(package) => format!("fetching {package} with {}", self.program),
            None => format!("fetching with {}", self.program),
        }
    }

    /// Returns the cache for the program, unless it keeps downloads elsewhere.
    pub(super) fn cache(&self, folder: Option<&Path>) -> Option<Cache> {
        let folder = folder?.to_owned();
        (!self.variables.is_empty()).then(|| Cache {
            folder,
            variables: self.variables.clone(),
        })
    }
}

/// Returns a fetcher's name, and the variables that tell it where its cache is.
fn known(word: &str) -> Option<(&'static str, &'static [&'static str])> {
    let npm: &[&str] = &["npm_config_cache"];
    let bun: &[&str] = &["BUN_INSTALL_CACHE_DIR"];
    let uv: &[&str] = &["UV_CACHE_DIR", "UV_TOOL_DIR", "UV_PYTHON_INSTALL_DIR"];
    let name = Path::new(word).file_name()?.to_str()?;
    Some(match name {
        "npx" => ("npx", npm),
        "npm" => ("npm", npm),
        "pnpm" => ("pnpm", npm),
        "pnpx" => ("pnpx", npm),
        "yarn" => ("yarn", npm),
        "bunx" => ("bunx", bun),
        "bun" => ("bun", bun),
        "uvx" => ("uvx", uv),
        "uv" => ("uv", uv),
        "pipx" => ("pipx", &["PIPX_HOME", "PIP_CACHE_DIR"]),
        "deno" => ("deno", &["DENO_DIR"]),
        // These keep images in a service of their own.
        "docker" => ("docker", &[]),
        "podman" => ("podman", &[]),
        _ => return None,
    })
}

/// Returns the package in the arguments of a fetcher.
fn package(fetcher: &str, arguments: &[&str]) -> Option<String> {
    if matches!(fetcher, "docker" | "podman") {
        return None;
    }
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match *word {
            "-p" | "--package" | "--from" => return words.next().map(|name| (*name).to_owned()),
            "exec" | "dlx" | "x" | "tool" | "run" => {}
            word if word.starts_with('-') => {}
            word => return Some(word.to_owned()),
        }
    }
    None
}

/// A start in progress that may write to the cache. Dropping it means that the start was
/// cancelled; the next one then cleans up.
pub(super) struct NotedStart {
    folder: PathBuf,
    note: PathBuf,
    since: SystemTime,
    is_over: bool,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the package cache is haft's own folder, outside every scope"
)]
impl NotedStart {
    /// Cleans up after starts that were killed, and notes this one. Blocks.
    pub(super) fn begin(folder: &Path) -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let starts = folder.join(STARTS);
        haft::ops::private::folder(&starts).ok()?;
        for note in fs::read_dir(&starts).ok()?.filter_map(Result::ok) {
            let name = note.file_name();
            let owner = name.to_str().and_then(|name| name.split('-').next());
            let is_running = owner.is_some_and(|pid| Path::new("/proc").join(pid).exists());
            if is_running {
                continue;
            }
            if let Ok(since) = note.metadata().and_then(|about| about.modified()) {
                remove_packages(folder, since);
            }
            let _ = fs::remove_file(note.path());
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let note = starts.join(format!("{}-{number}", std::process::id()));
        let since = SystemTime::now().checked_sub(CLOCK_SLACK)?;
        fs::write(&note, "").ok()?;
        Some(Self {
            folder: folder.to_owned(),
            note,
            since,
            is_over: false,
        })
    }

    /// Forgets a start that succeeded.
    pub(super) fn succeeded(mut self) {
        self.is_over = true;
        let _ = fs::remove_file(&self.note);
    }

    /// Removes the packages that a failed start wrote. Its program must have ended. Blocks.
    pub(super) fn failed(mut self) {
        self.is_over = true;
        remove_packages(&self.folder, self.since);
        let _ = fs::remove_file(&self.note);
    }

    fn cancelled(&self) {
        // No process has this id, so the next start cleans up. Renaming keeps the time.
        let name = self.note.file_name().unwrap_or_default().to_string_lossy();
        let _ = fs::rename(&self.note, self.note.with_file_name(format!("0-{name}")));
    }
}

impl Drop for NotedStart {
    fn drop(&mut self) {
        if !self.is_over {
            self.cancelled();
        }
    }
}

/// Removes the packages that were written since a time.
#[expect(
    clippy::disallowed_methods,
    reason = "the package cache is haft's own folder, outside every scope"
)]
fn remove_packages(folder: &Path, since: SystemTime) {
    let written = |path: &Path| {
        let time = fs::symlink_metadata(path).and_then(|about| about.modified());
        time.is_ok_and(|time| time >= since)
    };
    for unpacked in UNPACKED {
        let Ok(packages) = fs::read_dir(folder.join(unpacked)) else {
            continue;
        };
        for package in packages.filter_map(Result::ok) {
            let path = package.path();
            let is_written = written(&path)
                || written(&path.join("node_modules"))
                || written(&path.join("package-lock.json"));
            if is_written {
                tracing::info!(path = %path.display(), "removing a package of a failed start");
                let _ = fs::remove_dir_all(&path);
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test prepares its own folders")]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Fetcher> {
        let mut words = line.split(' ');
        let program = words.next().unwrap();
        let arguments: Vec<OsString> = words.map(OsString::from).collect();
        Fetcher::of(Path::new(program), &arguments)
    }

    #[test]
    fn fetchers_and_their_packages_are_recognised() {
        for (line, described) in [
            ("npx -y @a/b@1 --flag", "fetching @a/b@1 with npx"),
            ("/usr/bin/npx -p one two", "fetching one with npx"),
            ("timeout 5 uvx --from git+x tool", "fetching git+x with uvx"),
            ("pnpm dlx thing", "fetching thing with pnpm"),
            ("uv tool run thing", "fetching thing with uv"),
            ("docker run -i --rm image", "fetching with docker"),
        ] {
            assert_eq!(of(line).unwrap().describe(), described);
        }
        assert_eq!(of("python3 server.py"), None);
        let both = of("npx -y uvx").unwrap();
        assert_eq!(
            both.cache(Some(Path::new("/c"))).unwrap().variables.len(),
            4
        );
        assert!(
            of("docker run x")
                .unwrap()
                .cache(Some(Path::new("/c")))
                .is_none()
        );
    }

    #[test]
    fn only_the_packages_of_a_failed_start_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let packages = folder.path().join(UNPACKED[0]);
        let make = |name: &str| {
            let package = packages.join(name);
            fs::create_dir_all(package.join("node_modules")).unwrap();
            package
        };
        let aged = |path: &Path| {
            let old = SystemTime::now() - Duration::from_secs(60);
            for path in [path.join("node_modules"), path.to_owned()] {
                fs::File::open(path).unwrap().set_modified(old).unwrap();
            }
        };
        let old = make("old");
        aged(&old);
        let good = NotedStart::begin(folder.path()).unwrap();
        let fetched = make("fetched");
        good.succeeded();
        assert!(old.exists() && fetched.exists());
        aged(&fetched);

        let bad = NotedStart::begin(folder.path()).unwrap();
        let half = make("half");
        bad.failed();
        assert!(old.exists() && fetched.exists() && !half.exists());

        let cancelled = NotedStart::begin(folder.path()).unwrap();
        let half = make("half");
        drop(cancelled);
        assert!(half.exists());
        NotedStart::begin(folder.path()).unwrap().succeeded();
        assert!(old.exists() && fetched.exists() && !half.exists());
        let notes = fs::read_dir(folder.path().join(STARTS)).unwrap();
        assert_eq!(notes.count(), 0);
    }
}

//! Python packages: found in an index, verified by their hashes, and unpacked into files
//! that only the interpreter sees. No code of a package runs during installation.

mod index;
mod wheel;

use crate::host::{Host, Refused};
use bashkit::FileSystem;
use index::{Choice, Page};
use pep508_rs::pep440_rs::Version;
use pep508_rs::{
    ExtraName, MarkerEnvironment, MarkerEnvironmentBuilder, PackageName, Requirement, VerbatimUrl,
    VersionOrUrl,
};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// Python version that packages must support.
pub(crate) const PYTHON: &str = "3.14.8";

/// Folder where Python finds packages.
pub(crate) const SITE_PACKAGES: &str = "/site-packages";

/// Maximum number of packages per call, including dependencies.
const MAX_PACKAGES: usize = 50;

/// List of installed packages and their versions.
const INSTALLED_LIST: &str = "/site-packages/.installed";

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) files: usize,
}

/// Reason why packages were not installed. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: None,
        }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        Self::new(refused.message)
    }
}

type PackageRequirement = Requirement<VerbatimUrl>;

/// Installs packages and their dependencies.
pub(crate) async fn install(
    host: &dyn Host,
    index: &str,
    own: &Arc<dyn FileSystem>,
    requested: Vec<String>,
) -> Result<Vec<Installed>, Problem> {
    if requested.is_empty() {
        return Err(Problem::new("no packages given"));
    }
    let marker_environment = marker_environment()?;
    let mut versions = load_installed(own).await;
    let mut open = VecDeque::new();
    for one in &requested {
        let requirement = parse_requirement(one)?;
        if let Some(problem) = crate::modules::absent_module_hint(requirement.name.as_ref()) {
            return Err(Problem::new(problem));
        }
        open.push_back(requirement);
    }
    let mut fetched: BTreeMap<PackageName, (Version, Vec<wheel::File>)> = BTreeMap::new();
    while let Some(requirement) = open.pop_front() {
        let specifiers = match &requirement.version_or_url {
            Some(VersionOrUrl::VersionSpecifier(specifiers)) => specifiers.clone(),
            _ => pep508_rs::pep440_rs::VersionSpecifiers::empty(),
        };
        let name = requirement.name.clone();
        let installed_version = fetched.get(&name).map(|(version, _)| version.clone());
        let installed_version = installed_version.or_else(|| versions.get(&name).cloned());
        let extras = &requirement.extras;
        if let Some(version) = installed_version
            && (fetched.contains_key(&name) || extras.is_empty())
        {
            if specifiers.contains(&version) {
                continue;
            }
            return Err(Problem::new(format!(
                "{requirement} is required, but {name} {version} is already installed"
            ))
            .hint("give compatible versions in one call"));
        }
        if fetched.len() >= MAX_PACKAGES {
            return Err(Problem::new(format!(
                "more than {MAX_PACKAGES} packages are required; nothing was installed"
            )));
        }
        let page = Page::fetch(host, index, &name).await?;
        let Choice { version, file } = page.choose(&name, &specifiers)?;
        let bytes = file.fetch(host).await?;
        let wheel = wheel::open(&bytes)
            .map_err(|problem| Problem::new(format!("{}: {problem}", file.filename)))?;
        for required in wheel.required() {
            // Invalid requirements in a package's metadata are ignored.
            let Ok(required) = PackageRequirement::from_str(&required) else {
                continue;
            };
            let extras: Vec<ExtraName> = extras.clone();
            if required.evaluate_markers(&marker_environment, &extras) {
                open.push_back(required);
            }
        }
        fetched.insert(name, (version, wheel.files));
    }
    let mut installed = Vec::new();
    for (name, (version, files)) in fetched {
        for file in &files {
            store(own, &file.path, &file.bytes).await?;
        }
        versions.insert(name.clone(), version.clone());
        installed.push(Installed {
            name: name.to_string(),
            version: version.to_string(),
            files: files.len(),
        });
    }
    let list: Vec<String> = versions.iter().map(|(n, v)| format!("{n} {v}")).collect();
    store(own, Path::new(INSTALLED_LIST), list.join("\n").as_bytes()).await?;
    if installed.is_empty() {
        let installed_version = versions.into_iter().map(|(name, version)| Installed {
            name: name.to_string(),
            version: version.to_string(),
            files: 0,
        });
        let asked = |one: &Installed| {
            let asked = requested
                .iter()
                .filter_map(|requested| parse_requirement(requested).ok());
            asked
                .into_iter()
                .any(|asked| asked.name.to_string() == one.name)
        };
        return Ok(installed_version.filter(asked).collect());
    }
    Ok(installed)
}

fn parse_requirement(requested: &str) -> Result<PackageRequirement, Problem> {
    let shown: String = requested.chars().take(200).collect();
    let requirement = PackageRequirement::from_str(requested.trim()).map_err(|error| {
        let why = error.message.to_string();
        Problem::new(format!("invalid package name: \"{shown}\": {why}"))
            .hint("give names, with versions if they matter: six, rich>=13")
    })?;
    if matches!(requirement.version_or_url, Some(VersionOrUrl::Url(_))) {
        return Err(Problem::new(format!(
            "\"{shown}\" contains an address: packages can only be installed from the index"
        )));
    }
    Ok(requirement)
}

async fn load_installed(own: &Arc<dyn FileSystem>) -> BTreeMap<PackageName, Version> {
    let list = own
        .read_file(Path::new(INSTALLED_LIST))
        .await
        .unwrap_or_default();
    let list = String::from_utf8_lossy(&list).into_owned();
    let pair = |line: &str| {
        let (name, version) = line.split_once(' ')?;
        let name = PackageName::from_str(name).ok()?;
        Some((name, Version::from_str(version).ok()?))
    };
    list.lines().filter_map(pair).collect()
}

async fn store(own: &Arc<dyn FileSystem>, path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let path: PathBuf = Path::new(SITE_PACKAGES).join(path);
    let full = |error: bashkit::Error| {
        Problem::new(format!("cannot store {}: {error}", path.display()))
            .hint("haft-sandbox holds at most 128 MiB of packages and temporary files")
    };
    if let Some(parent) = path.parent() {
        own.mkdir(parent, true).await.map_err(full)?;
    }
    own.write_file(&path, bytes).await.map_err(full)
}

/// Returns the environment that package markers are evaluated in.
fn marker_environment() -> Result<MarkerEnvironment, Problem> {
    MarkerEnvironment::try_from(MarkerEnvironmentBuilder {
        implementation_name: "cpython",
        implementation_version: PYTHON,
        os_name: "posix",
        platform_machine: "wasm32",
        platform_python_implementation: "CPython",
        platform_release: "",
        platform_system: "wasi",
        platform_version: "",
        python_full_version: PYTHON,
        python_version: "3.14",
        sys_platform: "wasi",
    })
    .map_err(|error| Problem::new(error.to_string()))
}

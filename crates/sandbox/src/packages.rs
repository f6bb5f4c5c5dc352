//! Python packages: found in an index, checked by their hashes, unpacked into files
//! that only the interpreter sees. Nothing of a package is run to install it.

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

/// The version of Python that packages have to suit.
pub(crate) const PYTHON: &str = "3.14.8";

/// Where Python finds them.
pub(crate) const PLACE: &str = "/site-packages";

/// How many packages one call brings, with what they require.
const MOST: usize = 50;

/// Which packages are there already, with their versions: a list in the sandbox.
const KNOWN: &str = "/site-packages/.installed";

/// A package that was installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Installed {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) files: usize,
}

/// Why packages were not installed. Nothing was changed then.
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

type Wanted = Requirement<VerbatimUrl>;

/// Installs packages and what they require.
pub(crate) async fn install(
    host: &dyn Host,
    index: &str,
    own: &Arc<dyn FileSystem>,
    wanted: Vec<String>,
) -> Result<Vec<Installed>, Problem> {
    if wanted.is_empty() {
        return Err(Problem::new("no package is named"));
    }
    let surroundings = surroundings()?;
    let mut known = known(own).await;
    let mut open = VecDeque::new();
    for one in &wanted {
        let requirement = parsed(one)?;
        if let Some(problem) = crate::modules::absent(requirement.name.as_ref()) {
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
        let there = fetched.get(&name).map(|(version, _)| version.clone());
        let there = there.or_else(|| known.get(&name).cloned());
        let extras = &requirement.extras;
        if let Some(version) = there
            && (fetched.contains_key(&name) || extras.is_empty())
        {
            if specifiers.contains(&version) {
                continue;
            }
            return Err(Problem::new(format!(
                "{requirement} is required, and {name} {version} is there already"
            ))
            .hint("name the versions that suit each other in one call"));
        }
        if fetched.len() >= MOST {
            return Err(Problem::new(format!(
                "more than {MOST} packages are required; nothing is installed"
            )));
        }
        let page = Page::fetch(host, index, &name).await?;
        let Choice { version, file } = page.choose(&name, &specifiers)?;
        let bytes = file.fetch(host).await?;
        let wheel = wheel::open(&bytes)
            .map_err(|problem| Problem::new(format!("{}: {problem}", file.filename)))?;
        for required in wheel.required() {
            // What a package says wrongly of others is not ours to judge.
            let Ok(required) = Wanted::from_str(&required) else {
                continue;
            };
            let extras: Vec<ExtraName> = extras.clone();
            if required.evaluate_markers(&surroundings, &extras) {
                open.push_back(required);
            }
        }
        fetched.insert(name, (version, wheel.files));
    }
    let mut installed = Vec::new();
    for (name, (version, files)) in fetched {
        for file in &files {
            put(own, &file.path, &file.bytes).await?;
        }
        known.insert(name.clone(), version.clone());
        installed.push(Installed {
            name: name.to_string(),
            version: version.to_string(),
            files: files.len(),
        });
    }
    let list: Vec<String> = known.iter().map(|(n, v)| format!("{n} {v}")).collect();
    put(own, Path::new(KNOWN), list.join("\n").as_bytes()).await?;
    if installed.is_empty() {
        let there = known.into_iter().map(|(name, version)| Installed {
            name: name.to_string(),
            version: version.to_string(),
            files: 0,
        });
        let asked = |one: &Installed| {
            let asked = wanted.iter().filter_map(|wanted| parsed(wanted).ok());
            asked
                .into_iter()
                .any(|asked| asked.name.to_string() == one.name)
        };
        return Ok(there.filter(asked).collect());
    }
    Ok(installed)
}

fn parsed(wanted: &str) -> Result<Wanted, Problem> {
    let shown: String = wanted.chars().take(200).collect();
    let requirement = Wanted::from_str(wanted.trim()).map_err(|error| {
        let why = error.message.to_string();
        Problem::new(format!("\"{shown}\" is no name of a package: {why}"))
            .hint("write names, with versions where they matter: six, rich>=13")
    })?;
    if matches!(requirement.version_or_url, Some(VersionOrUrl::Url(_))) {
        return Err(Problem::new(format!(
            "\"{shown}\" names an address: packages come from the index alone"
        )));
    }
    Ok(requirement)
}

async fn known(own: &Arc<dyn FileSystem>) -> BTreeMap<PackageName, Version> {
    let list = own.read_file(Path::new(KNOWN)).await.unwrap_or_default();
    let list = String::from_utf8_lossy(&list).into_owned();
    let pair = |line: &str| {
        let (name, version) = line.split_once(' ')?;
        let name = PackageName::from_str(name).ok()?;
        Some((name, Version::from_str(version).ok()?))
    };
    list.lines().filter_map(pair).collect()
}

async fn put(own: &Arc<dyn FileSystem>, path: &Path, bytes: &[u8]) -> Result<(), Problem> {
    let path: PathBuf = Path::new(PLACE).join(path);
    let full = |error: bashkit::Error| {
        Problem::new(format!("{} cannot be kept: {error}", path.display()))
            .hint("the sandbox keeps 128 MiB of packages and temporary files")
    };
    if let Some(parent) = path.parent() {
        own.mkdir(parent, true).await.map_err(full)?;
    }
    own.write_file(&path, bytes).await.map_err(full)
}

/// What markers of packages are about.
fn surroundings() -> Result<MarkerEnvironment, Problem> {
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

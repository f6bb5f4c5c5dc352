//! Pages of a package index. The host converts HTML pages to JSON with absolute addresses.

use super::{PYTHON, Problem};
use crate::host::Host;
use pep508_rs::PackageName;
use pep508_rs::pep440_rs::{Version, VersionSpecifiers};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::str::FromStr;
use url::Url;

/// The page of a package.
#[derive(Deserialize)]
pub(super) struct Page {
    files: Vec<File>,
}

/// A file of a package.
#[derive(Deserialize, Clone)]
pub(super) struct File {
    pub(super) filename: String,
    url: String,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
    #[serde(default, rename = "requires-python")]
    requires_python: Option<String>,
    /// A reason, or a bool.
    #[serde(default)]
    yanked: Value,
}

/// The selected file.
pub(super) struct Choice {
    pub(super) version: Version,
    pub(super) file: File,
}

impl Page {
    /// Fetches the page of a package.
    pub(super) async fn fetch(
        host: &dyn Host,
        index: &str,
        name: &PackageName,
    ) -> Result<Self, Problem> {
        let address = format!("{}/{name}/", index.trim_end_matches('/'));
        let address = Url::parse(&address).map_err(|error| {
            Problem::new(format!("invalid address of the package index: {error}"))
        })?;
        let bytes = host.fetch(address.to_string()).await.map_err(|refused| {
            Problem::new(format!("cannot look up {name}: {}", refused.message))
                .hint("check the name of the package, and that the index can be reached")
        })?;
        let page: Self = serde_json::from_slice(&bytes).map_err(|error| {
            Problem::new(format!(
                "the page of {name} on the index is not valid: {error}"
            ))
        })?;
        if page.files.is_empty() {
            return Err(Problem::new(format!("the page of {name} on the index lists no files"))
                .hint("check the name of the package, and that `index` is the address of a package index, such as https://pypi.org/simple"));
        }
        Ok(page)
    }

    /// Selects the newest matching version that is available as a pure Python wheel.
    pub(super) fn choose(
        self,
        name: &PackageName,
        requested: &VersionSpecifiers,
    ) -> Result<Choice, Problem> {
        let python = Version::from_str(PYTHON).ok();
        let is_compatible = |file: &File| {
            let requires = file.requires_python.as_deref();
            let requires = requires.and_then(|text| VersionSpecifiers::from_str(text).ok());
            match (requires, &python) {
                (Some(requires), Some(python)) => requires.contains(python),
                _ => true,
            }
        };
        let wheels: Vec<(Version, bool, &File)> = self
            .files
            .iter()
            .filter(|file| !is_yanked(&file.yanked))
            .filter_map(|file| {
                let (version, is_pure) = parse_wheel_name(&file.filename)?;
                requested
                    .contains(&version)
                    .then_some((version, is_pure, file))
            })
            .collect();
        let wants_prerelease = requested.iter().any(|one| one.any_prerelease());
        let best = wheels
            .iter()
            .filter(|(version, is_pure, file)| {
                *is_pure && is_compatible(file) && (wants_prerelease || !version.any_prerelease())
            })
            .max_by(|one, other| one.0.cmp(&other.0));
        let Some((version, _, file)) = best else {
            return Err(self.no_match(name, requested, &wheels));
        };
        Ok(Choice {
            version: version.clone(),
            file: (*file).clone(),
        })
    }

    fn no_match(
        &self,
        name: &PackageName,
        requested: &VersionSpecifiers,
        wheels: &[(Version, bool, &File)],
    ) -> Problem {
        let is_native = wheels.iter().any(|(_, is_pure, _)| !is_pure);
        if is_native && !wheels.iter().any(|(_, is_pure, _)| *is_pure) {
            return Problem::new(format!(
                "{name} has native code, and only pure Python packages can be installed here"
            ))
            .hint(crate::modules::native_package_hint(name.as_ref()));
        }
        let requested = requested.to_string();
        let requested = if requested.is_empty() {
            "any version".to_owned()
        } else {
            requested
        };
        let file_count = self.files.len();
        Problem::new(format!(
            "no matching version of {name} ({requested}, Python {PYTHON}, pure Python wheel; the index has {file_count} files)"
        ))
        .hint("try another version, or another package")
    }
}

impl File {
    /// Downloads the file and verifies its hash.
    pub(super) async fn fetch(&self, host: &dyn Host) -> Result<Vec<u8>, Problem> {
        let name = &self.filename;
        let Some(promised) = self.hashes.get("sha256") else {
            return Err(Problem::new(format!(
                "the index has no sha256 for {name}; not installed"
            )));
        };
        let bytes = host
            .fetch(self.url.clone())
            .await
            .map_err(|refused| Problem::new(format!("cannot fetch {name}: {}", refused.message)))?;
        let hash = Sha256::digest(&bytes);
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        if hash != promised.to_ascii_lowercase() {
            return Err(Problem::new(format!(
                "{name} does not match the index: its sha256 is {hash}, not {promised}; not installed"
            )));
        }
        Ok(bytes)
    }
}

fn is_yanked(yanked: &Value) -> bool {
    match yanked {
        Value::Bool(yanked) => *yanked,
        Value::String(_) => true,
        _ => false,
    }
}

/// Parses a wheel's file name into its version and whether it is pure Python.
fn parse_wheel_name(filename: &str) -> Option<(Version, bool)> {
    let stem = filename.strip_suffix(".whl")?;
    let parts: Vec<&str> = stem.split('-').collect();
    let [_, version, .., python, abi, platform] = parts.as_slice() else {
        return None;
    };
    let version = Version::from_str(version).ok()?;
    let is_three = python.split('.').any(|tag| tag.starts_with("py3"));
    Some((version, is_three && *abi == "none" && *platform == "any"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wheel_names_are_parsed() {
        let of =
            |name: &str| parse_wheel_name(name).map(|(version, pure)| (version.to_string(), pure));
        let six = of("six-1.16.0-py2.py3-none-any.whl");
        assert_eq!(six, Some(("1.16.0".to_owned(), true)));
        let build = of("x-1.0-2-py3-none-any.whl");
        assert_eq!(build, Some(("1.0".to_owned(), true)));
        let native = of("numpy-2.0.0-cp314-cp314-manylinux_2_17_x86_64.whl");
        assert_eq!(native, Some(("2.0.0".to_owned(), false)));
        assert_eq!(
            of("old-1.0-py2-none-any.whl"),
            Some(("1.0".to_owned(), false))
        );
        assert_eq!(of("six-1.16.0.tar.gz"), None);
        assert_eq!(of("six.whl"), None);
    }
}

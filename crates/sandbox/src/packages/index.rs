//! What an index says of a package. Whoever fetches makes JSON of its pages, with absolute
//! addresses, if they are HTML.

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
    /// A reason, or whether there is one.
    #[serde(default)]
    yanked: Value,
}

/// The file that is taken.
pub(super) struct Choice {
    pub(super) version: Version,
    pub(super) file: File,
}

impl Page {
    /// Asks the index about a package.
    pub(super) async fn fetch(
        host: &dyn Host,
        index: &str,
        name: &PackageName,
    ) -> Result<Self, Problem> {
        let address = format!("{}/{name}/", index.trim_end_matches('/'));
        let address = Url::parse(&address)
            .map_err(|error| Problem::new(format!("the package index has no address: {error}")))?;
        let bytes = host.fetch(address.to_string()).await.map_err(|refused| {
            Problem::new(format!("{name} cannot be looked up: {}", refused.message))
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

    /// The newest version that suits, as a wheel of pure Python.
    pub(super) fn choose(
        self,
        name: &PackageName,
        wanted: &VersionSpecifiers,
    ) -> Result<Choice, Problem> {
        let python = Version::from_str(PYTHON).ok();
        let suits = |file: &File| {
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
                let (version, is_pure) = of_wheel(&file.filename)?;
                wanted
                    .contains(&version)
                    .then_some((version, is_pure, file))
            })
            .collect();
        let asks_early = wanted.iter().any(|one| one.any_prerelease());
        let best = wheels
            .iter()
            .filter(|(version, is_pure, file)| {
                *is_pure && suits(file) && (asks_early || !version.any_prerelease())
            })
            .max_by(|one, other| one.0.cmp(&other.0));
        let Some((version, _, file)) = best else {
            return Err(self.nothing(name, wanted, &wheels));
        };
        Ok(Choice {
            version: version.clone(),
            file: (*file).clone(),
        })
    }

    fn nothing(
        &self,
        name: &PackageName,
        wanted: &VersionSpecifiers,
        wheels: &[(Version, bool, &File)],
    ) -> Problem {
        let is_native = wheels.iter().any(|(_, is_pure, _)| !is_pure);
        if is_native && !wheels.iter().any(|(_, is_pure, _)| *is_pure) {
            return Problem::new(format!(
                "{name} has native code, and only packages of pure Python can be installed here"
            ))
            .hint(crate::modules::elsewhere(name.as_ref()));
        }
        let wanted = wanted.to_string();
        let wanted = if wanted.is_empty() {
            "any version".to_owned()
        } else {
            wanted
        };
        let many = self.files.len();
        Problem::new(format!(
            "no version of {name} suits ({wanted}, Python {PYTHON}, a wheel of pure Python; the index has {many} files)"
        ))
        .hint("try another version, or another package")
    }
}

impl File {
    /// Fetches it, and makes sure that it is what the index promised.
    pub(super) async fn fetch(&self, host: &dyn Host) -> Result<Vec<u8>, Problem> {
        let name = &self.filename;
        let Some(promised) = self.hashes.get("sha256") else {
            return Err(Problem::new(format!(
                "the index gives no sha256 of {name}; it is not installed"
            )));
        };
        let bytes = host.fetch(self.url.clone()).await.map_err(|refused| {
            Problem::new(format!("{name} cannot be fetched: {}", refused.message))
        })?;
        let hash = Sha256::digest(&bytes);
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        if hash != promised.to_ascii_lowercase() {
            return Err(Problem::new(format!(
                "{name} is not what the index promised: its sha256 is {hash}, not {promised}; it is not installed"
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

/// The version of a wheel by its name, and whether it is pure Python.
fn of_wheel(filename: &str) -> Option<(Version, bool)> {
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
    fn names_of_wheels_tell_what_they_are() {
        let of = |name: &str| of_wheel(name).map(|(version, pure)| (version.to_string(), pure));
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

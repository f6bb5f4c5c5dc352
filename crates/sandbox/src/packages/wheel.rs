//! Reads wheels, which are zip files, with limits against hostile ones.

use flate2::read::DeflateDecoder;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Maximum number of files in a wheel, and their maximum total size in bytes.
const MAX_FILES: usize = 5_000;
const MAX_SIZE: u64 = 64 << 20;

/// A file of a wheel.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// An unpacked wheel.
#[derive(Debug)]
pub(super) struct Wheel {
    pub(super) files: Vec<File>,
}

/// Unpacks a wheel.
pub(super) fn open(bytes: &[u8]) -> Result<Wheel, String> {
    let end = find_end(bytes).ok_or("not a zip file")?;
    let (count, start) = (number(bytes, end + 10, 2)?, number(bytes, end + 16, 4)?);
    if count > MAX_FILES {
        return Err(format!("it has {count} files, more than {MAX_FILES}"));
    }
    let (mut at, mut files, mut room) = (start, Vec::new(), MAX_SIZE);
    for _ in 0..count {
        if slice(bytes, at, 4)? != b"PK\x01\x02" {
            return Err("its list of files is damaged".to_owned());
        }
        let method = number(bytes, at + 10, 2)?;
        let crc = number(bytes, at + 16, 4)?;
        let (packed, size) = (number(bytes, at + 20, 4)?, number(bytes, at + 24, 4)?);
        let names = (number(bytes, at + 28, 2)?, number(bytes, at + 30, 2)?);
        let comment = number(bytes, at + 32, 2)?;
        let local = number(bytes, at + 42, 4)?;
        let name = String::from_utf8_lossy(slice(bytes, at + 46, names.0)?).into_owned();
        at += 46 + names.0 + names.1 + comment;
        if name.ends_with('/') {
            continue;
        }
        room = room
            .checked_sub(size as u64)
            .ok_or_else(|| format!("larger than {} MiB", MAX_SIZE >> 20))?;
        let inner = local + 30 + number(bytes, local + 26, 2)? + number(bytes, local + 28, 2)?;
        let data = slice(bytes, inner, packed)?;
        let content = match method {
            0 => data.to_vec(),
            8 => inflate(data, size).ok_or_else(|| format!("{name} is damaged"))?,
            other => {
                return Err(format!(
                    "{name} uses an unknown compression method ({other})"
                ));
            }
        };
        let mut sum = flate2::Crc::new();
        sum.update(&content);
        if content.len() != size || sum.sum() as usize != crc {
            return Err(format!("{name} is damaged"));
        }
        if let Some(path) = target_path(&name)? {
            files.push(File {
                path,
                bytes: content,
            });
        }
    }
    Ok(Wheel { files })
}

impl Wheel {
    /// Returns the requirements from the package's metadata.
    pub(super) fn required(&self) -> Vec<String> {
        let metadata = self.files.iter().find(|file| {
            let mut parts = file.path.components();
            let folder = parts.next().map(|part| part.as_os_str().to_string_lossy());
            folder.is_some_and(|folder| folder.ends_with(".dist-info"))
                && file.path.file_name().is_some_and(|name| name == "METADATA")
        });
        let Some(metadata) = metadata else {
            return Vec::new();
        };
        let text = String::from_utf8_lossy(&metadata.bytes);
        // The headers end at the first empty line.
        let head = text.lines().take_while(|line| !line.trim().is_empty());
        head.filter_map(|line| line.strip_prefix("Requires-Dist:"))
            .map(|required| required.trim().to_owned())
            .collect()
    }
}

/// Returns the path of a file below `site-packages`, or `None` if it is not for Python to
/// import.
fn target_path(name: &str) -> Result<Option<PathBuf>, String> {
    let path = Path::new(name);
    let is_plain = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !is_plain || name.contains(['\\', '\0']) {
        return Err(format!(
            "it contains a file outside of its folder: {}",
            name.escape_default()
        ));
    }
    let mut parts = path.components();
    let first = parts.next().map(|part| part.as_os_str().to_string_lossy());
    if !first.is_some_and(|first| first.ends_with(".data")) {
        return Ok(Some(path.to_owned()));
    }
    // Only these two categories contain modules.
    let kind = parts
        .next()
        .map(|part| part.as_os_str().to_string_lossy().into_owned());
    let is_module = matches!(kind.as_deref(), Some("purelib" | "platlib"));
    Ok(is_module.then(|| parts.as_path().to_owned()))
}

/// Returns the offset of the end record: the last one with its signature.
fn find_end(bytes: &[u8]) -> Option<usize> {
    let from = bytes.len().checked_sub(22)?;
    let least = from.saturating_sub(usize::from(u16::MAX));
    (least..=from)
        .rev()
        .find(|at| bytes.get(*at..*at + 4) == Some(b"PK\x05\x06"))
}

fn slice(bytes: &[u8], at: usize, length: usize) -> Result<&[u8], String> {
    let end = at.checked_add(length);
    end.and_then(|end| bytes.get(at..end))
        .ok_or_else(|| "it is truncated".to_owned())
}

fn number(bytes: &[u8], at: usize, length: usize) -> Result<usize, String> {
    let bytes = slice(bytes, at, length)?.iter().rev();
    Ok(bytes.fold(0, |number, byte| number << 8 | usize::from(*byte)))
}

fn inflate(data: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    let mut decoder = DeflateDecoder::new(data).take(size as u64 + 1);
    decoder.read_to_end(&mut content).ok()?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_zip_files_are_refused() {
        for bytes in [&b""[..], b"PK", &[0; 100], b"PK\x05\x06"] {
            assert!(open(bytes).is_err());
        }
        let mut end = b"PK\x05\x06".to_vec();
        end.extend([0; 18]);
        assert!(open(&end).unwrap().files.is_empty());
        end[10] = 1;
        end[16] = 200;
        assert!(open(&end).is_err());
    }

    #[test]
    fn files_stay_below_site_packages() {
        assert!(target_path("../x.py").is_err());
        assert!(target_path("/etc/x.py").is_err());
        assert!(target_path("a/../../x.py").is_err());
        assert!(target_path(r"a\..\x.py").is_err());
        assert_eq!(target_path("a/b.py").unwrap(), Some("a/b.py".into()));
        assert_eq!(target_path("a-1.data/scripts/run").unwrap(), None);
        assert_eq!(
            target_path("a-1.data/purelib/m.py").unwrap(),
            Some("m.py".into())
        );
    }
}

//! The files of a session in the state folder.
//!
//! ```text
//! SESSION/session            id, work folder, roots
//! SESSION/lock               held by an undo, and while old sets are removed
//! SESSION/NNNNNN.set         the records of a set; locked by its writer
//! SESSION/objects/NNNNNN/    content that the set keeps
//! SESSION/undo               an undo in progress
//! ```

use super::codec::{Decoder, Encoder};
use super::compare;
use super::picture::Picture;
use super::record::{Finished, Header, Record, TRAILER};
use super::recorder::End;
use super::records::Loaded;
use super::records::Records;
use super::session::Session;
use super::set_file::SetFile;
use rustix::fs::{FlockOperation, RenameFlags, flock};
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Maximum length of a header.
const HEAD: usize = 64 << 10;

/// Start and end of a set, which are read without the rest.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) number: u64,
    pub(super) header: Header,
    /// `None` while it is written.
    pub(super) finished: Option<Finished>,
}

/// Heads of finished sets with the length of their files. A session of thousands of calls looks
/// at them after each.
#[derive(Debug, Default)]
pub(super) struct HeadCache(Mutex<HashMap<u64, (u64, Head)>>);

impl Head {
    /// Whether the set has no changes, only a note that something is missing.
    pub(super) fn is_unchanged(&self) -> bool {
        let finished = self.finished.as_ref();
        finished.is_some_and(|finished| finished.counts == [0; 5])
    }
}

/// Name of a session's folder.
pub(super) fn folder_name(id: &str) -> String {
    let mut name = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02x}"));
        }
    }
    name
}

pub(super) fn set_path(session: &Session, number: u64) -> PathBuf {
    session.folder().join(set_name(number))
}

pub(super) fn set_name(number: u64) -> String {
    format!("{number:06}.set")
}

/// Makes the file of a new set. It appears under its name when it is locked, so that no reader
/// takes it for one whose writer was killed.
pub(super) fn create_set(session: &Session, header: &Header) -> io::Result<SetFile> {
    let folder = session.folder();
    crate::private::folder(folder)?;
    describe(session)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    let temporary = folder.join(format!(
        "new-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    let _ = remove_file(&temporary);
    let file = crate::private::file(&options, &temporary)?;
    flock(&file, FlockOperation::LockExclusive)?;
    let mut number = match session.last_number() {
        0 => numbers(folder)?.last().copied().unwrap_or(0),
        number => number,
    };
    let path = loop {
        number += 1;
        let path = set_path(session, number);
        let cwd = rustix::fs::CWD;
        match rustix::fs::renameat_with(cwd, &temporary, cwd, &path, RenameFlags::NOREPLACE) {
            Ok(()) => break path,
            Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
    };
    session.set_last_number(number);
    let mut set = SetFile::new(file, path, number);
    let mut out = Vec::new();
    Record::Header(header.clone()).append(&mut out);
    set.append(&out);
    Ok(set)
}

/// Numbers of the sets in a session's folder, rising.
pub(super) fn numbers(folder: &Path) -> io::Result<Vec<u64>> {
    let mut numbers: Vec<u64> = names(folder)?
        .iter()
        .filter_map(|name| name.strip_suffix(".set")?.parse().ok())
        .collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Names in one of the store's folders; none if it does not exist.
pub(super) fn names(folder: &Path) -> io::Result<Vec<String>> {
    #[expect(clippy::disallowed_methods, reason = "haft's own folder")]
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

/// Writes down where the session works, once.
fn describe(session: &Session) -> io::Result<()> {
    let path = session.folder().join("session");
    if path.exists() {
        return Ok(());
    }
    let mut encoder = Encoder::default();
    encoder.text(session.id());
    encoder.bytes(session.work_dir().as_os_str().as_bytes());
    encoder.number(session.roots().len() as u64);
    for root in session.roots() {
        encoder.bytes(root.as_os_str().as_bytes());
    }
    write_file(&path, &encoder.0)
}

/// Reads where a session works: its id, work folder and roots.
pub(super) fn description(folder: &Path) -> Option<(String, PathBuf, Vec<PathBuf>)> {
    let bytes = read_file(&folder.join("session")).ok()?;
    let mut decoder = Decoder(&bytes);
    let path = |bytes: &[u8]| PathBuf::from(super::state::name(bytes));
    let id = decoder.text()?;
    let work_dir = path(decoder.bytes()?);
    let count = decoder.small()?;
    let roots = (0..count)
        .map(|_| decoder.bytes().map(path))
        .collect::<Option<_>>()?;
    Some((id, work_dir, roots))
}

/// Replaces one of the store's files as a whole.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("new-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let mut file = crate::private::file(&options, &temporary)?;
    file.write_all(bytes)?;
    drop(file);
    rustix::fs::renameat(rustix::fs::CWD, &temporary, rustix::fs::CWD, path)?;
    Ok(())
}

pub(super) fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    #[expect(clippy::disallowed_methods, reason = "haft's own file")]
    std::fs::read(path)
}

pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "haft's own file")]
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Removes one of the store's folders with everything in it.
pub(super) fn remove_tree(path: &Path) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "haft's own folder")]
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Heads of all sets, oldest first. Ends those whose writer was killed.
pub(super) fn heads(session: &Session) -> io::Result<Vec<Head>> {
    let mut heads = Vec::new();
    for number in numbers(session.folder())? {
        match head(session, number) {
            Ok(head) => heads.extend(head),
            Err(error) => tracing::warn!(%error, number, "a set of changes cannot be read"),
        }
    }
    Ok(heads)
}

/// Sets that cannot be read, and why.
pub(super) fn unreadable(session: &Session) -> io::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    for number in numbers(session.folder())? {
        let path = set_path(session, number);
        let error = match head(session, number) {
            // An empty one has just been made.
            Ok(None) if path.metadata().is_ok_and(|meta| meta.len() > 0) => damaged(),
            Ok(_) => match load(session, number) {
                Ok(_) => continue,
                Err(error) => error,
            },
            Err(error) => error,
        };
        found.push((path, error.to_string()));
    }
    Ok(found)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the record is damaged")
}

fn head(session: &Session, number: u64) -> io::Result<Option<Head>> {
    let path = set_path(session, number);
    let cache = || {
        session
            .head_cache()
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    };
    for _ in 0..2 {
        let length = path.symlink_metadata().map_or(0, |meta| meta.len());
        if let Some((known, head)) = cache().get(&number)
            && *known == length
        {
            return Ok(Some(head.clone()));
        }
        let Some((header, finished)) = ends(&path)? else {
            // Written by another version, or nothing but a name.
            return Ok(None);
        };
        if finished.is_some() {
            let head = Head {
                number,
                header,
                finished,
            };
            cache().insert(number, (length, head.clone()));
            return Ok(Some(head));
        }
        match SetFile::take_over(path.clone(), number) {
            Ok(Some(set)) => {
                // It may have been finished just now.
                if ends(&path)?.is_some_and(|(_, finished)| finished.is_none()) {
                    set.finish(session, End::Interrupted)?;
                }
            }
            Ok(None) => {
                return Ok(Some(Head {
                    number,
                    header,
                    finished,
                }));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Reads the first and the last record of a set.
pub(super) fn ends(path: &Path) -> io::Result<Option<(Header, Option<Finished>)>> {
    #[expect(clippy::disallowed_methods, reason = "haft's own file")]
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = vec![0; 4096];
    let mut read = read_at(&file, &mut bytes, 0)?;
    let length = bytes
        .first_chunk::<4>()
        .map_or(0, |length| u32::from_le_bytes(*length) as usize + 4);
    if length > read && length <= HEAD {
        bytes.resize(length, 0);
        read = read_at(&file, &mut bytes, 0)?;
    }
    let first = Records::new(bytes.get(..read).unwrap_or_default()).next();
    let Some(Record::Header(header)) = first else {
        return Ok(None);
    };
    Ok(Some((header, finished(&file)?)))
}

fn finished(file: &File) -> io::Result<Option<Finished>> {
    let length = file.metadata()?.len();
    let mut trailer = [0; TRAILER];
    let Some(start) = length.checked_sub(TRAILER as u64) else {
        return Ok(None);
    };
    read_at(file, &mut trailer, start)?;
    let Some(last) = Record::end_length(trailer) else {
        return Ok(None);
    };
    let Some(start) = start.checked_sub(last.into()) else {
        return Ok(None);
    };
    let mut bytes = vec![0; last.min(1 << 20) as usize];
    read_at(file, &mut bytes, start)?;
    match Records::new(&bytes).next() {
        Some(Record::Finished(finished)) => Ok(Some(finished)),
        _ => Ok(None),
    }
}

fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, at + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Reads a whole set. `None`: it was removed.
pub(super) fn load(session: &Session, number: u64) -> io::Result<Option<Loaded>> {
    read_set(&set_path(session, number), number)
}

pub(super) fn read_set(path: &Path, number: u64) -> io::Result<Option<Loaded>> {
    match read_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => {
            let bytes = bytes?;
            let set = Loaded::new(number, Records::new(&bytes));
            let is_whole = bytes
                .last_chunk()
                .is_some_and(|last| Record::end_length(*last).is_some());
            match set.header.is_none() || (is_whole && set.finished.is_none()) {
                true => Err(damaged()),
                false => Ok(Some(set)),
            }
        }
    }
}

/// A set as a picture. One that is still written is compared with what is there now.
pub(super) fn picture(session: &Session, head: &Head) -> io::Result<Option<Picture>> {
    let Some(set) = load(session, head.number)? else {
        return Ok(None);
    };
    let mut picture = Picture::new(&[set], &[])?;
    if head.finished.is_none() {
        compare::compare(&mut picture, session, head.header.time)?;
    }
    Ok(Some(picture))
}

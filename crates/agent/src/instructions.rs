//! `AGENTS.md`: what a person and a project want an agent to know. Text for a prompt,
//! and nothing else: it allows nothing.

use haft::ops::backend::Local;
use haft::ops::scope::{self, FileRules, Places, Reading, Writing};
use haft::ops::text::decode::{decode, is_deceptive, lf, prefix, visible};
use haft::ops::text::sniff;
use haft::ops::{Access, Backend, Error, FilePath, Scope, blocking};
use haft::truncate::format_size;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The name of the files.
const FILE: &str = "AGENTS.md";

/// The most bytes of all of them together.
pub(crate) const MOST: usize = 32 << 10;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instructions {
    /// The text, each file below a heading that names it; empty if there is none.
    pub text: String,
    /// The files it is from, in order.
    pub files: Vec<PathBuf>,
    /// What was left out, and why.
    pub warnings: Vec<String>,
}

/// Reads the instructions for work in a folder: the person's own, if `own` names the
/// folder of those, then those from the root of the repository down to the folder. A
/// folder that is in no repository has only its own.
///
/// When they are too long together, the person's own and those nearest to the folder
/// are kept.
pub async fn instructions(work_dir: &Path, own: Option<&Path>) -> Instructions {
    let mut found = Instructions::default();
    let mut places = Vec::new();
    if let Some(own) = own {
        places.extend(place(own, own, &mut found.warnings));
    }
    let is_own = places.len();
    if let Some(folder) = scope::real(work_dir) {
        let root = repository(&folder).unwrap_or_else(|| folder.clone());
        let inside = folder.ancestors().take_while(|one| one.starts_with(&root));
        for folder in inside {
            places.extend(place(&root, folder, &mut found.warnings));
        }
    }
    // So far the nearest is first: that is the order in which they get room.
    let mut left = MOST;
    let local = Local::new();
    let mut sections = Vec::new();
    for path in &places {
        let section = section(&local, path, &mut left, &mut found.warnings).await;
        sections.push(section.map(|text| (path.real().to_owned(), text)));
    }
    let projects = sections.split_off(is_own);
    let sections = sections.into_iter().chain(projects.into_iter().rev());
    let mut texts = Vec::new();
    for (file, text) in sections.flatten() {
        let shown = visible(&file.to_string_lossy()).replace('\n', "\\n");
        texts.push(format!("## Instructions from {shown}\n\n{text}"));
        found.files.push(file);
    }
    found.text = texts.join("\n\n");
    found
}

/// The root of the repository that a folder is in: the nearest folder with `.git`.
fn repository(folder: &Path) -> Option<PathBuf> {
    let whole = reading(Path::new("/"), Reading::Anywhere).ok()?;
    let root = folder.ancestors().find(|folder| {
        let git = folder.join(".git");
        let git = whole.resolve_as(".git", &git, Access::Read);
        git.is_ok_and(|git| git.is_there())
    })?;
    // A folder that is open to all could be made a repository by anybody.
    (owner(root)? == owner(folder)?).then(|| root.to_owned())
}

#[expect(
    clippy::disallowed_methods,
    reason = "whose a folder is is nothing that a backend tells"
)]
fn owner(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::metadata(folder).ok()?.uid())
}

/// The file of a folder, if there is one that may be read.
fn place(root: &Path, folder: &Path, warnings: &mut Vec<String>) -> Option<FilePath> {
    let file = folder.join(FILE);
    // A folder that is not there has none.
    let scope = reading(root, Reading::Roots).ok()?;
    match scope.resolve_as(&file.to_string_lossy(), &file, Access::Read) {
        Ok(path) => path.is_there().then_some(path),
        Err(Error::NotAllowed { .. }) => {
            let root = root.to_string_lossy();
            let why = format!("it is a link that leads out of {root}");
            warnings.push(left_out(&file, &why));
            None
        }
        Err(error) => {
            warnings.push(left_out(&file, &error.to_string()));
            None
        }
    }
}

pub(crate) fn left_out(file: &Path, why: &str) -> String {
    visible(&format!("{} is left out: {why}", file.to_string_lossy()))
}

/// As much of a file as there is room for.
pub(crate) async fn section(
    backend: &dyn Backend,
    path: &FilePath,
    left: &mut usize,
    warnings: &mut Vec<String>,
) -> Option<String> {
    let (bytes, size) = match beginning(backend, path, MOST).await {
        Ok(read) => read,
        Err(error) => {
            warnings.push(left_out(path.real(), &error.to_string()));
            return None;
        }
    };
    if sniff::is_binary(&bytes) {
        warnings.push(left_out(path.real(), "it is no text"));
        return None;
    }
    let text = decode(&bytes);
    let text = lf(&text);
    let hidden = |c: char| is_deceptive(c) || (c.is_control() && c != '\n' && c != '\t');
    if text.contains(hidden) {
        let file = visible(&path.real().to_string_lossy());
        warnings.push(format!(
            "{file} has characters that cannot be seen; the model gets them as escapes"
        ));
    }
    let text = visible(&text);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let kept = prefix(text, *left);
    *left -= kept.len();
    if kept.len() == text.len() && size <= bytes.len() as u64 {
        return Some(kept.to_owned());
    }
    let note = format!(
        "cut: {} of {} are here, as all together may have {}",
        format_size(kept.len() as u64),
        format_size(size),
        format_size(MOST as u64)
    );
    let file = visible(&path.real().to_string_lossy());
    warnings.push(format!("{file} is {note}"));
    Some(format!("{kept}\n[this file is {note}]"))
}

/// The beginning of a file, and how large all of it is.
async fn beginning(
    backend: &dyn Backend,
    path: &FilePath,
    most: usize,
) -> Result<(Vec<u8>, u64), Error> {
    let content = backend.read(path).await?;
    let given = path.given().to_owned();
    blocking::run(content.weight, move || {
        let mut bytes = Vec::new();
        let mut reader = content.reader.take(most as u64);
        reader
            .read_to_end(&mut bytes)
            .map_err(|source| Error::io("read", given, source))?;
        Ok((bytes, content.stat.size))
    })
    .await
}

/// Files below a folder, to read.
fn reading(folder: &Path, reading: Reading) -> Result<Scope, Error> {
    Scope::disk(Places {
        work_dir: folder.to_owned(),
        roots: Vec::new(),
        readable: Vec::new(),
        home: None,
        git_configs: Vec::new(),
        own: Vec::new(),
        protect: Vec::new(),
        temp: None,
        rules: FileRules {
            reading,
            writing: Writing::Nothing,
        },
    })
}

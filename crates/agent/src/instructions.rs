//! `AGENTS.md`, or else `CLAUDE.md`: instructions of the user and the project. They are text for
//! the prompt and grant no rights.
//!
//! A project's files are read before the project is trusted. Links are therefore followed only
//! inside the project, and never to files that are closed to models.

use haft::Runtime;
use haft::ops::backend::Local;
use haft::ops::scope;
use haft::ops::text::decode::{decode, is_deceptive, lf, prefix, visible};
use haft::ops::text::sniff;
use haft::ops::{Backend, Error, FilePath, blocking};
use haft::truncate::format_size;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Names of the files. In each folder, the first one that exists is read.
const FILES: [&str; 2] = ["AGENTS.md", "CLAUDE.md"];

/// Maximum size of all files together in bytes.
pub(crate) const MAX_TOTAL: usize = 32 << 10;

/// Instructions for the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instructions {
    /// The text, with a heading for each file; empty without files.
    pub text: String,
    /// The files, in order.
    pub files: Vec<PathBuf>,
    /// Warnings about files that were left out or truncated.
    pub warnings: Vec<String>,
}

/// Reads the instructions for a work folder: the user's, if `own` is their folder, then the
/// project's, from the root of the repository down to the work folder. Without a repository,
/// only the work folder itself is searched.
///
/// Files that are closed to models are left out: secret paths, haft's own folders, and paths
/// that the rules close to all tools.
///
/// If they are too long together, the user's instructions and those nearest to the work
/// folder are kept.
pub async fn instructions(runtime: &Runtime, work_dir: &Path, own: Option<&Path>) -> Instructions {
    let mut found = Instructions::default();
    let mut paths = Vec::new();
    if let Some(own) = own {
        paths.extend(find(runtime, own, own, &mut found.warnings));
    }
    let is_own = paths.len();
    if let Some(folder) = scope::real(work_dir) {
        let root = repository(&folder).unwrap_or_else(|| folder.clone());
        let holds_home = holds_home(&root, runtime.home());
        let inside = folder.ancestors().take_while(|one| one.starts_with(&root));
        for folder in inside {
            // A repository that contains the home folder is not a project. Its other files
            // are unrelated to the work folder.
            let project = if holds_home { folder } else { &root };
            paths.extend(find(runtime, project, folder, &mut found.warnings));
        }
    }
    // The nearest comes first, so that it is truncated last.
    let mut left = MAX_TOTAL;
    let local = Local::new();
    let mut sections = Vec::new();
    for path in &paths {
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

/// Returns the root of the repository that contains a folder: the nearest one with `.git`.
fn repository(folder: &Path) -> Option<PathBuf> {
    let has_git = |folder: &&Path| is_there(&folder.join(".git"));
    let root = folder.ancestors().find(has_git)?;
    // In a world-writable folder, another user could have created the repository.
    (owner(root)? == owner(folder)?).then(|| root.to_owned())
}

/// Whether a folder is a home folder, or contains one.
fn holds_home(folder: &Path, home: Option<&Path>) -> bool {
    let home = home.and_then(scope::real);
    let usual = Path::new("/root");
    home.is_some_and(|home| home.starts_with(folder))
        || usual.starts_with(folder)
        || Path::new("/home").starts_with(folder)
        || folder.parent() == Some(Path::new("/home"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the root of the repository is needed before there can be a scope"
)]
fn is_there(path: &Path) -> bool {
    std::fs::metadata(path).is_ok()
}

#[expect(clippy::disallowed_methods, reason = "backends do not report owners")]
fn owner(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::metadata(folder).ok()?.uid())
}

/// Finds the file in a folder, if there is one that may be read.
fn find(
    runtime: &Runtime,
    project: &Path,
    folder: &Path,
    warnings: &mut Vec<String>,
) -> Option<FilePath> {
    for name in FILES {
        match named(runtime, project, &folder.join(name)) {
            Found::Readable(path) => return Some(path),
            Found::Closed(why) => {
                warnings.push(left_out(&folder.join(name), &why));
                return None;
            }
            Found::Missing => {}
        }
    }
    None
}

/// A file that may have instructions.
enum Found {
    Readable(FilePath),
    /// Why it is left out.
    Closed(String),
    Missing,
}

/// Looks for a file. Links must not lead out of the project.
fn named(runtime: &Runtime, project: &Path, file: &Path) -> Found {
    let Ok(files) = runtime.prompt_files(project) else {
        // A missing folder has no instructions.
        return Found::Missing;
    };
    Found::Closed(match files.resolve(file) {
        Ok(path) if !path.is_there() => return Found::Missing,
        Ok(path) if path.exclusion().is_none() => return Found::Readable(path),
        Ok(path) => {
            let target = path.real().to_string_lossy();
            format!(
                "a rule closes {target} to the model; move the text to another file, or change the \
                 rule in haft.yaml"
            )
        }
        Err(Error::NotAllowed { .. }) => {
            let project = scope::real(project).unwrap_or_else(|| project.to_owned());
            let target = scope::real(file).unwrap_or_else(|| file.to_owned());
            if target.starts_with(&project) {
                "it is a link to a path for keys or for haft's own files, which are closed to \
                 models; replace the link with the text"
                    .to_owned()
            } else {
                let project = project.to_string_lossy();
                format!(
                    "it is a link that leads out of {project}; replace the link with the text, or \
                     link to a file in that folder"
                )
            }
        }
        Err(error) => error.to_string(),
    })
}

pub(crate) fn left_out(file: &Path, why: &str) -> String {
    visible(&format!("{} left out: {why}", file.to_string_lossy()))
}

/// Reads a file, truncated to the bytes that are `left`.
pub(crate) async fn section(
    backend: &dyn Backend,
    path: &FilePath,
    left: &mut usize,
    warnings: &mut Vec<String>,
) -> Option<String> {
    let (bytes, size) = match read_start(backend, path, MAX_TOTAL).await {
        Ok(read) => read,
        Err(error) => {
            warnings.push(left_out(path.real(), &error.to_string()));
            return None;
        }
    };
    if sniff::is_binary(&bytes) {
        warnings.push(left_out(path.real(), "not a text file"));
        return None;
    }
    let text = decode(&bytes);
    let text = lf(&text);
    let hidden = |c: char| is_deceptive(c) || (c.is_control() && c != '\n' && c != '\t');
    if text.contains(hidden) {
        let file = visible(&path.real().to_string_lossy());
        warnings.push(format!(
            "{file} contains invisible characters; the model sees them as escapes"
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
        "truncated: {} of {} are included; the limit for all files together is {}",
        format_size(kept.len() as u64),
        format_size(size),
        format_size(MAX_TOTAL as u64)
    );
    let file = visible(&path.real().to_string_lossy());
    warnings.push(format!("{file} is {note}"));
    Some(format!("{kept}\n[this file is {note}]"))
}

/// Reads the start of a file, and the size of the file.
async fn read_start(
    backend: &dyn Backend,
    path: &FilePath,
    max_bytes: usize,
) -> Result<(Vec<u8>, u64), Error> {
    let content = backend.read(path).await?;
    let given = path.given().to_owned();
    blocking::run(content.weight, move || {
        let mut bytes = Vec::new();
        let mut reader = content.reader.take(max_bytes as u64);
        reader
            .read_to_end(&mut bytes)
            .map_err(|source| Error::io("read", given, source))?;
        Ok((bytes, content.stat.size))
    })
    .await
}

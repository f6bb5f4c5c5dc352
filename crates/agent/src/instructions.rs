//! `AGENTS.md`: what a person and a project want an agent to know. Text for a prompt,
//! and nothing else: it allows nothing.
//!
//! A project's files are read before the project is trusted. So links are followed only
//! inside the project, and never to files that the session keeps from models.

use haft::Runtime;
use haft::ops::backend::Local;
use haft::ops::scope;
use haft::ops::text::decode::{decode, is_deceptive, lf, prefix, visible};
use haft::ops::text::sniff;
use haft::ops::{Backend, Error, FilePath, blocking};
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
/// Files that the session keeps from models are left out: secret places, haft's own
/// folders, and paths that its rules close to all tools.
///
/// When they are too long together, the person's own and those nearest to the folder
/// are kept.
pub async fn instructions(runtime: &Runtime, work_dir: &Path, own: Option<&Path>) -> Instructions {
    let mut found = Instructions::default();
    let mut places = Vec::new();
    if let Some(own) = own {
        places.extend(place(runtime, own, own, &mut found.warnings));
    }
    let is_own = places.len();
    if let Some(folder) = scope::real(work_dir) {
        let root = repository(&folder).unwrap_or_else(|| folder.clone());
        let holds_home = holds_home(&root, runtime.home());
        let inside = folder.ancestors().take_while(|one| one.starts_with(&root));
        for folder in inside {
            // A repository that covers a home folder is not a project: other files in it
            // have nothing to do with the work in this folder.
            let project = if holds_home { folder } else { &root };
            places.extend(place(runtime, project, folder, &mut found.warnings));
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
    let has_git = |folder: &&Path| is_there(&folder.join(".git"));
    let root = folder.ancestors().find(has_git)?;
    // A folder that is open to all could be made a repository by anybody.
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

#[expect(
    clippy::disallowed_methods,
    reason = "whose a folder is is nothing that a backend tells"
)]
fn owner(folder: &Path) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    Some(std::fs::metadata(folder).ok()?.uid())
}

/// The file of a folder, if there is one that may be read. A link must not lead out of
/// the project.
fn place(
    runtime: &Runtime,
    project: &Path,
    folder: &Path,
    warnings: &mut Vec<String>,
) -> Option<FilePath> {
    let file = folder.join(FILE);
    // A folder that is not there has none.
    let files = runtime.prompt_files(project).ok()?;
    let why = match files.resolve(&file) {
        Ok(path) if !path.is_there() => return None,
        Ok(path) if path.closed().is_none() => return Some(path),
        Ok(path) => {
            let target = path.real().to_string_lossy();
            format!(
                "a rule keeps {target} from the model; put the text into a file that no rule \
                 is about, or change the rule in haft.yaml"
            )
        }
        Err(Error::NotAllowed { .. }) => {
            let project = scope::real(project).unwrap_or_else(|| project.to_owned());
            let target = scope::real(&file).unwrap_or_else(|| file.clone());
            if target.starts_with(&project) {
                "it leads to a place for keys or for haft's own files, which no model gets to \
                 see; put the text itself into the file"
                    .to_owned()
            } else {
                let project = project.to_string_lossy();
                format!(
                    "it is a link that leads out of {project}; put the text itself into the \
                     file, or link to a file in that folder"
                )
            }
        }
        Err(error) => error.to_string(),
    };
    warnings.push(left_out(&file, &why));
    None
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

//! Files that the redirections of a command line write.

use super::line::{CommandLine, Folder};
use super::pattern::lexical;
use super::shell::Word;
use std::path::Path;

/// Returns why the redirections of a line may matter: to every rule about commands, and to
/// those that allow some.
pub(super) fn written(
    work_dir: &Path,
    line: &CommandLine,
) -> (Option<&'static str>, Option<&'static str>) {
    let (mut outside, mut unknown) = (None, None);
    for target in &line.targets {
        match place(work_dir, target, line.folder) {
            Place::Inside => {}
            Place::Outside => {
                outside = Some("a redirection to a file outside the work folder");
            }
            Place::Unknown => {
                unknown = Some("a redirection to a file whose name is not literal");
            }
        }
    }
    (outside, unknown)
}

/// Location of a file that a redirection writes.
enum Place {
    /// In the work folder or a temporary folder, or no file at all.
    Inside,
    Outside,
    Unknown,
}

fn place(work_dir: &Path, target: &Word, from: Folder) -> Place {
    const OPEN: &[&str] = &["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"];
    let prefix = target.prefix();
    let Some(text) = target.known() else {
        let folder = lexical(Path::new(prefix));
        let is_inside = !prefix.starts_with('/') || is_writable(work_dir, &folder);
        return match is_inside {
            true => Place::Unknown,
            false => Place::Outside,
        };
    };
    let path = lexical(Path::new(text));
    if path.is_absolute() {
        let is_open = OPEN.contains(&text) || text.starts_with("/dev/fd/");
        return match is_open || is_writable(work_dir, &path) {
            true => Place::Inside,
            false => Place::Outside,
        };
    }
    match (from, path.starts_with("..")) {
        (Folder::Unknown, _) | (Folder::Below, true) => Place::Unknown,
        (Folder::Work, true) => Place::Outside,
        (_, false) => Place::Inside,
    }
}

/// Whether commands may write a path: in the work folder or in the private folder for
/// temporary files.
fn is_writable(work_dir: &Path, path: &Path) -> bool {
    path.starts_with(work_dir) || path.starts_with("/tmp") || path.starts_with("/var/tmp")
}

//! The branch of a git repository, for the status line.

use std::path::{Path, PathBuf};

/// Letters of a commit without a branch.
const SHORT: usize = 7;

/// Returns the branch of the repository around a folder, or its commit.
pub(super) fn of(folder: &Path) -> Option<String> {
    let head = read(&git_folder(folder)?.join("HEAD"))?;
    let head = head.trim();
    let branch = head.strip_prefix("ref: refs/heads/");
    branch.or_else(|| head.get(..SHORT)).map(str::to_owned)
}

fn git_folder(folder: &Path) -> Option<PathBuf> {
    let git = folder.ancestors().map(|folder| folder.join(".git"));
    let git = git.into_iter().find(|git| git.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    // A worktree or a submodule: a file that names the folder.
    let text = read(&git)?;
    let named = text.trim().strip_prefix("gitdir:")?.trim();
    Some(git.parent()?.join(named))
}

#[expect(
    clippy::disallowed_methods,
    reason = "only the name of the branch is shown, to the user"
)]
fn read(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the disk themselves"
)]
mod tests {
    #[test]
    fn branches_are_those_of_the_repository_around() {
        let folder = tempfile::tempdir().unwrap();
        let (git, work) = (folder.path().join(".git"), folder.path().join("a/b"));
        std::fs::create_dir_all(&work).unwrap();
        std::fs::create_dir(&git).unwrap();
        assert_eq!(super::of(&work), None);
        std::fs::write(git.join("HEAD"), "ref: refs/heads/feature/x\n").unwrap();
        assert_eq!(super::of(&work).as_deref(), Some("feature/x"));
        std::fs::write(git.join("HEAD"), "0123456789abcdef\n").unwrap();
        assert_eq!(super::of(&work).as_deref(), Some("0123456"));
        std::fs::write(work.join(".git"), "gitdir: ../../.git\n").unwrap();
        assert_eq!(super::of(&work).as_deref(), Some("0123456"));
    }
}

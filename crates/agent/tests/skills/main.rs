//! Skills and AGENTS.md, including hostile files.
#![expect(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and looks at the disk itself"
)]

mod instructions;
mod skills;

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A session without rules, in an unrelated folder.
pub(crate) fn runtime() -> haft::Runtime {
    haft::Runtime::builder().dir("/").build().unwrap()
}

/// A temporary folder with files.
pub(crate) struct Bed {
    folder: tempfile::TempDir,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        std::fs::canonicalize(self.folder.path())
            .unwrap()
            .join(name)
    }

    /// Returns a path for a file, and creates its folder.
    fn place(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> &Self {
        std::fs::write(self.place(name), bytes).unwrap();
        self
    }

    pub(crate) fn link(&self, name: &str, to: impl AsRef<Path>) -> &Self {
        symlink(to, self.place(name)).unwrap();
        self
    }

    /// Creates a named pipe without a writer.
    pub(crate) fn fifo(&self, name: &str) -> &Self {
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let place = self.place(name);
        rustix::fs::mknodat(rustix::fs::CWD, place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        self
    }

    /// Creates a sparse file of one gigabyte.
    pub(crate) fn sparse(&self, name: &str) -> &Self {
        let file = std::fs::File::create(self.place(name)).unwrap();
        file.set_len(1 << 30).unwrap();
        self
    }
}

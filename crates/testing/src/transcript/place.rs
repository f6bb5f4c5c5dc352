//! The folders of one section.

use super::site::Site;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A work folder, and beside it a home for haft's settings and state.
#[derive(Debug)]
pub struct Place {
    _temp: TempDir,
    root: PathBuf,
    config: Option<PathBuf>,
    site: Option<Site>,
}

impl Place {
    pub(super) fn new(below: &Path) -> Self {
        let temp = TempDir::new_in(below).unwrap();
        let root = temp.path().canonicalize().unwrap();
        for folder in ["work", "home", "settings", "state"] {
            std::fs::create_dir(root.join(folder)).unwrap();
        }
        Self {
            _temp: temp,
            root,
            config: None,
            site: None,
        }
    }

    /// The work folder.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// The configuration file that the page gave.
    #[must_use]
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// A place beside the work folder.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Where haft lives: its own settings and state, nobody else's.
    pub(super) fn variables(&self) -> [(&'static str, PathBuf); 3] {
        [
            ("HOME", self.beside("home")),
            ("XDG_CONFIG_HOME", self.beside("settings")),
            ("XDG_STATE_HOME", self.beside("state")),
        ]
    }

    pub(super) fn put(&self, name: &str, content: &[u8]) {
        let path = self.work().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Puts a page on the server of the section.
    pub(super) fn put_page(&mut self, path: &str, status: u16, text: &str) {
        let site = self.site.get_or_insert_with(Site::new);
        site.put(path, status, text.to_owned());
    }

    /// What a file holds; nothing if there is none.
    pub(super) fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.work().join(name)).unwrap_or_default()
    }

    pub(super) fn configure(&mut self, content: &str) {
        let path = self.beside("config.yaml");
        std::fs::write(&path, self.located(content)).unwrap();
        self.config = Some(path);
    }

    /// A text of the page with the real folder in it.
    pub(super) fn located(&self, text: &str) -> String {
        let text = text.replace("$DIR", &self.work().to_string_lossy());
        match &self.site {
            Some(site) => text.replace("$SITE", &site.address()),
            None => text,
        }
    }

    /// A text of a tool as the page writes it.
    pub(super) fn readable(&self, text: &str) -> String {
        let outputs = self.beside("state").join("haft/outputs/");
        let text = match &self.site {
            Some(site) => text.replace(&site.address(), "$SITE"),
            None => text.to_owned(),
        };
        text.replace(&*self.work().to_string_lossy(), "$DIR")
            .split(&*outputs.to_string_lossy())
            .enumerate()
            .map(|(at, part)| match (at, part.splitn(3, '/').nth(2)) {
                (0, _) | (_, None) => part.to_owned(),
                // Which session it was is another thing each time.
                (_, Some(file)) => format!("$OUTPUTS/{file}"),
            })
            .collect::<String>()
            .trim_end_matches('\n')
            .to_owned()
    }
}

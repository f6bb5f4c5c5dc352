//! The folders of one section.

use super::site::Site;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A working folder, and beside it a home folder with haft's settings and state.
#[derive(Debug)]
pub struct SectionFolders {
    _temp: TempDir,
    root: PathBuf,
    config: Option<PathBuf>,
    site: Option<Site>,
}

impl SectionFolders {
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

    /// Returns the working folder.
    #[must_use]
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Returns the configuration file if the page has one.
    #[must_use]
    pub fn config(&self) -> Option<&Path> {
        self.config.as_deref()
    }

    /// Returns a path beside the working folder.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Environment variables that keep haft's settings and state inside these folders.
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

    /// Puts a page on the section's web server.
    pub(super) fn put_page(&mut self, path: &str, status: u16, text: &str) {
        let site = self.site.get_or_insert_with(Site::new);
        site.put(path, status, text.to_owned());
    }

    /// Returns the content of a file; empty if it does not exist.
    pub(super) fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.work().join(name)).unwrap_or_default()
    }

    pub(super) fn configure(&mut self, content: &str) {
        let path = self.beside("config.yaml");
        std::fs::write(&path, self.resolve(content)).unwrap();
        self.config = Some(path);
    }

    /// Replaces the placeholders in a text of the page with real values.
    pub(super) fn resolve(&self, text: &str) -> String {
        let text = text.replace("$DIR", &self.work().to_string_lossy());
        match &self.site {
            Some(site) => text.replace("$SITE", &site.address()),
            None => text,
        }
    }

    /// Replaces real values in a tool's text with placeholders.
    pub(super) fn with_placeholders(&self, text: &str) -> String {
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
                // The session id differs in every run.
                (_, Some(file)) => format!("$OUTPUTS/{file}"),
            })
            .collect::<String>()
            .trim_end_matches('\n')
            .to_owned()
    }
}

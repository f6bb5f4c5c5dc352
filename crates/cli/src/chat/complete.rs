//! Completion of `@file` and of commands. Files are looked for when somebody asks, for
//! a moment only, and only those that the session may see.

use haft::ops::FilePath;
use haft::ops::backend::Local;
use haft::ops::glob::{self, Dots, Glob, IgnoreFiles, Kinds, Matching};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How long a look may take.
const TIME: Duration = Duration::from_millis(200);

/// How many files are looked at, at most.
const FILES: usize = 50_000;

/// How many are offered.
const OFFERED: usize = 50;

/// What can stand in place of the end of what was typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offer {
    /// Where what is replaced begins, in bytes.
    pub(crate) start: usize,
    /// The best first.
    pub(crate) choices: Vec<String>,
}

/// What is to be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A file whose path has these letters.
    File { start: usize, letters: String },
    /// A command of the chat that begins so.
    Command(String),
}

impl Wanted {
    /// What stands before the cursor and can be completed.
    pub(crate) fn of(before: &str) -> Option<Self> {
        if before.starts_with('/') && !before.contains(char::is_whitespace) {
            return Some(Self::Command(before.to_owned()));
        }
        let word = before
            .rsplit(char::is_whitespace)
            .next()
            .unwrap_or_default();
        let letters = word.strip_prefix('@')?;
        Some(Self::File {
            start: before.len() - word.len(),
            letters: letters.to_owned(),
        })
    }
}

/// The files that fit, as paths from the work folder.
pub(crate) async fn files(folder: FilePath, start: usize, letters: String) -> Offer {
    let mut scored: Vec<(i64, String)> = found(folder)
        .await
        .into_iter()
        .filter_map(|path| Some((score(&path, &letters)?, path)))
        .collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    scored.truncate(OFFERED);
    Offer {
        start,
        choices: scored
            .into_iter()
            .map(|(_, path)| format!("@{path}"))
            .collect(),
    }
}

async fn found(path: FilePath) -> Vec<String> {
    let request = Glob {
        path,
        matching: Matching::Everything,
        dots: Dots::Match,
        kinds: Kinds::Both,
        ignored: IgnoreFiles::Honour,
        max: FILES,
        deadline: Some(Instant::now() + TIME),
        cancel: CancellationToken::new(),
    };
    match glob::entries(&Local::new(), request, &|_| {}).await {
        Ok(globbed) => globbed
            .entries
            .iter()
            .map(|entry| {
                let end = if entry.is_dir() { "/" } else { "" };
                format!("{}{end}", entry.below.display())
            })
            // What git keeps for itself is no file that one names.
            .filter(|path| !path.starts_with(".git/"))
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// How well a path fits some letters that it must have in their order; better where
/// they stand together, at the beginning of a word, and in the name.
fn score(path: &str, letters: &str) -> Option<i64> {
    let lower = path.to_lowercase();
    let wanted = letters.to_lowercase();
    let length = i64::try_from(lower.len()).unwrap_or(i64::MAX);
    let name = lower
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    if lower.starts_with(&wanted) {
        return Some(3000 - length);
    }
    if name.starts_with(&wanted) {
        return Some(2000 - length);
    }
    if lower.contains(&wanted) {
        return Some(1000 - length);
    }
    let mut rest = lower.as_str();
    let mut gaps = 0;
    for letter in wanted.chars() {
        let at = rest.find(letter)?;
        gaps += i64::try_from(at).ok()?;
        rest = rest.get(at + letter.len_utf8()..)?;
    }
    Some(-gaps - length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_the_cursor_is_completed() {
        assert_eq!(
            Wanted::of("look at @src/ma"),
            Some(Wanted::File {
                start: 8,
                letters: "src/ma".to_owned()
            })
        );
        assert_eq!(Wanted::of("mail a@b.c"), None);
        assert_eq!(Wanted::of("/mo"), Some(Wanted::Command("/mo".to_owned())));
        assert_eq!(Wanted::of("/model x"), None);
        assert_eq!(Wanted::of(""), None);
    }

    #[test]
    fn the_nearest_file_comes_first() {
        let mut paths = vec![
            "docs/main.md",
            "src/main.rs",
            "src/domain/x.rs",
            "main.c",
            "Makefile",
        ];
        paths.retain(|path| score(path, "main").is_some());
        paths.sort_by_key(|path| -score(path, "main").unwrap());
        assert_eq!(
            paths,
            ["main.c", "src/main.rs", "docs/main.md", "src/domain/x.rs"]
        );
        assert!(score("src/chat/ink.rs", "scink").is_some());
        assert!(score("src/chat/ink.rs", "knis").is_none());
        assert!(score("ab", "abb").is_none());
        assert!(score("anything", "").is_some());
    }
}

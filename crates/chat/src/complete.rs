//! Completion of `@file` and of slash commands. Git-ignored files are left out; files are searched on demand, for a short
//! time, and only those that the session may see.

use haft::ops::FilePath;
use haft::ops::backend::Local;
use haft::ops::glob::{self, Dots, Glob, IgnoreFiles, Kinds, Matching};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

const SEARCH_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum number of files to search.
const MAX_FILES: usize = 50_000;

const MAX_COMPLETIONS: usize = 50;

/// The word to complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CompletionTarget {
    /// A file whose path contains these letters in order.
    File { start: usize, letters: String },
    /// A slash command with this prefix.
    Command(String),
}

impl CompletionTarget {
    /// Finds the word to complete in the text before the cursor.
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

/// Returns the paths that match these letters best, best first. This takes milliseconds if
/// there are many files.
pub(crate) fn matching(paths: &[String], letters: &str) -> Vec<String> {
    let scored = paths
        .iter()
        .filter_map(|path| Some((score(path, letters)?, path)));
    let mut scored: Vec<(i64, &String)> = scored.collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.truncate(MAX_COMPLETIONS);
    scored.into_iter().map(|(_, path)| path.clone()).collect()
}

/// Lists files and folders, as paths relative to the work folder.
pub(crate) async fn list_files(path: FilePath) -> Vec<String> {
    let request = Glob {
        path,
        matching: Matching::Everything,
        dots: Dots::Match,
        kinds: Kinds::Both,
        ignored: IgnoreFiles::Honour,
        max: MAX_FILES,
        deadline: Some(Instant::now() + SEARCH_TIMEOUT),
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
            // Users do not mention git's internal files.
            .filter(|path| !path.starts_with(".git/"))
            .collect(),
        Err(_) => Vec::new(),
    }
}

/// Scores a path that contains the letters in order. Matches score higher if the letters
/// are contiguous, at the beginning of the path, or at the beginning of the file name.
pub(crate) fn score(path: &str, letters: &str) -> Option<i64> {
    let lower = path.to_lowercase();
    let query = letters.to_lowercase();
    let length = i64::try_from(lower.len()).unwrap_or(i64::MAX);
    let name = lower
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    if lower.starts_with(&query) {
        return Some(3000 - length);
    }
    if name.starts_with(&query) {
        return Some(2000 - length);
    }
    if lower.contains(&query) {
        return Some(1000 - length);
    }
    let mut rest = lower.as_str();
    let mut gaps = 0;
    for letter in query.chars() {
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
    fn finds_the_word_before_the_cursor() {
        assert_eq!(
            CompletionTarget::of("look at @src/ma"),
            Some(CompletionTarget::File {
                start: 8,
                letters: "src/ma".to_owned()
            })
        );
        assert_eq!(CompletionTarget::of("mail a@b.c"), None);
        assert_eq!(
            CompletionTarget::of("/mo"),
            Some(CompletionTarget::Command("/mo".to_owned()))
        );
        assert_eq!(CompletionTarget::of("/model x"), None);
        assert_eq!(CompletionTarget::of(""), None);
    }

    #[test]
    fn sorts_the_best_match_first() {
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

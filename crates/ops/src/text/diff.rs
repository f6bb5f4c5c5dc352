//! Differences between two texts.

use std::time::Duration;

use similar::{Algorithm, TextDiff};

use super::{decode, lines};

/// Time after which a comparison stops looking for the shortest diff and returns a longer
/// but correct one, so that two huge texts cannot delay a reply.
const PATIENCE: Duration = Duration::from_millis(500);

/// Returns a unified diff of one file with `context` lines around each change; empty if
/// nothing changed.
#[must_use]
pub fn unified(old: &str, new: &str, path: &str, context: usize) -> String {
    unified_bytes(old.as_bytes(), new.as_bytes(), path, context)
}

/// Like [`unified`], for bytes. Decodes only the part that differs, so a small change in a
/// large file needs little memory.
#[must_use]
pub fn unified_bytes(old: &[u8], new: &[u8], path: &str, context: usize) -> String {
    let Some(part) = Part::between(old, new, context) else {
        return String::new();
    };
    let (old, new) = (decode::lossy(part.old), decode::lossy(part.new));
    let (old, new) = (rows(&old), rows(&new));
    let diff = compare(&old, &new);
    let mut shown = String::new();
    for hunk in diff.unified_diff().context_radius(context).iter_hunks() {
        if shown.is_empty() {
            // A newline in the name would end the header early.
            let path = path.replace('\n', "\\n");
            shown.push_str(&format!("--- {path}\n+++ {path}\n"));
        }
        let (Some(first), Some(last)) = (hunk.ops().first(), hunk.ops().last()) else {
            continue;
        };
        let range = |from: usize, to: usize| match to.saturating_sub(from) {
            1 => format!("{}", part.before + from + 1),
            // For an empty range, the format requires the line before it.
            0 => format!("{},0", part.before + from),
            lines => format!("{},{lines}", part.before + from + 1),
        };
        shown.push_str(&format!(
            "@@ -{} +{} @@\n",
            range(first.old_range().start, last.old_range().end),
            range(first.new_range().start, last.new_range().end),
        ));
        let hunk = hunk.to_string();
        shown.push_str(hunk.split_once('\n').unwrap_or_default().1);
    }
    shown
}

/// Returns the first line that differs, counted from 1.
///
/// If only the end of the old text was removed, this is the line after the last.
#[must_use]
pub fn first_changed_line(old: &[u8], new: &[u8]) -> Option<usize> {
    let same = common_prefix(old, new);
    let is_all = same == old.len() && same == new.len();
    let same = old.get(..same).unwrap_or_default();
    (!is_all).then(|| memchr::memchr_iter(b'\n', same).count() + 1)
}

/// The part of two texts that differs, in complete lines, with the context around it.
struct Part<'a> {
    old: &'a [u8],
    new: &'a [u8],
    /// Number of lines before it.
    before: usize,
}

impl<'a> Part<'a> {
    /// Returns `None` if the texts are the same.
    fn between(old: &'a [u8], new: &'a [u8], context: usize) -> Option<Self> {
        let same = common_prefix(old, new);
        if same == old.len() && same == new.len() {
            return None;
        }
        let newline_before = |at: usize| memchr::memrchr(b'\n', old.get(..at).unwrap_or_default());
        let first = newline_before(same).map_or(0, |at| at + 1);
        let mut begin = first;
        for _ in 0..context {
            begin = match begin.checked_sub(1) {
                None => break,
                Some(at) => newline_before(at).map_or(0, |at| at + 1),
            };
        }
        // The line in which the common suffix starts may differ before it.
        let rest = |bytes: &'a [u8]| bytes.get(first..).unwrap_or_default();
        let alike = common_suffix(rest(old), rest(new));
        let end = old.get(old.len() - alike..).unwrap_or_default();
        let shown = memchr::memchr_iter(b'\n', end).nth(context);
        let left_out = shown.map_or(0, |at| end.len() - at - 1);
        let before = memchr::memchr_iter(b'\n', old.get(..begin).unwrap_or_default()).count();
        Some(Self {
            old: old.get(begin..old.len() - left_out).unwrap_or_default(),
            new: new.get(begin..new.len() - left_out).unwrap_or_default(),
            before,
        })
    }
}

/// Number of bytes to compare at a time.
const STEP: usize = 4096;

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let steps = a.chunks(STEP).zip(b.chunks(STEP));
    let same = STEP * steps.take_while(|(a, b)| a == b && a.len() == STEP).count();
    let (a, b) = (a.iter().skip(same), b.iter().skip(same));
    same + a.zip(b).take_while(|(a, b)| a == b).count()
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let steps = a.rchunks(STEP).zip(b.rchunks(STEP));
    let same = STEP * steps.take_while(|(a, b)| a == b && a.len() == STEP).count();
    let (a, b) = (a.iter().rev().skip(same), b.iter().rev().skip(same));
    same + a.zip(b).take_while(|(a, b)| a == b).count()
}

/// Extracts only the removed (`- `) and added (`+ `) lines from a unified diff of one file.
#[must_use]
pub fn changed_lines(unified: &str) -> String {
    let changed = unified
        .lines()
        // Skips the header, because other lines may look like it.
        .skip(2)
        .filter_map(|line| {
            let (sign, rest) = line.split_at_checked(1)?;
            matches!(sign, "-" | "+").then(|| format!("{sign} {rest}"))
        });
    changed.collect::<Vec<_>>().join("\n")
}

/// Splits lines at LF only; the diff library would also split at a lone CR.
fn rows(text: &str) -> Vec<&str> {
    lines::split_inclusive(text).collect()
}

fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> TextDiff<'a, 'a, str> {
    TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(PATIENCE)
        .newline_terminated(true)
        .diff_slices(old, new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::Instant;

    #[test]
    fn unified_format() {
        assert_eq!(
            unified("a\nb\nc\nd\n", "a\nB\nc\nd\n", "x/y.txt", 1),
            "--- x/y.txt\n+++ x/y.txt\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
        );
        assert_eq!(unified("a", "a", "p", 3), "");
        assert!(unified("a\n", "a", "p", 3).ends_with("-a\n+a\n\\ No newline at end of file\n"));
        assert!(unified("a\rb\n", "a\rc\n", "p", 0).contains("-a\rb\n+a\rc\n"));
        assert!(unified("", "x\n", "a\nb", 0).starts_with("--- a\\nb\n"));
    }

    #[test]
    fn only_changed_lines() {
        let changed = |old, new| changed_lines(&unified(old, new, "p", 3));
        assert_eq!(changed("a\nb\nc\n", "a\nB\nc\nd\n"), "- b\n+ B\n+ d");
        assert_eq!(changed("a", "a"), "");
        assert_eq!(changed("", "a\n\n"), "+ a\n+ ");
        assert_eq!(changed("-- a\n", "++ a"), "- -- a\n+ ++ a");
        assert_eq!(changed("é\r\n", "é b\r\n"), "- é\n+ é b");
    }

    #[test]
    fn the_first_change() {
        let first = |old: &str, new: &str| first_changed_line(old.as_bytes(), new.as_bytes());
        assert_eq!(first("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first("a\n", "a\n"), None);
        assert_eq!(first("", "a"), Some(1));
        assert_eq!(first("a\nb\n", "a\n"), Some(2));
        assert_eq!(first("a\n", "a"), Some(1));
    }

    #[test]
    fn huge_texts_stay_bounded() {
        let old: String = (0..60_000u64)
            .map(|n| format!("{}\n", n * 7919 % 60_013))
            .collect();
        let new: String = (0..60_000u64)
            .map(|n| format!("{}\n", n * 104_729 % 60_013))
            .collect();
        let start = Instant::now();
        assert!(!unified(&old, &new, "p", 3).is_empty());
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_change_far_down_has_its_line_numbers() {
        let line = |n: usize| format!("line {n}\n");
        let old: String = (1..=20_000).map(line).collect();
        let new = old.replace("line 15000\n", "changed\nand more\n");
        assert_eq!(
            unified(&old, &new, "p", 1),
            "--- p\n+++ p\n@@ -14999,3 +14999,4 @@\n line 14999\n-line 15000\n+changed\n+and more\n line 15001\n"
        );
        assert_eq!(
            first_changed_line(old.as_bytes(), new.as_bytes()),
            Some(15_000)
        );
        let gone = old.replace("line 20000\n", "");
        let end = unified(&old, &gone, "p", 0);
        assert!(
            end.contains("@@ -20000 +19999,0 @@\n-line 20000\n"),
            "{end}"
        );
    }

    /// Applies a diff by the line numbers it contains.
    fn patched(old: &str, diff: &str) -> String {
        let mut rest: Vec<&str> = rows(old);
        rest.reverse();
        let (mut new, mut at, mut came) = (String::new(), 1, false);
        for line in diff.split_inclusive('\n').skip(2) {
            match line.split_at(1) {
                ("@", numbers) => {
                    let old = numbers.split(['-', ' ']).nth(2).unwrap();
                    let (from, count) = old.split_once(',').unwrap_or((old, "1"));
                    let from: usize = from.parse().unwrap();
                    // For an empty range, the format uses the line before it.
                    let from = if count == "0" { from + 1 } else { from };
                    for _ in at..from {
                        new.push_str(rest.pop().unwrap());
                    }
                    at = from;
                }
                ("+", line) => new.push_str(line),
                // The line before has no newline.
                ("\\", _) => {
                    if came {
                        new.pop();
                    }
                }
                (sign, line) => {
                    at += 1;
                    let was = rest.pop().unwrap();
                    assert_eq!(was.trim_end_matches('\n'), line.trim_end_matches('\n'));
                    if sign == " " {
                        new.push_str(was);
                    }
                }
            }
            came = line.starts_with('+');
        }
        rest.into_iter().rev().for_each(|line| new.push_str(line));
        new
    }

    proptest! {
        #[test]
        fn applying_a_diff_to_the_old_text_gives_the_new_one(
            before in "[ab\n]{0,30}", old in "[ab\n]{0,12}", new in "[ab\n]{0,12}",
            after in "[ab\n]{0,30}", context in 0usize..4,
        ) {
            let (old, new) = (format!("{before}{old}{after}"), format!("{before}{new}{after}"));
            prop_assert_eq!(patched(&old, &unified(&old, &new, "p", context)), new);
        }

        #[test]
        fn both_sides_can_be_read_back(old in "[ab\n]{0,20}", new in "[ab\n]{0,20}") {
            let shown = unified(&old, &new, "p", 100);
            prop_assert_eq!(shown.is_empty(), old == new);
            if old != new {
                for (sign, text) in [('-', &old), ('+', &new)] {
                    let mut side = String::new();
                    for line in shown.lines().skip(3) {
                        match line.chars().next() {
                            Some(first) if first == sign || first == ' ' => {
                                side.push_str(line.get(1..).unwrap());
                                side.push('\n');
                            }
                            _ => {}
                        }
                    }
                    prop_assert_eq!(side.trim_end_matches('\n'), text.trim_end_matches('\n'));
                }
            }
        }

        #[test]
        fn lines_before_the_first_change_are_the_same(old in "[ab\n]{0,20}", new in "[ab\n]{0,20}") {
            match first_changed_line(old.as_bytes(), new.as_bytes()) {
                None => prop_assert_eq!(old, new),
                Some(line) => {
                    let get = |text: &str, n: usize| lines::split_inclusive(text).nth(n).map(str::to_owned);
                    prop_assert_ne!(get(&old, line - 1), get(&new, line - 1));
                    for before in 0..line - 1 {
                        prop_assert_eq!(get(&old, before), get(&new, before));
                    }
                }
            }
        }
    }
}

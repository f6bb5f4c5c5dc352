//! What changed between two texts.

use std::time::Duration;

use similar::{Algorithm, TextDiff};

use super::lines;

/// After this time a comparison stops looking for the shortest answer and gives
/// a correct longer one, so that two huge texts cannot hold up a reply.
const PATIENCE: Duration = Duration::from_millis(500);

/// A unified diff of one file, with `context` lines around each change; empty
/// when nothing changed.
#[must_use]
pub fn unified(old: &str, new: &str, path: &str, context: usize) -> String {
    if old == new {
        return String::new();
    }
    // A newline in a name would end the header early.
    let path = path.replace('\n', "\\n");
    let (old, new) = (rows(old), rows(new));
    compare(&old, &new)
        .unified_diff()
        .context_radius(context)
        .header(&path, &path)
        .to_string()
}

/// The number of the first line that is not the same, counted from 1.
///
/// Where the end of the old text was cut off it is the line after the last.
#[must_use]
pub fn first_changed_line(old: &str, new: &str) -> Option<usize> {
    if old == new {
        return None;
    }
    let same = lines::split_inclusive(old)
        .zip(lines::split_inclusive(new))
        .take_while(|(old, new)| old == new);
    Some(same.count() + 1)
}

/// Only the lines of a unified diff of one file that went (`- `) and came
/// (`+ `), in its order.
#[must_use]
pub fn changed_lines(unified: &str) -> String {
    let changed = unified
        .lines()
        // Below the header, where a line may look like one.
        .skip(2)
        .filter_map(|line| {
            let (sign, rest) = line.split_at_checked(1)?;
            matches!(sign, "-" | "+").then(|| format!("{sign} {rest}"))
        });
    changed.collect::<Vec<_>>().join("\n")
}

/// The library's own idea of a line ends at a lone CR too; ours does not.
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
        assert_eq!(first_changed_line("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_changed_line("a\n", "a\n"), None);
        assert_eq!(first_changed_line("", "a"), Some(1));
        assert_eq!(first_changed_line("a\nb\n", "a\n"), Some(2));
        assert_eq!(first_changed_line("a\n", "a"), Some(1));
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

    proptest! {
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
            match first_changed_line(&old, &new) {
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

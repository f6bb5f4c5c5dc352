use super::{Numbers, Row, difference, lines, parse};
use crate::style::{Depth, Palette, Theme};
use crate::styled_text::{Line, Styling};
use proptest::prelude::*;

const DIFF: &str = "--- a.rs\n+++ a.rs\n@@ -9,3 +9,3 @@\n fn a() {\n-    one(1);\n+    one(23);\n }\n\
    @@ -40 +40,2 @@\n-old\n+new\n+lines\n\\ No newline at end of file\n";

fn text(lines: &[Line]) -> Vec<String> {
    lines.iter().map(Line::text).collect()
}

#[test]
fn rows_have_the_numbers_of_the_file() {
    let rows = parse(DIFF);
    assert_eq!(rows[1], Row::Removed(10, "    one(1);".to_owned()));
    assert_eq!(
        text(&lines(&rows, "a.rs", Numbers::Shown, 80)),
        [
            " 9  fn a() {",
            "10 -    one(1);",
            "10 +    one(23);",
            "11  }",
            " ⋮",
            "40 -old",
            "40 +new",
            "41 +lines",
            "    No newline at end of file",
        ]
    );
    assert_eq!(
        text(&lines(&rows[1..2], "a.rs", Numbers::Hidden, 11)),
        ["-    one(1)", " ;"]
    );
}

#[test]
fn words_that_differ_have_another_background() {
    let rows = parse(DIFF);
    let dark = Styling::Ansi(Palette::new(Theme::Dark, Depth::Rgb));
    let lines = lines(&rows, "a.rs", Numbers::Shown, 40);
    let added = lines[2].render_row(dark, 40);
    assert!(added.contains("48;2;35;107;60m23\x1b[0m"), "{added:?}");
    // The background reaches the edge.
    assert!(
        added.ends_with("\x1b[48;2;18;48;32m\x1b[K\x1b[0m"),
        "{added:?}"
    );
    // Without backgrounds the text itself has the colour.
    let plain = lines[2].render_row(Styling::Ansi(Palette::TERMINAL), 40);
    assert!(plain.contains("\x1b[32m"), "{plain:?}");
    assert!(!plain.contains("\x1b[K"), "{plain:?}");
}

#[test]
fn only_similar_lines_are_compared() {
    assert_eq!(difference("let a = 1;", "let a = 20;"), Some((8..9, 8..10)));
    assert_eq!(difference("let name", "let names"), Some((4..8, 4..9)));
    assert_eq!(difference("something", "else"), None);
}

proptest! {
    #[test]
    fn all_text_is_shown(old in "[ab é日\t]{0,12}", new in "[ab é日\t]{0,12}") {
        let rows = [Row::Removed(1, old.clone()), Row::Added(1, new.clone())];
        let shown = text(&lines(&rows, "a.rs", Numbers::Hidden, 40)).concat();
        let letters = |text: &str| text.replace([' ', '\t', '-', '+'], "");
        prop_assert_eq!(letters(&shown), letters(&(old + &new)));
    }
}

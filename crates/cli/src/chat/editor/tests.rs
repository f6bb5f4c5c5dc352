use super::{Editor, Reach, Way};
use crate::chat::ink::{Line, width};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

fn editor(before: &str, behind: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert(&format!("{before}{behind}"));
    while editor.before() != before {
        editor.go(Way::Back, Reach::Cluster);
    }
    editor
}

#[test]
fn keys_work_on_what_a_person_calls_a_letter() {
    let mut line = editor("ae\u{301}👍🏽", "z");
    line.delete(Way::Back, Reach::Cluster);
    assert_eq!(line.text(), "ae\u{301}z");
    line.delete(Way::Back, Reach::Cluster);
    assert_eq!(line.text(), "az");
    // A mark on its own joins the letter before it.
    let mut line = editor("e", "x");
    line.insert("\u{301}");
    line.insert("!");
    assert_eq!(line.text(), "e\u{301}!x");
}

#[test]
fn words_and_lines() {
    let mut line = editor("one two-three", " four\nnext");
    line.go(Way::Back, Reach::Word);
    assert_eq!(line.before(), "one two-");
    line.go(Way::Forth, Reach::Word);
    assert_eq!(line.before(), "one two-three");
    line.delete(Way::Back, Reach::Word);
    assert_eq!(line.text(), "one two- four\nnext");
    line.delete(Way::Forth, Reach::Line);
    assert_eq!(line.text(), "one two-\nnext");
    line.put_back();
    assert_eq!(line.text(), "one two- four\nnext");
    line.delete(Way::Back, Reach::Line);
    assert_eq!(line.text(), "\nnext");
    assert!(line.go_line(Way::Forth));
    assert!(!line.go_line(Way::Forth));
    assert_eq!(line.before(), "\n");
}

#[test]
fn up_and_down_keep_the_column() {
    let mut line = editor("first\nse", "cond\nx");
    assert!(line.go_line(Way::Back));
    assert_eq!(line.before(), "fi");
    assert!(!line.go_line(Way::Back));
    line.go(Way::Forth, Reach::Line);
    assert!(line.go_line(Way::Forth) && line.go_line(Way::Forth));
    assert_eq!(line.before(), "first\nsecond\nx");
}

#[test]
fn a_paste_keeps_its_lines_and_shows_what_it_holds() {
    let mut line = Editor::default();
    line.insert("a\r\nb\rc\td\x1b[2J");
    assert_eq!(line.text(), "a\nb\nc\td\x1b[2J");
    let shown = line.shown(&Line::plain("> "), 40);
    let rows: Vec<String> = shown.rows.iter().map(Line::text).collect();
    assert_eq!(rows, ["> a", "  b", "  c    d\\x1b[2J"]);
    assert_eq!((shown.row, shown.column), (2, 15));
}

#[test]
fn a_long_line_goes_on_below() {
    let line = editor("日本語日", "本");
    let shown = line.shown(&Line::plain("> "), 8);
    let rows: Vec<String> = shown.rows.iter().map(Line::text).collect();
    assert_eq!(rows, ["> 日本", "  語日", "  本"]);
    assert_eq!((shown.row, shown.column), (2, 2));
}

proptest! {
    #[test]
    fn the_cursor_is_always_between_two_letters(
        text in "[a \ne\u{301}👍🏽日-]{0,20}",
        keys in prop::collection::vec(0u8..14, 0..40),
        columns in 12usize..30,
    ) {
        let mut line = Editor::default();
        line.insert(&text);
        for key in keys {
            let way = if key % 2 == 0 { Way::Back } else { Way::Forth };
            match key / 2 {
                0 => line.go(way, Reach::Cluster),
                1 => line.go(way, Reach::Word),
                2 => line.go(way, Reach::Line),
                3 => line.delete(way, Reach::Cluster),
                4 => line.delete(way, Reach::Word),
                5 => { line.go_line(way); }
                _ => line.insert(if key % 2 == 0 { "\u{301}" } else { "日" }),
            }
            let mut places = vec![0];
            for cluster in line.text().graphemes(true) {
                places.push(places.last().unwrap() + cluster.len());
            }
            prop_assert!(places.contains(&line.before().len()), "{line:?}");
            let shown = line.shown(&Line::plain("> "), columns);
            prop_assert!(shown.row < shown.rows.len() && shown.column < columns);
            for row in &shown.rows {
                prop_assert!(width(&row.text()) <= columns);
            }
        }
    }
}

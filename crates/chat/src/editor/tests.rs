use super::{Direction, Editor, Unit};
use crate::styled_text::{Line, width};
use proptest::prelude::*;
use unicode_segmentation::UnicodeSegmentation;

fn editor(before: &str, behind: &str) -> Editor {
    let mut editor = Editor::default();
    editor.insert(&format!("{before}{behind}"));
    while editor.before_cursor() != before {
        editor.move_cursor(Direction::Backward, Unit::Grapheme);
    }
    editor
}

#[test]
fn keys_move_by_grapheme_cluster() {
    let mut line = editor("ae\u{301}👍🏽", "z");
    line.delete(Direction::Backward, Unit::Grapheme);
    assert_eq!(line.text(), "ae\u{301}z");
    line.delete(Direction::Backward, Unit::Grapheme);
    assert_eq!(line.text(), "az");
    // A combining mark joins the letter before it.
    let mut line = editor("e", "x");
    line.insert("\u{301}");
    line.insert("!");
    assert_eq!(line.text(), "e\u{301}!x");
}

#[test]
fn moves_and_deletes_by_word_and_line() {
    let mut line = editor("one two-three", " four\nnext");
    line.move_cursor(Direction::Backward, Unit::Word);
    assert_eq!(line.before_cursor(), "one two-");
    line.move_cursor(Direction::Forward, Unit::Word);
    assert_eq!(line.before_cursor(), "one two-three");
    line.delete(Direction::Backward, Unit::Word);
    assert_eq!(line.text(), "one two- four\nnext");
    line.delete(Direction::Forward, Unit::Line);
    assert_eq!(line.text(), "one two-\nnext");
    line.yank();
    assert_eq!(line.text(), "one two- four\nnext");
    line.delete(Direction::Backward, Unit::Line);
    assert_eq!(line.text(), "\nnext");
    assert!(line.move_line(Direction::Forward));
    assert!(!line.move_line(Direction::Forward));
    assert_eq!(line.before_cursor(), "\n");
}

#[test]
fn up_and_down_keep_the_column() {
    let mut line = editor("first\nse", "cond\nx");
    assert!(line.move_line(Direction::Backward));
    assert_eq!(line.before_cursor(), "fi");
    assert!(!line.move_line(Direction::Backward));
    line.move_cursor(Direction::Forward, Unit::Line);
    assert!(line.move_line(Direction::Forward) && line.move_line(Direction::Forward));
    assert_eq!(line.before_cursor(), "first\nsecond\nx");
}

#[test]
fn a_paste_keeps_its_lines_and_shows_control_characters() {
    let mut line = Editor::default();
    line.insert("a\r\nb\rc\td\x1b[2J");
    assert_eq!(line.text(), "a\nb\nc\td\x1b[2J");
    let shown = line.view(&Line::plain("> "), 40);
    let rows: Vec<String> = shown.rows.iter().map(Line::text).collect();
    assert_eq!(rows, ["> a", "  b", "  c    d\\x1b[2J"]);
    assert_eq!((shown.row, shown.column), (2, 15));
}

#[test]
fn a_long_line_wraps() {
    let line = editor("日本語日", "本");
    let shown = line.view(&Line::plain("> "), 8);
    let rows: Vec<String> = shown.rows.iter().map(Line::text).collect();
    assert_eq!(rows, ["> 日本", "  語日", "  本"]);
    assert_eq!((shown.row, shown.column), (2, 2));
}

proptest! {
    #[test]
    fn the_cursor_is_always_on_a_grapheme_boundary(
        text in "[a \ne\u{301}👍🏽日-]{0,20}",
        keys in prop::collection::vec(0u8..14, 0..40),
        columns in 12usize..30,
    ) {
        let mut line = Editor::default();
        line.insert(&text);
        for key in keys {
            let direction = if key % 2 == 0 { Direction::Backward } else { Direction::Forward };
            match key / 2 {
                0 => line.move_cursor(direction, Unit::Grapheme),
                1 => line.move_cursor(direction, Unit::Word),
                2 => line.move_cursor(direction, Unit::Line),
                3 => line.delete(direction, Unit::Grapheme),
                4 => line.delete(direction, Unit::Word),
                5 => { line.move_line(direction); }
                _ => line.insert(if key % 2 == 0 { "\u{301}" } else { "日" }),
            }
            let mut places = vec![0];
            for cluster in line.text().graphemes(true) {
                places.push(places.last().unwrap() + cluster.len());
            }
            prop_assert!(places.contains(&line.before_cursor().len()), "{line:?}");
            let shown = line.view(&Line::plain("> "), columns);
            prop_assert!(shown.row < shown.rows.len() && shown.column < columns);
            for row in &shown.rows {
                prop_assert!(width(&row.text()) <= columns);
            }
        }
    }
}

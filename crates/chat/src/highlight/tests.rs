use super::{Highlighter, Piece};
use crate::style::Colour;
use proptest::prelude::*;

fn coloured(highlighter: &mut Highlighter, line: &str) -> Vec<(String, Colour)> {
    let pieces = highlighter.line(line).into_iter();
    pieces
        .map(|(range, colour)| (line.get(range).unwrap().to_owned(), colour))
        .collect()
}

fn words(name: &str, line: &str) -> Vec<(String, Colour)> {
    coloured(&mut Highlighter::named(name), line)
}

fn expect(found: &[(String, Colour)], expected: &[(&str, Colour)]) {
    let found: Vec<_> = found
        .iter()
        .map(|(text, colour)| (text.as_str(), *colour))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn words_of_code_have_colours() {
    expect(
        &words(
            "rust",
            "pub fn f<'a>(x: &'a Str) -> u8 { 'x'; g(\"a\\\"b\", 1_0) } // end",
        ),
        &[
            ("pub", Colour::Keyword),
            ("fn", Colour::Keyword),
            ("Str", Colour::Type),
            ("'x'", Colour::Literal),
            ("g", Colour::Function),
            ("\"a\\\"b\"", Colour::Literal),
            ("1_0", Colour::Number),
            ("// end", Colour::Comment),
        ],
    );
    expect(
        &words("sh", "if [ $# -gt 0 ]; then echo 'a # b' # note"),
        &[
            ("if", Colour::Keyword),
            ("0", Colour::Number),
            ("then", Colour::Keyword),
            ("echo", Colour::Keyword),
            ("'a # b'", Colour::Literal),
            ("# note", Colour::Comment),
        ],
    );
    expect(&words("sh", "cp a /usr/local/in --if"), &[]);
    expect(
        &words("json", r#"{"a": "b", "n": 1}"#),
        &[
            ("\"a\"", Colour::Function),
            ("\"b\"", Colour::Literal),
            ("\"n\"", Colour::Function),
            ("1", Colour::Number),
        ],
    );
    expect(
        &words("SQL", "Select 1"),
        &[("Select", Colour::Keyword), ("1", Colour::Number)],
    );
    assert!(words("nothing", "if (x)").is_empty());
}

#[test]
fn comments_and_texts_go_on_in_the_next_line() {
    let mut python = Highlighter::of_file("src/a.py");
    assert_eq!(coloured(&mut python, "x = \"\"\"one").len(), 1);
    expect(
        &coloured(&mut python, "def two"),
        &[("def two", Colour::Literal)],
    );
    expect(
        &coloured(&mut python, "three\"\"\"; pass"),
        &[("three\"\"\"", Colour::Literal), ("pass", Colour::Keyword)],
    );
    let mut c = Highlighter::named("c");
    assert_eq!(coloured(&mut c, "int x; /* one").len(), 2);
    expect(
        &coloured(&mut c, "int */ int"),
        &[("int */", Colour::Comment), ("int", Colour::Keyword)],
    );
    // A quote that a language does not continue is over with its line.
    assert_eq!(coloured(&mut c, "\"open").len(), 1);
    expect(&coloured(&mut c, "int"), &[("int", Colour::Keyword)]);
}

proptest! {
    #[test]
    fn pieces_are_in_order_and_between_letters(lines in prop::collection::vec("[a-zA-Z\"'`#/*\\\\ é日0-9$@({=:-]{0,30}", 0..6)) {
        for name in ["rust", "python", "ts", "sh", "json", "yaml", "html", "lua"] {
            let mut highlighter = Highlighter::named(name);
            for line in &lines {
                let mut end = 0;
                let pieces: Vec<Piece> = highlighter.line(line);
                for (range, _) in pieces {
                    prop_assert!(range.start >= end && range.end > range.start);
                    prop_assert!(line.get(range.clone()).is_some(), "{line:?} {range:?}");
                    end = range.end;
                }
            }
        }
    }
}

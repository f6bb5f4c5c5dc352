use super::splice::{Replacement, apply, line_of, lines};
use super::*;
use crate::backend::Memory;
use crate::{Access, Scope};
use proptest::prelude::*;

/// Returns all matches with their replacements.
fn find(bytes: &[u8], old: &str, new: &str) -> Vec<Replacement> {
    splice::find(bytes, old).replacements(bytes, new)
}

fn apart(bytes: &[u8], old: &str, new: &str) -> Vec<Replacement> {
    splice::find(bytes, old)
        .without_overlaps()
        .replacements(bytes, new)
}

fn replaced(file: &str, old: &str, new: &str) -> String {
    let found = find(file.as_bytes(), old, new);
    assert_eq!(found.len(), 1, "{old:?} in {file:?}");
    String::from_utf8(apply(file.as_bytes(), &found).unwrap()).unwrap()
}

#[test]
fn newlines_match_either_ending_and_adopt_the_surrounding_one() {
    assert_eq!(
        replaced("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz"),
        "x\r\ny\r\nz\r\nc\r\n"
    );
    assert_eq!(replaced("a\nb\r\nc\n", "b\n", "x\ny\n"), "a\nx\r\ny\r\nc\n");
    assert_eq!(replaced("a\r\nlast", "last", "x\ny"), "a\r\nx\r\ny");
    assert_eq!(replaced("one", "one", "x\ny"), "x\ny");
    assert_eq!(
        replaced("a\nb\n", "a\r\nb", "x\r\ny"),
        "x\ny\n",
        "the file's line endings replace the caller's"
    );
    assert_eq!(
        replaced("a\r\nb\r\nc\r\n", "b\r\nc", "x\ny\nz"),
        "a\r\nx\r\ny\r\nz\r\n"
    );
    assert_eq!(
        find(b"x\ny\r\nx\r\ny", "x\r\ny", "z").len(),
        1,
        "explicit line endings match exactly"
    );
}

#[test]
fn context_lines_keep_their_bytes() {
    let mixed = "one\r\ntwo\nthree\r\nfour\n";
    assert_eq!(
        replaced(mixed, "one\ntwo\nthree\nfour\n", "one\nTWO\nthree\nfour\n"),
        "one\r\nTWO\nthree\r\nfour\n"
    );
}

#[test]
fn a_lone_cr_is_a_character_like_any_other() {
    assert_eq!(replaced("a\rb\r\nc", "b\nc", "x\nc"), "a\rx\r\nc");
    assert_eq!(replaced("a\rb", "a\rb", "c"), "c");
    assert!(find(b"a\rb", "a\nb", "x").is_empty());
    assert_eq!(replaced("a\r\r\nb", "\r\nb", "X"), "a\rX");
}

#[test]
fn overlapping_matches_are_ambiguous_but_replaced_without_overlap() {
    assert_eq!(find(b"aaa", "aa", "b").len(), 2);
    assert_eq!(apart(b"aaaa", "aa", "b").len(), 2);
    assert_eq!(apply(b"aaaa", &apart(b"aaaa", "aa", "b")).unwrap(), b"bb");
}

#[test]
fn repeated_text_is_found_in_linear_time() {
    let file = b"a/".repeat(1 << 20);
    let old = "a/".repeat(1 << 19);
    let found = splice::find(&file, &old);
    assert_eq!(found.spans.len(), (1 << 19) + 1);
}

#[test]
fn a_file_too_large_for_hints_is_reported() {
    let mut file = b"an ordinary line\n".repeat(MAX_LESSON / 17 + 1);
    file.extend_from_slice(b"the new text is here\n");
    let lesson = lesson::lesson(
        &file,
        &Haystack::new(""),
        "the old text is here",
        "the new text is here",
    );
    assert!(
        lesson
            .text
            .starts_with("the file is too large to find similar text (16MB, at most 16MB)"),
        "{}",
        lesson.text
    );
    assert_eq!(lesson.already, [MAX_LESSON / 17 + 2]);
}

#[test]
fn replacing_lines_keeps_the_lines_around_them() {
    let put = |file: &str, first, last, new: &str| {
        let replacement = lines(file.as_bytes(), first, last, new).unwrap();
        String::from_utf8(apply(file.as_bytes(), &[replacement]).unwrap()).unwrap()
    };
    assert_eq!(put("a\nb\nc\n", 2, 2, "x"), "a\nx\nc\n");
    assert_eq!(
        put("a\nb\nc\n", 2, 2, "x\n"),
        "a\nx\nc\n",
        "a final newline adds no empty line"
    );
    assert_eq!(
        put("a\nb\nc\n", 2, 3, ""),
        "a\n",
        "an empty text deletes the lines"
    );
    assert_eq!(
        put("a\nb", 2, 2, "x\n"),
        "a\nx",
        "the last line still has no newline"
    );
    assert_eq!(put("a\r\nb\r\n", 1, 1, "x\ny"), "x\r\ny\r\nb\r\n");
    for (first, last) in [(0, 1), (3, 3), (1, 3), (2, 1)] {
        assert!(
            matches!(
                lines(b"a\nb\n", first, last, "x"),
                Err(Error::LineRange { lines: 2 })
            ),
            "{first}-{last}"
        );
    }
    assert!(matches!(
        lines(b"", 1, 1, "x"),
        Err(Error::LineRange { lines: 0 })
    ));
}

#[test]
fn lines_are_counted_from_one() {
    assert_eq!([0, 1, 2, 3].map(|at| line_of(b"a\nb\n", at)), [1, 1, 2, 2]);
}

async fn edit(
    file: &[u8],
    old: &str,
    new: &str,
    occurrences: Occurrences,
) -> (Result<Edited>, Vec<u8>) {
    let (backend, scope) = (Memory::new(), Scope::detached());
    let path = scope.resolve("/f", Access::Write).unwrap();
    backend
        .write(&path, file.to_vec(), Expect::Absent)
        .await
        .unwrap();
    let request = Replace {
        path: path.clone(),
        old: old.into(),
        new: new.into(),
        occurrences,
        no_change: NoChange::Refuse,
        repairs: Repairs::Safe,
    };
    let edited = replace(&backend, request).await;
    (edited, read::whole(&backend, &path, 1 << 20).await.unwrap())
}

#[tokio::test]
async fn the_four_errors_are_distinct_and_change_nothing() {
    let file = b"\tone\ntwo\ntwo\n";
    for (old, new) in [("", "x"), ("two", "two"), ("two", "x"), ("    one", "x")] {
        let (failed, after) = edit(file, old, new, Occurrences::ExactlyOne).await;
        assert_eq!(after, file);
        match (old, failed.unwrap_err()) {
            ("", Error::EmptyOld) | ("two", Error::NoChange { .. }) => {}
            ("two", Error::Ambiguous { count, lines, .. }) => {
                assert_eq!((count, lines), (2, vec![2, 3]))
            }
            ("    one", Error::TextNotFound { lesson, .. }) => {
                assert!(
                    lesson.text.contains("4 spaces wanted, 1 tab found"),
                    "{}",
                    lesson.text
                );
            }
            (old, error) => panic!("{old:?}: {error}"),
        }
    }
}

#[tokio::test]
async fn an_edit_that_was_made_before_is_recognised() {
    let (failed, _) = edit(
        b"a\nnew text\n",
        "old text",
        "new text",
        Occurrences::ExactlyOne,
    )
    .await;
    let Error::TextNotFound { lesson, .. } = failed.unwrap_err() else {
        panic!()
    };
    assert_eq!(lesson.already, [2]);
    let (failed, _) = edit(
        b"alpha  beta\nan x\n",
        "alpha beta",
        "x",
        Occurrences::ExactlyOne,
    )
    .await;
    let Error::TextNotFound { lesson, .. } = failed.unwrap_err() else {
        panic!()
    };
    assert!(lesson.already.is_empty(), "a single letter is not evidence");
}

#[tokio::test]
async fn first_and_all_replace_as_requested() {
    assert_eq!(
        edit(b"x x x", "x", "y", Occurrences::First).await.1,
        b"y x x"
    );
    let (edited, after) = edit(b"x x x", "x", "y", Occurrences::All).await;
    assert_eq!(
        (edited.unwrap().replacements, after.as_slice()),
        (3, b"y y y".as_slice())
    );
}

#[tokio::test]
async fn utf16_is_refused_rather_than_damaged() {
    let file = b"\xff\xfeh\0i\0";
    let (failed, after) = edit(file, "h", "x", Occurrences::ExactlyOne).await;
    assert!(matches!(
        failed,
        Err(Error::Encoding {
            encoding: "UTF-16",
            ..
        })
    ));
    assert_eq!(after, file);
}

/// Pieces of real files: text, all kinds of line endings, byte-order marks, and bytes that
/// are not text in any encoding.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-c ]{0,6}".prop_map(String::into_bytes),
        2 => Just(b"\r\n".to_vec()),
        2 => Just(b"\n".to_vec()),
        1 => Just(b"\r".to_vec()),
        1 => Just("é日".as_bytes().to_vec()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..4),
    ]
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(piece(), 0..20).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// In any file, a word that occurs once can be replaced without changing a byte outside
    /// it.
    #[test]
    fn bytes_outside_the_edit_never_change(before in file(), after in file(), new in "[a-c\n]{0,8}") {
        let whole = [before.as_slice(), b"WORD", after.as_slice()].concat();
        let found = find(&whole, "WORD", &new);
        prop_assert_eq!(found.len(), 1);
        let edited = apply(&whole, &found).unwrap();
        prop_assert!(edited.starts_with(&before));
        prop_assert!(edited.ends_with(&after));
        let middle = &edited[before.len()..edited.len() - after.len()];
        prop_assert_eq!(String::from_utf8_lossy(middle).replace("\r\n", "\n"), new);
    }

    /// Replacing and replacing back restores the same bytes, including line endings.
    #[test]
    fn an_edit_can_be_reversed(lines in proptest::collection::vec("[a-z]{1,4}", 2..8), ending in prop_oneof![Just("\n"), Just("\r\n")], at in 0usize..100) {
        let file = lines.iter().map(|line| format!("{line}{ending}")).collect::<String>();
        let at = at % (lines.len() - 1);
        let old = format!("{}\n{}", lines[at], lines[at + 1]);
        let found = find(file.as_bytes(), &old, "NEW\nLINES\nHERE");
        prop_assume!(found.len() == 1);
        let there = apply(file.as_bytes(), &found).unwrap();
        let back = apply(&there, &find(&there, "NEW\nLINES\nHERE", &old)).unwrap();
        prop_assert_eq!(back, file.as_bytes());
    }

    /// Every reported match is the text, apart from line endings.
    #[test]
    fn every_match_is_the_text(file in file(), old in "[a-c\n]{1,3}") {
        for span in splice::find(&file, &old).spans {
            let matched = String::from_utf8(file[span].to_vec()).unwrap();
            prop_assert_eq!(matched.replace("\r\n", "\n"), old.clone());
        }
    }

    /// All matches are found: as many as in the text with LF line endings.
    #[test]
    fn no_match_is_missed(file in "[ab\r\n]{0,40}", old in "[ab\n]{1,6}") {
        let plain = file.replace("\r\n", "\n");
        let expected = (0..plain.len()).filter(|at| plain.get(*at..).is_some_and(|rest| rest.starts_with(&old))).count();
        prop_assert_eq!(find(file.as_bytes(), &old, "x").len(), expected);
    }
}

#[tokio::test]
async fn invisible_differences_are_explained() {
    for (file, old, expected) in [
        (b"a\nb".as_slice(), "b\n", "no newline at its end"),
        (b"caf\xe9 x\n", "caf\u{fffd} x", "U+FFFD stands for bytes"),
        (b"a\r\r\nb\n", "a\nb", "carriage returns"),
    ] {
        let (failed, after) = edit(file, old, "new", Occurrences::ExactlyOne).await;
        assert_eq!(after, file);
        let Error::TextNotFound { lesson, .. } = failed.unwrap_err() else {
            panic!("{old:?}")
        };
        assert!(lesson.text.contains(expected), "{old:?}: {}", lesson.text);
    }
}

/// A file that is one long line with a match at every position.
#[test]
fn many_matches_on_one_line_take_linear_time() {
    let file = "ab,".repeat(400_000);
    let begun = std::time::Instant::now();
    let edited = apply(file.as_bytes(), &apart(file.as_bytes(), "b", "x\ny")).unwrap();
    assert_eq!(edited.len(), 400_000 * 5);
    assert_eq!(
        splice::find("a".repeat(2_000_000).as_bytes(), "aa")
            .spans
            .len(),
        1_999_999
    );
    assert!(
        begun.elapsed() < std::time::Duration::from_secs(30),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn the_byte_order_mark_survives_replacing_the_first_line() {
    let file = b"\xEF\xBB\xBFa\nb\n";
    let changed =
        |first, last, new| apply(file, &[lines(file, first, last, new).unwrap()]).unwrap();
    assert_eq!(changed(1, 1, "z"), b"\xEF\xBB\xBFz\nb\n");
    assert_eq!(changed(1, 2, ""), b"\xEF\xBB\xBF");
    assert_eq!(changed(2, 2, "z"), b"\xEF\xBB\xBFa\nz\n");
}

#[tokio::test]
async fn line_endings_can_be_changed() {
    let (edited, after) = edit(
        b"a\r\nb\r\nc\r\n",
        "a\r\nb\r\n",
        "a\nb\n",
        Occurrences::ExactlyOne,
    )
    .await;
    assert!(edited.is_ok());
    assert_eq!(after, b"a\nb\nc\r\n");
}

#[tokio::test]
async fn replacing_all_reports_the_lines() {
    let (edited, after) = edit(b"a\nb\na a\n", "a", "x", Occurrences::All).await;
    assert_eq!(after, b"x\nb\nx x\n");
    let edited = edited.unwrap();
    assert_eq!((edited.replacements, edited.lines), (3, vec![1, 3]));
}

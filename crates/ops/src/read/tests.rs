use super::*;
use crate::backend::{Expect, Memory};
use crate::text::limit::{Hit, middle, middle_of};
use crate::{Access, Scope};
use proptest::prelude::*;

async fn open(
    bytes: &[u8],
    first: u64,
    lines: Option<u64>,
    limit: (usize, usize),
) -> Result<Found> {
    let room = Room::Lines {
        bytes: limit.0,
        lines: limit.1,
    };
    open_in(bytes, Window { first, lines }, room).await
}

async fn open_in(bytes: &[u8], window: Window, room: Room) -> Result<Found> {
    let (backend, scope) = (Memory::new(), Scope::detached());
    let path = scope.resolve("/f", Access::Write).unwrap();
    backend
        .write(&path, bytes.to_vec(), Expect::Absent)
        .await
        .unwrap();
    file(
        &backend,
        Read {
            path,
            window,
            room,
            cancel: CancellationToken::new(),
        },
    )
    .await
}

async fn text(bytes: &[u8], first: u64, lines: Option<u64>, limit: (usize, usize)) -> Shown {
    match open(bytes, first, lines, limit).await.unwrap() {
        Found::Text(shown) => shown,
        Found::Picture(..) => panic!("text expected"),
    }
}

const WIDE: (usize, usize) = (51_200, 2_000);

#[tokio::test]
async fn a_final_newline_makes_no_extra_line() {
    for (file, lines, newline) in [
        ("a\nb\n", 2, true),
        ("a\nb", 2, false),
        ("\n", 1, true),
        ("\n\n", 2, true),
        ("a", 1, false),
    ] {
        let shown = text(file.as_bytes(), 1, None, WIDE).await;
        assert_eq!(
            (shown.total_lines, shown.lines, shown.final_newline),
            (lines, lines, newline),
            "{file:?}"
        );
    }
    let empty = text(b"", 1, None, WIDE).await;
    assert_eq!((empty.total_lines, empty.text.as_str()), (0, ""));
}

#[tokio::test]
async fn marks_and_foreign_encodings_become_plain_text() {
    assert_eq!(
        text(b"\xef\xbb\xbfa\r\nb\rc\r\n", 1, None, WIDE).await.text,
        "a\nb\rc"
    );
    assert_eq!(text(b"caf\xe9\n", 1, None, WIDE).await.text, "caf\u{fffd}");
    assert_eq!(text(b"\xff\xfeh\0i\0", 1, None, WIDE).await.text, "hi");
}

#[tokio::test]
async fn limits_keep_whole_lines() {
    let shown = text(b"aa\nbb\ncc\n", 1, None, (5, 10)).await;
    assert_eq!(
        (shown.text.as_str(), shown.lines, shown.hit),
        ("aa\nbb", 2, Some(Hit::Bytes))
    );
    let shown = text(b"aa\nbb\ncc\n", 2, None, (100, 1)).await;
    assert_eq!(
        (shown.text.as_str(), shown.first, shown.hit),
        ("bb", 2, Some(Hit::Lines))
    );
    let shown = text(b"aa\nbb\ncc\n", 2, Some(1), WIDE).await;
    assert_eq!(
        (shown.text.as_str(), shown.total_lines, shown.hit),
        ("bb", 3, None)
    );
}

#[tokio::test]
async fn a_line_longer_than_the_limit_shows_its_beginning() {
    let shown = text("a\nééééé\nb\n".as_bytes(), 2, None, (5, 10)).await;
    assert_eq!(shown.text, "éé", "no half characters");
    assert_eq!(
        shown.long_line,
        Some(LongLine {
            number: 2,
            bytes: 10,
            shown: 4
        })
    );
    assert_eq!(shown.total_lines, 3);
}

#[tokio::test]
async fn a_window_after_the_end_names_the_line_count() {
    let error = open(b"a\nb\n", 3, None, WIDE).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "offset 3 is beyond end of file (2 lines total)"
    );
}

#[tokio::test]
async fn content_decides_what_is_binary_and_what_is_a_picture() {
    assert!(matches!(
        open(b"a\0b", 1, None, WIDE).await,
        Err(Error::Binary { size: 3, .. })
    ));
    let pdf = [b"%PDF-1.7\n".as_slice(), &[0; 50]].concat();
    let Err(Error::Binary {
        kind: Some(kind), ..
    }) = open(&pdf, 1, None, WIDE).await
    else {
        panic!()
    };
    assert!(kind.contains("PDF"), "{kind}");
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
    assert!(
        matches!(open(png, 1, None, WIDE).await, Ok(Found::Picture(bytes, "image/png")) if bytes == png)
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Following the offsets yields the file without gap or overlap.
    #[test]
    fn windows_follow_each_other(lines in proptest::collection::vec("[a-zé]{0,12}", 1..60), bytes in 12usize..60, most in 1usize..9) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let file = lines.join("\n") + "\n";
        let mut seen = Vec::new();
        let mut next = 1;
        runtime.block_on(async {
            while next <= lines.len() as u64 {
                let shown = text(file.as_bytes(), next, None, (bytes * 2, most)).await;
                assert!(shown.text.len() <= bytes * 2 && shown.lines >= 1);
                seen.extend(shown.text.split('\n').map(str::to_owned));
                next = shown.first + shown.lines;
            }
        });
        prop_assert_eq!(seen, lines);
    }
}

async fn ends(bytes: &[u8], first: u64, lines: Option<u64>, limit: usize) -> Shown {
    let window = Window { first, lines };
    match open_in(bytes, window, Room::Ends { bytes: limit }).await {
        Ok(Found::Text(shown)) => shown,
        other => panic!("text expected, not {other:?}"),
    }
}

fn whole(shown: &Shown, limit: usize) -> String {
    match &shown.gap {
        None => shown.text.clone(),
        Some(gap) => middle_of(&shown.text, gap.bytes, &gap.tail, limit, None),
    }
}

#[tokio::test]
async fn both_ends_of_a_window() {
    let shown = ends(b"one\r\ntwo\r\nthree", 2, None, 100).await;
    assert_eq!((shown.text.as_str(), shown.gap), ("two\nthree", None));
    let shown = ends(b"\xef\xbb\xbf0123456789", 1, None, 4).await;
    assert_eq!(shown.text, "01");
    let gap = shown.gap.unwrap();
    assert_eq!((gap.bytes, gap.tail.as_str()), (6, "89"));

    // A line too long to store, with lines around it.
    let long = format!("first\n{}\nlast\n", "x".repeat(3 << 20));
    let shown = ends(long.as_bytes(), 1, None, 20).await;
    assert_eq!((shown.lines, shown.total_lines), (3, 3));
    assert_eq!(shown.hit, Some(Hit::Bytes));
    assert_eq!(shown.text, "first\nxxxx");
    let gap = shown.gap.unwrap();
    assert_eq!(gap.tail, "xxxx\nlast\n");
    assert_eq!(gap.bytes, long.len() as u64 - 20);
}

proptest! {
    #[test]
    fn ends_are_those_of_the_whole(text in "[aé€\r\n]{0,80}", limit in 0usize..60) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let shown = runtime.block_on(ends(text.as_bytes(), 1, None, limit));
        let read = text.replace("\r\n", "\n");
        // A CR at the end of the file counts as half a newline.
        let read = read.strip_suffix('\r').unwrap_or(&read);
        let wanted = middle(read, limit, None);
        let wanted = if read.len() <= limit {
            wanted.strip_suffix('\n').unwrap_or(&wanted)
        } else {
            &wanted
        };
        prop_assert_eq!(whole(&shown, limit), wanted);
    }
}

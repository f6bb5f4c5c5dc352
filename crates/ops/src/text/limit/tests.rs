use super::*;
use proptest::prelude::*;

#[test]
fn exactly_at_the_limit_is_untouched() {
    for keep in [Keep::Head, Keep::Tail, Keep::Middle] {
        for (text, bytes, lines) in [
            ("abc\ndef\n", 8, 2),
            ("abc", 3, 1),
            ("", 0, 0),
            ("é\n", 3, 1),
        ] {
            let cut = Limit { bytes, lines, keep }.cut(text);
            assert_eq!((cut.kept, cut.tail, cut.hit), (text, "", None), "{keep:?}");
            assert_eq!(cut.omitted_bytes(), 0);
        }
    }
}

#[test]
fn head_keeps_whole_lines() {
    let cut = truncate_head("one\ntwo\nthree\n", 9, 10);
    assert_eq!(
        (cut.kept, cut.hit, cut.partial),
        ("one\ntwo\n", Some(Hit::Bytes), false)
    );
    assert_eq!(
        (
            cut.kept_lines,
            cut.total_lines,
            cut.kept_bytes,
            cut.total_bytes
        ),
        (2, 3, 8, 14)
    );
    let cut = truncate_head("one\ntwo\nthree\n", 100, 1);
    assert_eq!((cut.kept, cut.hit), ("one\n", Some(Hit::Lines)));
}

#[test]
fn tail_keeps_whole_lines() {
    let cut = truncate_tail("one\ntwo\nthree\n", 10, 10);
    assert_eq!(
        (cut.kept, cut.hit, cut.partial),
        ("two\nthree\n", Some(Hit::Bytes), false)
    );
    let cut = truncate_tail("one\ntwo\nthree\n", 9, 10);
    assert_eq!((cut.kept, cut.hit), ("two\nthree", Some(Hit::Bytes)));
    let cut = truncate_tail("one\ntwo\nthree", 100, 2);
    assert_eq!(
        (cut.kept, cut.hit, cut.kept_lines),
        ("two\nthree", Some(Hit::Lines), 2)
    );
}

#[test]
fn the_limit_reached_first_is_reported() {
    let text = "a\nb\nc\nlonglonglong\n";
    assert_eq!(truncate_head(text, 8, 3).hit, Some(Hit::Lines));
    assert_eq!(truncate_head(text, 8, 4).hit, Some(Hit::Bytes));
    assert_eq!(truncate_tail(text, 8, 3).hit, Some(Hit::Bytes));
    assert_eq!(truncate_tail(text, 15, 2).hit, Some(Hit::Lines));
}

#[test]
fn a_single_line_over_the_limit_is_kept_in_part() {
    let cut = truncate_head("ééé\nx\n", 5, 10);
    assert_eq!(
        (cut.kept, cut.partial, cut.hit, cut.kept_lines),
        ("éé", true, Some(Hit::Bytes), 1)
    );
    let cut = truncate_tail("x\nééé\n", 5, 10);
    assert_eq!(
        (cut.kept, cut.partial, cut.hit, cut.kept_lines),
        ("éé", true, Some(Hit::Bytes), 1)
    );
    // Later lines that are too long are dropped completely.
    assert_eq!(truncate_head("x\nlonglong", 5, 10).kept, "x\n");
}

#[test]
fn dropping_only_the_final_newline_is_not_a_cut() {
    let text = format!("{}\n", "x".repeat(MAX_BYTES));
    for cut in [
        truncate_head(&text, MAX_BYTES, MAX_LINES),
        truncate_tail(&text, MAX_BYTES, MAX_LINES),
    ] {
        assert_eq!(
            (cut.hit, cut.partial, cut.kept_bytes, cut.kept_lines),
            (None, false, MAX_BYTES, 1)
        );
    }
    // But an empty line consists only of its newline.
    assert_eq!(truncate_head("abc\n\n", 4, 9).hit, Some(Hit::Bytes));
    assert_eq!(truncate_tail("abc\n\n", 4, 9).kept, "\n");
}

#[test]
fn zero_limits() {
    for cut in [truncate_head("a\n", 0, 9), truncate_tail("a\n", 0, 9)] {
        assert_eq!(
            (cut.kept, cut.hit, cut.kept_lines),
            ("", Some(Hit::Bytes), 0)
        );
    }
    for cut in [truncate_head("a\n", 9, 0), truncate_tail("a\n", 9, 0)] {
        assert_eq!(
            (cut.kept, cut.hit, cut.partial),
            ("", Some(Hit::Lines), false)
        );
    }
}

#[test]
fn middle_pieces() {
    let limit = Limit {
        bytes: 100,
        lines: 3,
        keep: Keep::Middle,
    };
    let cut = limit.cut("1\n2\n3\n4\n5\n");
    assert_eq!(
        (cut.kept, cut.tail, cut.hit, cut.kept_lines),
        ("1\n", "4\n5\n", Some(Hit::Lines), 3)
    );
    let cut = Limit { bytes: 4, ..limit }.cut("aaabbb");
    assert_eq!(
        (cut.kept, cut.tail, cut.hit),
        ("aa", "bb", Some(Hit::Bytes))
    );
    assert_eq!(
        (cut.kept_lines, cut.omitted_lines(), cut.partial),
        (1, 0, true)
    );
}

#[test]
fn middle_cuts_bytes() {
    assert_eq!(middle("abcdefgh", 8, None), "abcdefgh");
    assert!(matches!(middle("abc", 8, Some(1)), Cow::Borrowed("abc")));
    assert_eq!(
        middle("abcdefghi", 8, None),
        "abcd\n\n[output truncated: 1 bytes removed from middle]\n\nfghi"
    );
    let text = "x".repeat(30_001);
    let cut = middle(&text, 30_000, Some(256));
    assert!(cut.contains("\n\n[output truncated: 1 bytes removed from middle]\n\n"));
    // Characters are not split, and the number is exact.
    assert_eq!(
        middle("éééé", 6, None),
        "é\n\n[output truncated: 4 bytes removed from middle]\n\né"
    );
}

#[test]
fn middle_cuts_lines() {
    assert_eq!(middle("1\n2\n3\n", 99, Some(3)), "1\n2\n3\n");
    assert_eq!(
        middle("1\n2\n3\n4\n5\n6", 99, Some(4)),
        "1\n2\n[...2 lines omitted...]\n5\n6"
    );
    assert_eq!(
        middle("1\n2\n3\n4\n5\n", 99, Some(3)),
        "1\n[...2 lines omitted...]\n4\n5\n"
    );
    assert_eq!(middle("1\n2\n", 99, Some(0)), "\n[...2 lines omitted...]\n");
}

#[test]
fn both_markers_survive() {
    let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
    let cut = middle(&text, 30_000, Some(256));
    assert_eq!(cut.matches("bytes removed from middle]").count(), 1);
    assert_eq!(cut.matches("lines omitted...]").count(), 1);
    assert!(cut.starts_with("line 0\n") && cut.ends_with("line 9999\n"));
    assert!(cut.contains("line 127\n[...") && !cut.contains("line 128\n"));
    assert!(cut.contains("line 9872\n") && !cut.contains("line 9871\n"));

    // A few long lines first: the first note is among the kept lines.
    let text = format!("{}\n{}", "a".repeat(200), "b\n".repeat(100));
    let cut = middle(&text, 100, Some(10));
    assert_eq!(cut.matches("bytes removed from middle]").count(), 1);
    assert_eq!(cut.matches("lines omitted...]").count(), 1);
}

proptest! {
    #[test]
    fn laws(text in "[a-cé€\n]{0,60}", bytes in 0usize..70, max_lines in 0usize..20) {
        for keep in [Keep::Head, Keep::Tail, Keep::Middle] {
            let cut = Limit { bytes, lines: max_lines, keep }.cut(&text);
            prop_assert!(cut.kept.len() + cut.tail.len() <= bytes);
            prop_assert!(cut.kept_lines <= max_lines);
            prop_assert_eq!(cut.kept_bytes, cut.kept.len() + cut.tail.len());
            prop_assert_eq!(cut.kept_bytes + cut.omitted_bytes(), text.len());
            prop_assert_eq!(cut.kept_lines + cut.omitted_lines(), lines::count(&text));
            prop_assert_eq!(cut.total_lines, lines::count(&text));
            if cut.hit.is_none() {
                prop_assert_eq!(cut.omitted_lines(), 0);
                prop_assert_eq!(cut.kept.trim_end_matches('\n'), text.trim_end_matches('\n'));
            } else {
                prop_assert!(text.len() > bytes || lines::count(&text) > max_lines);
                prop_assert!(cut.omitted_bytes() > 0);
            }
            let body = text.strip_suffix('\n').unwrap_or(&text);
            match keep {
                Keep::Head => prop_assert!(text.starts_with(cut.kept)),
                Keep::Tail => prop_assert!(text.ends_with(cut.kept) || body.ends_with(cut.kept)),
                Keep::Middle => prop_assert!(text.starts_with(cut.kept) && text.ends_with(cut.tail)),
            }
        }
    }

    #[test]
    fn whole_lines_or_one_part(text in "[ab\n]{0,60}", bytes in 1usize..70, max_lines in 1usize..20) {
        let cut = truncate_head(&text, bytes, max_lines);
        if !cut.partial {
            let whole: String = lines::split_inclusive(&text).take(cut.kept_lines).collect();
            prop_assert_eq!(whole.strip_suffix('\n').unwrap_or(&whole), cut.kept.strip_suffix('\n').unwrap_or(cut.kept));
            // One more line would not have fitted.
            if let Some(next) = lines::split(&text).nth(cut.kept_lines) {
                prop_assert!(cut.kept_lines == max_lines || whole.len() + next.len().max(1) > bytes);
            }
        }
        let cut = truncate_tail(&text, bytes, max_lines);
        if !cut.partial {
            let skip = cut.omitted_lines();
            let whole: String = lines::split_inclusive(&text).skip(skip).collect();
            prop_assert_eq!(whole.strip_suffix('\n').unwrap_or(&whole), cut.kept.strip_suffix('\n').unwrap_or(cut.kept));
        }
    }

    #[test]
    fn pages_have_no_gap_and_no_overlap(text in "[ab\n]{0,60}", bytes in 3usize..9, max_lines in 1usize..4) {
        let mut rows = Vec::new();
        let mut first = 1;
        while let Some(rest) = lines::window(&text, first, usize::MAX) {
            let cut = truncate_head(rest, bytes, max_lines);
            if cut.partial {
                rows.push(lines::split(rest).next().unwrap().to_owned());
                first += 1;
            } else {
                rows.extend(lines::split(cut.kept).map(str::to_owned));
                first += cut.kept_lines;
            }
        }
        prop_assert_eq!(rows, lines::split(&text).map(str::to_owned).collect::<Vec<_>>());
    }

    #[test]
    fn middle_counts_the_removed_bytes(text in "[aé€]{0,60}", bytes in 0usize..80) {
        let cut = middle(&text, bytes, None);
        match cut.split_once("\n\n[output truncated: ") {
            None => prop_assert_eq!(cut.as_ref(), text.as_str()),
            Some((head, rest)) => {
                let (removed, tail) = rest.split_once(" bytes removed from middle]\n\n").unwrap();
                let removed: usize = removed.parse().unwrap();
                prop_assert_eq!(head.len() + removed + tail.len(), text.len());
                prop_assert!(head.len() <= bytes / 2 && tail.len() <= bytes / 2);
            }
        }
    }

    /// However much of the middle was never in memory, the result is the same as for the
    /// whole text.
    #[test]
    fn two_ends_are_cut_like_the_whole_text(
        text in "[aé€\n]{0,60}",
        bytes in 0usize..40,
        max_lines in proptest::option::of(0usize..20),
        more in (0usize..9, 0usize..9),
    ) {
        let head = prefix(&text, bytes / 2 + more.0);
        let tail = suffix(&text, bytes / 2 + more.1);
        if text.len() > bytes && head.len() + tail.len() <= text.len() {
            let missing = (text.len() - head.len() - tail.len()) as u64;
            prop_assert_eq!(
                middle_of(head, missing, tail, bytes, max_lines),
                middle(&text, bytes, max_lines).into_owned()
            );
        }
    }

    #[test]
    fn middle_counts_lines(text in "[ab\n]{0,60}", max_lines in 0usize..20) {
        let cut = middle(&text, 1000, Some(max_lines));
        match cut.split_once("\n[...") {
            None => prop_assert!(lines::count(&text) <= max_lines),
            Some((_, rest)) => {
                let omitted: usize = rest.split_once(' ').unwrap().0.parse().unwrap();
                prop_assert_eq!(omitted + max_lines, lines::count(&text));
            }
        }
    }
}

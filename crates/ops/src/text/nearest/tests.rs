use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

#[track_caller]
fn found(haystack: &str, needle: &str) -> Nearest {
    let nearest = nearest(haystack, needle).expect("something near");
    let text = lesson(&nearest, haystack, needle);
    assert!(text.lines().count() <= 40, "{text}");
    nearest
}

#[track_caller]
fn says(haystack: &str, needle: &str, differences: &[&str]) {
    let nearest = found(haystack, needle);
    assert_eq!(nearest.differences, differences);
    let text = lesson(&nearest, haystack, needle);
    for difference in differences {
        assert!(text.lines().any(|line| line == *difference), "{text}");
    }
}

#[test]
fn indentation() {
    let file = "fn a() {\n\tone();\n}\n";
    says(
        file,
        "    one();",
        &["line 2: 4 spaces wanted, 1 tab found"],
    );
    says(
        "a:\n        deep\n",
        "a:\n\t\tdeep\n",
        &["line 2: 2 tabs wanted, 8 spaces found"],
    );
    says(
        "a:\n  deep\n",
        "a:\ndeep\n",
        &["line 2: no indentation wanted, 2 spaces found"],
    );
    says(
        "a:\ndeep\n",
        "a:\n deep\n",
        &["line 2: 1 space wanted, no indentation found"],
    );
    says(
        "a:\n\t\t deep\n",
        "a:\n\tdeep\n",
        &["line 2: 1 tab wanted, 2 tabs and 1 space found"],
    );
    let line_12 = format!("{}\tlet total = 1;\n", "x\n".repeat(11));
    says(
        &line_12,
        "    let total = 1;\n",
        &["line 12: 4 spaces wanted, 1 tab found"],
    );
}

#[test]
fn indentation_of_every_line() {
    let file = "x\n\tif a {\n\t\tb();\n\t}\ny\n";
    let nearest = found(file, "    if a {\n        b();\n    }\n");
    assert_eq!((nearest.first_line, nearest.last_line), (2, 4));
    assert_eq!(
        nearest.differences[0],
        "the text matches except for leading whitespace"
    );
    assert_eq!(
        nearest.differences[1],
        "line 2: 4 spaces wanted, 1 tab found"
    );
    assert_eq!(nearest.differences.len(), 4);
}

#[test]
fn the_lesson_shows_the_region() {
    let file = "fn a() {\n\tone();\n}\n";
    let needle = "fn a() {\n    one();\n}";
    let text = lesson(&found(file, needle), file, needle);
    let (first, rest) = text.split_once('\n').unwrap();
    assert!(
        first.starts_with("nearest: lines 1-3 (") && first.ends_with("% alike)"),
        "{first}"
    );
    assert_eq!(
        rest,
        "1\tfn a() {\n2\t\tone();\n3\t}\nline 2: 4 spaces wanted, 1 tab found"
    );
}

#[test]
fn trailing_whitespace() {
    says(
        "one();  \ntwo();\n",
        "one();\ntwo();",
        &["line 1: no trailing whitespace wanted, 2 spaces at the end found"],
    );
    says(
        "one();\ntwo();\n",
        "one(); \ntwo();",
        &["line 1: 1 space at the end wanted, no trailing whitespace found"],
    );
    says(
        "one\n    \ntwo\n",
        "one\n\ntwo",
        &["line 2: an empty line wanted, a line of 4 spaces found"],
    );
}

#[test]
fn whitespace_within() {
    says(
        "let a  =\t1;\n",
        "let a = 1;",
        &["line 1: whitespace differs: `let·a·=·1;` wanted, `let·a··=→1;` found"],
    );
    // If something else differs, spaces are not marked.
    says(
        "let a = 2;\n",
        "let a = 1;",
        &["line 1: `let a = 1;` wanted"],
    );
}

#[test]
fn case_and_characters() {
    says(
        "call(myName);\n",
        "call(MyName);",
        &["line 1: letter case differs"],
    );
    says(
        "say(\"it's\");\n",
        "say(\"it\u{2019}s\");",
        &["line 1: \u{2019} (U+2019 right single quotation mark) wanted, ' (apostrophe) found"],
    );
    says(
        "pages 1\u{2013}2 of the book\n",
        "pages 1-2 of the book",
        &["line 1: - (hyphen-minus) wanted, \u{2013} (U+2013 en dash) found"],
    );
    says(
        "a\u{a0}b c d\n",
        "a b c d",
        &["line 1: a space wanted, U+00A0 (no-break space) found"],
    );
    says(
        "let na\u{200b}me = 1;\n",
        "let name = 1;",
        &["line 1: no invisible character wanted, U+200B (zero width space) found"],
    );
}

#[test]
fn lines_missing_and_extra() {
    let file = "fn alpha() {\n    first_call();\n    second_call();\n    third_call();\n}\n";
    says(
        file,
        "fn alpha() {\n    first_call();\n    third_call();\n}\n",
        &["line 3: not wanted"],
    );
    says(
        file,
        "fn alpha() {\n    first_call();\n    second_call();\n    extra_thing();\n    third_call();\n}\n",
        &["line 4: `    extra_thing();` wanted before it"],
    );
    says(
        file,
        "    first_call();\n\n    second_call();\n    third_call();\n}\n",
        &["line 3: a blank line wanted before it"],
    );
}

#[test]
fn a_part_of_a_line() {
    says(
        "    let result = compute(alpha, beta)?;\n",
        "compute(alpha,beta)",
        &["line 1: whitespace differs: `compute(alpha,beta)` wanted, `compute(alpha,·beta)` found"],
    );
    // The first line may start anywhere and the last may end anywhere.
    says(
        "  if first {\n\tsecond + third\n",
        "first {\n  second +",
        &["line 2: 2 spaces wanted, 1 tab found"],
    );
}

#[test]
fn line_numbers_in_front() {
    let file = "fn a() {\n    one();\n}\n";
    let note = "the wanted text has line numbers in front, which are not part of the file";
    for needle in [
        "     1\tfn a() {\n     2\t    one();\n     3\t}",
        "1: fn a() {\n2:     one();\n3: }",
        "1:fn a() {\n2:    one();\n3:}",
        "1\u{2192}fn a() {\n2\u{2192}    one();\n3\u{2192}}",
        "2\t    one();",
    ] {
        says(file, needle, &[note]);
    }
    // A file that contains such numbers itself is not a mistake.
    let list = "1: one potato\n2: two potatoes\n3: four\n";
    let nearest = found(list, "1: one potato\n2: two potatos");
    assert!(
        nearest
            .differences
            .iter()
            .all(|difference| difference != note)
    );
    // Numbers that do not count up are data.
    let skipping = super::nearest(
        "one potato\ntwo potatoes\n",
        "4: one potato\n9: two potatoes",
    );
    assert!(skipping.is_none_or(|nearest| !nearest.differences.contains(&note.to_owned())));
}

#[test]
fn escapes() {
    let file = "fn a() {\n\tone(\"x\");\n}\n";
    says(
        file,
        r#"fn a() {\n\tone(\"x\");\n}"#,
        &[
            "the wanted text has \\n as two characters (backslash, n) where the file has a line break",
        ],
    );
    says(
        file,
        r"\tone(",
        &["the wanted text has \\t as two characters (backslash, t) where the file has a tab"],
    );
    says(
        file,
        r#"one(\"x\")"#,
        &["the wanted text has a backslash before characters that have none in the file"],
    );
    says(
        "print(\"a\\nb\")\n",
        "print(\"a\nb\")",
        &[
            "the wanted text has a line break where the file has \\n as two characters (backslash, n)",
        ],
    );
    says(
        "if a < b && c {\n",
        "if a &lt; b &amp;&amp; c {",
        &["the wanted text has HTML entities (&lt; &amp;) where the file has plain characters"],
    );
}

#[test]
fn line_endings() {
    let note = "the wanted text has CRLF line endings, the file has LF";
    says("one\ntwo\nthree\n", "one\r\ntwo\r\n", &[note]);
    says(
        "one\r\n\ttwo\r\n",
        "one\n  two\n",
        &["line 2: 2 spaces wanted, 1 tab found"],
    );
}

#[test]
fn the_most_similar_of_several() {
    let file = "\
fn first() {
    let value = compute_a(1);
    print(value);
}

fn second() {
    let value = compute_b(2);
    print(value);
}
";
    let nearest = found(
        file,
        "fn second() {\n    let value = compute_b(3);\n    print(value);\n}\n",
    );
    assert_eq!((nearest.first_line, nearest.last_line), (6, 9));
    assert_eq!(
        nearest.differences,
        ["line 7: `let value = compute_b(3);` wanted"]
    );
}

#[test]
fn no_line_is_the_same() {
    let file = "alpha\nfn compute_total(items: &[Item]) -> u64 {\n    items.iter().map(|item| item.price).sum()\nomega\n";
    let nearest = found(
        file,
        "fn compute_total(items: Vec<Item>) -> u64 {\n    items.iter().map(|i| i.price).sum()\n",
    );
    assert_eq!((nearest.first_line, nearest.last_line), (2, 3));
    assert_eq!(nearest.differences.len(), 2);
}

#[test]
fn nothing_near() {
    assert_eq!(
        nearest("alpha\nbeta\n", "completely unrelated sentence"),
        None
    );
    assert_eq!(nearest("", "a"), None);
    assert_eq!(nearest("a\n", " \n\t"), None);
    assert_eq!(nearest("a\n", ""), None);
}

#[test]
fn long_lines_are_shortened_around_the_difference() {
    let file = format!(
        "{}needle_here(1);{}\n",
        "x = 1; ".repeat(5000),
        "y = 2; ".repeat(5000)
    );
    let nearest = found(&file, "needle_here(2);");
    let text = lesson(&nearest, &file, "needle_here(2);");
    assert!(text.len() < 1000, "{text}");
    assert!(
        text.lines().nth(1).unwrap().contains("needle_here(1);"),
        "{text}"
    );
    assert!(nearest.differences[0].contains("needle_here(2)"));
}

#[test]
fn large_regions_show_the_lines_that_differ() {
    let line = |n: usize| format!("    statement_number({n});\n");
    let file: String = (0..300).map(line).collect();
    let needle = file.replace("(150)", "(15)").replace("(200)", "(20x)");
    let nearest = found(&file, &needle);
    let text = lesson(&nearest, &file, &needle);
    assert!(
        text.contains("\n151\t    statement_number(150);\n"),
        "{text}"
    );
    assert!(text.contains("\n201\t") && text.contains("\n...\n"));
    // All of the lines differ.
    let needle: String = (0..300)
        .map(|n| format!("    statement_numbers({n});\n"))
        .collect();
    let nearest = found(&file, &needle);
    assert_eq!(
        nearest.differences.last().unwrap(),
        "and 294 more differences"
    );
    let shifted = file.replace("    ", "\t");
    assert_eq!(
        found(&file, &shifted).differences.last().unwrap(),
        "lines 1-300: 1 tab wanted, 4 spaces found"
    );
}

/// Debug builds are slower by an order of magnitude, so the bound is generous. The point is
/// that no input takes quadratic time.
#[test]
fn bounded_work() {
    let line = |n: usize| {
        format!(
            "    let value_{} = compute({n}, \"text\"); // {}\n",
            n % 977,
            n * 31
        )
    };
    let file: String = (0..180_000).map(line).collect();
    assert!(file.len() > 8 << 20);
    let big_needle: String = (70_000..75_000)
        .map(|n| line(n).replace("    ", "\t"))
        .collect();
    let odd_needle: String = (0..5_000)
        .map(|n| format!("    let wrong_{n} = computed({n}, 'txt');\n"))
        .collect();
    let blank = "\n".repeat(10 << 20);
    let braces = "}\n".repeat(5 << 20);
    let one_line = "abc def(ghi); ".repeat(700_000);
    for (name, file, needle) in [
        ("anchored", file.as_str(), big_needle.as_str()),
        ("no anchors", &file, &odd_needle),
        (
            "one line",
            &file,
            "let value_12 = compute(99999999, 'text');",
        ),
        ("blank file", &blank, &big_needle),
        ("braces", &braces, &"}\n  }\nx\n".repeat(1600)),
        ("one huge line", &one_line, "abc  deff(ghi);"),
        ("huge needle line", &file, &one_line),
        ("escaped", &file, r"\n\tlet value_12 = \n"),
    ] {
        let start = Instant::now();
        let found = nearest(file, needle);
        let lesson = found.as_ref().map(|found| lesson(found, file, needle));
        let took = start.elapsed();
        println!(
            "{name}: {took:?} {:?}",
            found
                .as_ref()
                .map(|found| (found.first_line, found.similarity))
        );
        assert!(took < Duration::from_secs(20), "{name}: {took:?}");
        assert!(
            lesson.is_none_or(|lesson| lesson.lines().count() <= 40 && lesson.len() < 20_000),
            "{name}"
        );
        if name == "anchored" {
            assert_eq!(found.unwrap().first_line, 70_001);
        }
    }
}

proptest! {
    #[test]
    fn a_changed_line_is_found_at_its_position(
        names in prop::collection::vec("[a-z]{6,12}", 12..30),
        at in 2usize..8,
        count in 2usize..4,
    ) {
        let row = |(n, name): (usize, &String)| format!("    {name}_{n}({n});\n");
        let file: String = names.iter().enumerate().map(row).collect();
        let needle: String = names.iter().enumerate().skip(at).take(count).map(row).collect();
        let nearest = nearest(&file, &needle.replace("    ", "\t")).unwrap();
        prop_assert_eq!((nearest.first_line, nearest.last_line), (at + 1, at + count));
        let expected = format!("lines {}-{}: 1 tab wanted, 4 spaces found", at + 1, at + count);
        prop_assert!(nearest.differences.contains(&expected));
    }

    #[test]
    fn never_fails_and_stays_small(file in "[ab{}é\\\\n\t \r\n1:]{0,120}", needle in "[ab{}é\\\\n\t \r\n1:]{0,40}") {
        if let Some(nearest) = nearest(&file, &needle) {
            let text = lesson(&nearest, &file, &needle);
            prop_assert!(text.lines().count() <= 40);
            prop_assert!(nearest.first_line >= 1 && nearest.first_line <= nearest.last_line);
            prop_assert!(nearest.last_line <= lines::count(&file));
            prop_assert!((0.0..=1.0).contains(&nearest.similarity));
            prop_assert!(nearest.differences.iter().all(|difference| !difference.contains('\n')));
        }
    }

    #[test]
    fn an_exact_match_has_no_differences(file in "[ab \t\n]{1,80}", from in 0usize..40, to in 1usize..40) {
        let needle: String = file.chars().skip(from).take(to).collect();
        if let Some(nearest) = nearest(&file, &needle) {
            prop_assert!(nearest.differences.is_empty(), "{:?}", nearest);
        }
    }
}

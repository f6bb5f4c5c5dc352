use super::*;
use crate::edit::splice::apply;
use proptest::prelude::*;
use std::time::{Duration, Instant};

fn repair(bytes: &[u8], old: &str, new: &str) -> Option<Repaired> {
    let text = decode::lossy(bytes);
    let text = decode::lf(&text);
    super::repair(bytes, &Haystack::new(&text), old, new)
}

/// Returns the file after a repaired edit, and what was repaired.
fn repaired(file: &str, old: &str, new: &str) -> Option<(String, String)> {
    assert!(
        splice::find(file.as_bytes(), old).spans.is_empty(),
        "{old:?} is in the file"
    );
    let repaired = repair(file.as_bytes(), old, new)?;
    let after = apply(file.as_bytes(), &[repaired.replacement]).unwrap();
    Some((String::from_utf8(after).unwrap(), repaired.notes.join("; ")))
}

fn after(file: &str, old: &str, new: &str) -> String {
    repaired(file, old, new).expect("no repair").0
}

const GO: &str =
    "package main\n\nfunc main() {\n\tfmt.Println(\"hello\")\n\tif done {\n\t\treturn\n\t}\n}\n";

#[test]
fn line_numbers() {
    let (file, notes) = repaired(
        GO,
        "     4\t\tfmt.Println(\"hello\")\n     5\t\tif done {",
        "     4\t\tfmt.Println(\"bye\")\n     5\t\tif done {",
    )
    .unwrap();
    assert_eq!(file, GO.replace("hello", "bye"));
    assert_eq!(notes, "line numbers removed");
    let added = after(
        GO,
        "4: \tfmt.Println(\"hello\")\n5: \tif done {",
        "4: \tfmt.Println(\"hello\")\n\tlog.Print(1)\n5: \tif done {",
    );
    assert_eq!(added, GO.replace("\tif done", "\tlog.Print(1)\n\tif done"));
    let clean = after(GO, "6|\t\treturn\n7|\t}", "\t\tbreak\n\t}");
    assert_eq!(clean, GO.replace("return", "break"));
}

#[test]
fn numbers_that_are_data_are_not_removed() {
    let file = "1\tone\n2\ttwo\n3\tthree\n";
    assert_eq!(
        after(file, "2\t2\ttwo\n3\t3\tthree\n", "2\t2\tTWO\n3\t3\tthree\n"),
        "1\tone\n2\tTWO\n3\tthree\n"
    );
    assert_eq!(
        repaired(file, "2\t2\ttwo\n3\t3\tthree\n", "2\tTWO\n\n3\tthree\n"),
        None
    );
}

#[test]
fn a_repaired_text_starts_and_ends_with_words() {
    for (file, old, new) in [
        ("return token;\n", "ok\u{200b}", "no"),
        ("return tok\n", "ok ", "no "),
        ("return tok\n", "ok\\n", "no\\n"),
        ("\tokay = 1;\n", "  ok", "  no"),
        ("x = token\u{e9}(1);\n", "en\u{e9}\u{200b}", "no"),
    ] {
        assert_eq!(repaired(file, old, new), None, "{old:?}");
    }
    assert_eq!(after("\tok = 1;\n", "  ok", "  no"), "\tno = 1;\n");
}

#[test]
fn a_numbered_text_is_not_looked_for_inside_lines() {
    let file = "let token = 1;\nlet other = 2;\n";
    assert_eq!(repaired(file, "5: ok", "5: no"), None);
    assert_eq!(repaired(file, "2|tok", "2|no"), None);
    // The number says the line.
    assert_eq!(
        after(file, "2: other = 2", "2: other = 3"),
        file.replace('2', "3")
    );
    assert_eq!(
        after(file, "7: let other = 2;", "7: let other = 3;"),
        file.replace('2', "3")
    );
}

#[test]
fn escapes() {
    let python = "def f():\n    say(\"hi\")\n    return 1\n";
    assert_eq!(
        after(
            python,
            "def f():\\n    say(\\\"hi\\\")",
            "def f():\\n    say(\\\"ho\\\")"
        ),
        python.replace("hi", "ho")
    );
    assert_eq!(
        after(
            python,
            "    say(\\\"hi\\\")\n    return 1",
            "    say(\\\"hi\\\")\n    return 2"
        ),
        python.replace("return 1", "return 2")
    );
    // A line break inside a string may be meant as two characters.
    assert_eq!(
        repaired(
            python,
            "def f():\\n    say(\\\"hi\\\")",
            "def f():\\n    say(\\\"a\\nb\\\")"
        ),
        None
    );
}

#[test]
fn indentation() {
    let (file, notes) = repaired(
        GO,
        "func main() {\n    fmt.Println(\"hello\")\n    if done {",
        "func main() {\n    fmt.Println(\"bye\")\n    if done {",
    )
    .unwrap();
    assert_eq!(file, GO.replace("hello", "bye"));
    assert_eq!(notes, "4 spaces of indentation replaced by 1 tab");
    let python = "class A:\n    def f(self):\n        return 1\n\n    name = \"something else\"\n";
    let (file, notes) = repaired(
        python,
        "def f(self):\n    return 1",
        "def f(self):\n    log()\n    if x:\n        return 0\n    return 1",
    )
    .unwrap();
    assert_eq!(
        file,
        python.replace(
            "        return 1",
            "        log()\n        if x:\n            return 0\n        return 1"
        )
    );
    assert_eq!(notes, "4 spaces of indentation added");
    // The new text is indented as the file is.
    assert_eq!(
        after(
            python,
            "def f(self):\n    return 1",
            "    def f(self):\n        return 3"
        ),
        python.replace("return 1", "return 3")
    );
    // No single rule explains both lines.
    assert_eq!(
        repaired(
            python,
            "  def f(self):\n     return 1",
            "  def f(self):\n     return 3"
        ),
        None
    );
}

#[test]
fn whitespace_at_the_ends_of_lines() {
    let file = "one,  \ntwo,\nthree\n";
    assert_eq!(
        after(file, "one,\ntwo,\nthree", "one,\n2,\nthree"),
        "one,  \n2,\nthree\n"
    );
    assert_eq!(
        after("a b\nc d\n", "a b \nc d \n", "a b \nc e \nf \n"),
        "a b\nc e\nf\n"
    );
}

#[test]
fn typography() {
    let code = "say(\"hello\", 'x');\nrest - 1\n";
    assert_eq!(
        after(
            code,
            "say(\u{201c}hello\u{201d}, \u{2018}x\u{2019});",
            "say(\u{201c}bye\u{201d}, \u{2018}x\u{2019});"
        ),
        code.replace("hello", "bye")
    );
    let prose = "He said \u{201c}no\u{201d} \u{2014} twice.\nThe end.\n";
    assert_eq!(
        after(
            prose,
            "He said \"no\" - twice.\nThe end.",
            "He said \"no\" - once.\nThe end."
        ),
        prose.replace("twice", "once")
    );
    // Either of the two quotation marks may be meant.
    assert_eq!(
        repaired(
            prose,
            "He said \"no\" - twice.",
            "He said \"no\" - twice. \"Why?\""
        ),
        None
    );
    let space = "a\u{a0}b c\n";
    assert_eq!(after(space, "a b c", "a b d e"), "a\u{a0}b d e\n");
}

#[test]
fn composed_and_decomposed_letters() {
    let decomposed = "Cafe\u{301} au lait\n";
    assert_eq!(
        after(decomposed, "Caf\u{e9} au lait", "Caf\u{e9} cr\u{e8}me"),
        "Cafe\u{301} cre\u{300}me\n"
    );
    assert_eq!(
        after(
            "Caf\u{e9} au lait\n",
            "Cafe\u{301} au lait",
            "Cafe\u{301} cre\u{300}me"
        ),
        "Caf\u{e9} cr\u{e8}me\n"
    );
}

#[test]
fn letters_that_are_composed_of_capitals() {
    let decomposed = "A\u{300} biento\u{302}t, Rene\u{301} Mu\u{308}ller\nU\u{308}ber uns: Ba\u{308}ckerstra\u{df}e.\n";
    assert_eq!(
        after(
            decomposed,
            "\u{c0} bient\u{f4}t, Ren\u{e9} M\u{fc}ller\n\u{dc}ber uns: B\u{e4}ckerstra\u{df}e.",
            "\u{c0} bient\u{f4}t, Ren\u{e9} M\u{fc}ller\n\u{dc}ber uns: Hauptstra\u{df}e."
        ),
        decomposed.replace("Ba\u{308}cker", "Haupt")
    );
}

#[test]
fn what_is_never_done() {
    let file = "fn a() {\n    one();\n\n    two();\n}\n\nfn b() {\n    one();\n}\n";
    for (old, new) in [
        ("fn a() {\n    one();\n    two();\n}", "x"),
        ("fn a() {\n    one();\n\n\n    two();\n}", "x"),
        ("fn a() {\n    ...\n}", "x"),
        ("FN A() {", "fn c() {"),
        ("\tone();", "\tthree();"),
        ("fn a() {\n    one();\n    two();\n    three();\n}", "x"),
    ] {
        assert_eq!(repaired(file, old, new), None, "{old:?}");
    }
}

#[test]
fn a_place_that_is_almost_the_same_stops_a_repair() {
    let file = "    let total = compute(first, 1);\n    store(total);\n    let total = compute(first, 2);\n    store(total);\n";
    assert_eq!(
        repaired(
            file,
            "\tlet total = compute(first, 1);",
            "\tlet total = compute(first, 3);"
        ),
        None
    );
}

#[test]
fn line_endings_of_the_file_are_kept() {
    let file = "class A\r\n{\r\n    int width;\r\n    string name;\r\n}\r\n";
    assert_eq!(
        after(
            file,
            "int width;\nstring name;",
            "int width;\nint height;\nstring name;"
        ),
        file.replace("width;", "width;\r\n    int height;")
    );
}

#[test]
fn unusual_files() {
    // A byte-order mark, CRLF, and both in one file.
    let file = "\u{feff}say(\"one\");\r\n  two();\r\nthree();\n";
    assert_eq!(
        after(file, "say(\u{201c}one\u{201d});", "say(\u{201c}1\u{201d});"),
        file.replace("one", "1")
    );
    assert_eq!(
        after(
            file,
            "say(\u{201c}one\u{201d});\n  two();\nthree();",
            "say(\u{201c}one\u{201d});\n  2();\n  more();\nthree();"
        ),
        file.replace("two();", "2();\r\n  more();")
    );
    // Tabs and spaces in one indentation: no single rule.
    let mixed = "if a {\n\t  b();\n    \tc();\n}\n";
    assert_eq!(
        repaired(
            mixed,
            "if a {\n      b();\n        c();\n}",
            "if a {\n      d();\n        c();\n}"
        ),
        None
    );
    // Blank text, and text of marks only.
    assert_eq!(repaired("a b\n\n", " \n \n ", "x"), None);
    assert_eq!(repaired("a b\n", "\u{301}", "x"), None);
    assert_eq!(repaired("a - b\n", "\u{2014}", "x"), None);
    // A long line: only its part changes.
    let long = format!(
        "{}key: \"value\"{}\n",
        "a,".repeat(20_000),
        ",b".repeat(20_000)
    );
    assert_eq!(
        after(
            &long,
            "key: \u{201c}value\u{201d}",
            "key: \u{201c}other\u{201d}"
        ),
        long.replace("value", "other")
    );
    // Bytes that are not UTF-8 stay.
    let latin = b"caf\xe9 = 1\n\tx = \"2\"\n";
    let done = repair(latin, "    x = \"2\"", "    x = \"3\"").unwrap();
    assert_eq!(
        apply(latin, &[done.replacement]).unwrap(),
        b"caf\xe9 = 1\n\tx = \"3\"\n"
    );
}

/// Text made of few words, so that places resemble each other.
fn words() -> impl Strategy<Value = String> {
    let line = prop::collection::vec(
        "(    |\t|  )?(let a = \"x\";|b - c|d\u{e9}f|\u{201c}g\u{201d}|h|\\}|  )",
        1..12,
    );
    line.prop_map(|lines| lines.join("\n") + "\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// The bytes before and after the lines that a repair names stay the same, and so do
    /// lines inside it that the edit does not change.
    #[test]
    fn a_repair_changes_nothing_outside_its_place(file in words(), skip in 0usize..12, take in 1usize..5, shift in "(|  |\t|1: )", word in "[a-z]{3}") {
        let lines: Vec<&str> = file.lines().collect();
        let wanted: Vec<String> = lines.iter().skip(skip).take(take).map(|line| format!("{shift}{}", line.trim())).collect();
        let mut changed = wanted.clone();
        if let Some(last) = changed.last_mut() {
            last.push_str(&word);
        }
        let (old, new) = (wanted.join("\n"), changed.join("\n"));
        if !old.is_empty() && splice::find(file.as_bytes(), &old).spans.is_empty() && let Some(repaired) = repair(file.as_bytes(), &old, &new) {
            let replacement = repaired.replacement;
            let after = apply(file.as_bytes(), std::slice::from_ref(&replacement)).unwrap();
            prop_assert_eq!(&after[..replacement.span.start], &file.as_bytes()[..replacement.span.start]);
            let tail = file.len() - replacement.span.end;
            prop_assert_eq!(&after[after.len() - tail..], &file.as_bytes()[replacement.span.end..]);
            // Exactly one line differs: the one whose end was changed.
            let after = String::from_utf8(after).unwrap();
            let differing = file.lines().zip(after.lines()).filter(|(a, b)| a != b).count();
            prop_assert_eq!(file.lines().count(), after.lines().count());
            prop_assert_eq!(differing, 1);
        }
    }

    /// A repaired edit leaves exactly what the edit without the mistake leaves.
    #[test]
    fn a_repair_is_the_edit_without_the_mistake(
        lines in prop::collection::vec(("(|  |    |\t|\t\t)", "[a-z]{4,9}", "(|[a-z]{3} - [a-z]{3}|d\u{e9}j\u{e0})"), 3..14),
        crlf: bool,
        skip in 0usize..10,
        take in 1usize..5,
        at in 0usize..5,
        adds: bool,
        mistake in 0usize..7,
    ) {
        let line = |(n, (indent, word, rest)): (usize, &(String, String, String))| format!("{indent}{word}_{n} = \"{rest}{n}\";");
        let all: Vec<String> = lines.iter().enumerate().map(line).collect();
        let skip = skip.min(all.len() - 1);
        let old: Vec<String> = all.iter().skip(skip).take(take).cloned().collect();
        let mut new = old.clone();
        let at = at.min(new.len() - 1);
        let changed = new[at].replace(" = ", "_changed = ");
        if adds { new.insert(at + 1, changed) } else { new[at] = changed }
        let ending = if crlf { "\r\n" } else { "\n" };
        let mut after = all.clone();
        after.splice(skip..skip + old.len(), new.iter().cloned());
        let whole = |lines: &[String]| lines.iter().map(|line| format!("{line}{ending}")).collect::<String>();
        let (file, expected) = (whole(&all), whole(&after));
        let spoil = |lines: &[String]| -> String {
            let each = |f: &dyn Fn(usize, &String) -> String| lines.iter().enumerate().map(|(n, line)| f(n, line)).collect::<Vec<_>>().join("\n");
            match mistake {
                0 => each(&|n, line| format!("{:>6}\t{line}", skip + 1 + n)),
                1 => each(&|_, line| format!("   {line}")),
                2 => each(&|_, line| format!("{line}  ")),
                3 => each(&|_, line| line.replacen('"', "\u{201c}", 1).replace('"', "\u{201d}")),
                4 => each(&|_, line| line.clone()).replace('\n', "\\n").replace('"', "\\\""),
                5 => each(&|_, line| line.replace(" - ", " \u{2013} ").replace(" = ", "\u{a0}= ")),
                _ => each(&|_, line| line.replace('\u{e9}', "e\u{301}").replace('\u{e0}', "a\u{300}")),
            }
        };
        let (old, new) = (spoil(&old), spoil(&new));
        if splice::find(file.as_bytes(), &old).spans.is_empty() && let Some(repaired) = repair(file.as_bytes(), &old, &new) {
            let after = apply(file.as_bytes(), &[repaired.replacement]).unwrap();
            prop_assert_eq!(String::from_utf8(after).unwrap(), expected);
        }
    }

    /// No text makes it fail.
    #[test]
    fn never_fails(file in "\\PC{0,80}", old in "\\PC{1,30}", new in "\\PC{0,30}") {
        let _ = repair(file.as_bytes(), &old, &new);
    }
}

/// Returns the time of a failed edit, with its hints.
fn time(file: &str, old: &str) -> Duration {
    let started = Instant::now();
    let seen = Haystack::new(file);
    let _ = super::repair(file.as_bytes(), &seen, old, "x");
    let _ = crate::edit::lesson::lesson(file.as_bytes(), &seen, old, "x");
    started.elapsed()
}

/// Checks that four times as much takes less than ten times as long; it would be sixteen
/// times if the effort were quadratic. Short times vary too much to compare.
fn is_linear(small: impl Fn() -> Duration, large: impl Fn() -> Duration) -> bool {
    let noise = Duration::from_millis(100);
    // Another program may take the processor; that does not happen every time.
    (0..5).any(|_| large() < 10 * small() + noise)
}

#[test]
fn repetition_takes_linear_time() {
    let line = "    let value = compute(value, value);\n";
    let file = |size: usize| line.repeat(size / line.len());
    let (small, large) = (file(1 << 18), file(1 << 20));
    let mut olds = vec![
        format!(
            "{}  let other;\n",
            "  let value = compute(value, value);\n".repeat(2_000)
        ),
        "  let value = compute(value, value)\u{201d};".to_owned(),
        "a \u{201c}".to_owned(),
    ];
    olds.push(olds[0].replace('\n', "\\n"));
    for old in &olds {
        assert!(is_linear(|| time(&small, old), || time(&large, old)));
    }
    let one_line = |size: usize| "value(".repeat(size / 6);
    let (small, large) = (one_line(1 << 18), one_line(1 << 20));
    let old = "value(\u{201c}value(";
    assert!(is_linear(|| time(&small, old), || time(&large, old)));
    // The text grows with the file.
    let grows = |lines: usize| {
        let old = format!("{}x\n", "  let value = f(value);\n".repeat(lines));
        let file = "    let value = f(value);\n".repeat(lines);
        time(&file, &old)
    };
    assert!(is_linear(|| grows(4_000), || grows(16_000)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// No repeated text makes the effort quadratic.
    #[test]
    fn any_repetition_takes_linear_time(unit in "[ab(\"\u{201c}\u{e9} \t\n]{1,8}", times in 1usize..200, end in "[ab\u{201d} \n]{0,4}") {
        let (small, large) = (unit.repeat((1 << 15) / unit.len()), unit.repeat((1 << 17) / unit.len()));
        let old = format!(" {}{end}", unit.repeat(times));
        prop_assert!(is_linear(|| time(&small, &old), || time(&large, &old)));
    }
}

#[test]
fn a_repair_of_everything_takes_linear_time() {
    let grows = |lines: usize| {
        let file: String = (0..lines).map(|n| format!("    step({n});\n")).collect();
        let old = file.replace("    ", "\t");
        let new = old.replace("(7", "(8");
        let started = Instant::now();
        assert!(repair(file.as_bytes(), &old, &new).is_some());
        started.elapsed()
    };
    assert!(is_linear(|| grows(1_000), || grows(4_000)));
}

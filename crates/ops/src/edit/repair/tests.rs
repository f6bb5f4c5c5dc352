use super::*;
use crate::edit::splice::apply;
use proptest::prelude::*;
use std::time::{Duration, Instant};

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
    // Which of the two quotation marks is meant cannot be told.
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

/// Text made of few words, so that places resemble each other.
fn words() -> impl Strategy<Value = String> {
    let line = prop::collection::vec(
        "(    |\t|  )?(let a = \"x\";|b - c|d\u{e9}f|\u{201c}g\u{201d}|h|\\}|  )",
        1..12,
    );
    line.prop_map(|lines| lines.join("\n") + "\n")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

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

    /// No text makes it fail.
    #[test]
    fn never_fails(file in "\\PC{0,80}", old in "\\PC{1,30}", new in "\\PC{0,30}") {
        let _ = repair(file.as_bytes(), &old, &new);
    }
}

#[test]
fn repetition_takes_linear_time() {
    // Generous: a debug build on a busy machine. A quadratic search takes minutes.
    let limit = Duration::from_secs(20);
    let line = "    let value = compute(value, value);\n";
    let file = line.repeat((1 << 20) / line.len());
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
        let started = Instant::now();
        let _ = repair(file.as_bytes(), old, "x");
        assert!(started.elapsed() < limit, "{:?}", started.elapsed());
    }
    let one_line = "value(".repeat((1 << 20) / 6);
    let started = Instant::now();
    let _ = repair(one_line.as_bytes(), "value(\u{201c}value(", "x");
    assert!(started.elapsed() < limit, "{:?}", started.elapsed());
}

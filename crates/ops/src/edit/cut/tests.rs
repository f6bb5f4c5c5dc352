use super::*;
use crate::edit::splice::{apply, find};

fn edited(file: &str, old: &str, new: &str) -> Result<String, Refusal> {
    let found = find(file.as_bytes(), old);
    assert_eq!(found.spans.len(), 1, "{old:?} in {file:?}");
    let Guarded { replacements, .. } = guard(file.as_bytes(), found, new)?;
    Ok(String::from_utf8(apply(file.as_bytes(), &replacements).unwrap()).unwrap())
}

#[test]
fn a_text_cut_inside_a_line_reaches_to_its_end() {
    let file = "a\n    const response = { results: [], total: 0 };\nb\n";
    let line = "    const response = { results: [], total: 0 };";
    let longer = format!("    // new\n{line}");
    assert_eq!(
        edited(file, "    const response = { resu", &longer).unwrap(),
        format!("a\n{longer}\nb\n")
    );
    assert_eq!(
        edited(file, "    const response = { resu", &line.replace('0', "1")).unwrap(),
        file.replace('0', "1")
    );
    assert_eq!(
        edited("let a = 1;\n", "let a = 1", "let a = 2;").unwrap(),
        "let a = 2;\n"
    );
    assert_eq!(edited("f(a);\n", "f(a", "f(b)").unwrap(), "f(b);\n");
    assert_eq!(
        edited("a\nf(g(x))\n", "a\nf(g(x)", "b\nf(g(x))").unwrap(),
        "b\nf(g(x))\n"
    );
    assert_eq!(
        edited(
            "  const re = 1;\nx\n",
            "nst re = 1;\nx",
            "  const re = 1;\ny"
        )
        .unwrap(),
        "  const re = 1;\ny\n"
    );
}

#[test]
fn a_word_with_the_same_end_is_refused() {
    let refused = Err(Refusal::Repeats { at: 0 });
    assert_eq!(edited("get_value\n", "get", "set_value"), refused);
    let refused = Err(Refusal::Repeats { at: 3 });
    assert_eq!(edited("my_value\n", "value", "my_other"), refused);
    assert_eq!(edited("get_value\n", "get", "set").unwrap(), "set_value\n");
}

#[test]
fn edits_within_a_line_are_made_as_they_are() {
    for (file, old, new) in [
        ("return f(a, b);\n", "f(a, b)", "f(a, b, c)"),
        ("x = [1, 2]\n", "1, 2", "1, [2]"),
        ("print(a)\n", "a", "str(a)"),
        ("say(\"x\")\n", "x", "\\\"x\\\""),
        ("if (a && b) {\n", "a", "(a || c)"),
        ("let v = vec![];\n", "vec![]", "vec![0; 3]"),
        ("<b>bold</b>\n", "bold", "<i>bold</i>"),
        ("a: 1 # one\n", "1", "2"),
        ("total += x\n", "total", "grand_total"),
        ("f(g(x), y)\n", "g(x)", "h(g(x))"),
        ("- item\n", "item", "item\n- item two"),
        ("one two\n", "one ", ""),
    ] {
        assert_eq!(
            edited(file, old, new).unwrap(),
            file.replacen(old, new, 1),
            "{old:?} in {file:?}"
        );
    }
}

#[test]
fn a_widened_match_is_reported() {
    let note = |old: &str| {
        let guarded = guard(b"let a = 1;\n", find(b"let a = 1;\n", old), "let a = 2;");
        guarded.unwrap().note()
    };
    assert!(note("let a = 1").is_some());
    assert_eq!(note("let a = 1;"), None);
}

#[test]
fn a_part_of_a_line_stays_a_part() {
    assert_eq!(edited("y = g(x)\n", "x", "(x)").unwrap(), "y = g((x))\n");
    assert_eq!(edited("foobar\n", "foo", "baz").unwrap(), "bazbar\n");
    assert_eq!(
        edited("a: 1,\n", "a: 1", "a: 1,\nb: 2").unwrap(),
        "a: 1,\nb: 2,\n"
    );
    assert_eq!(
        edited("    foo();\n", "foo();", "    foo();").unwrap(),
        "        foo();\n"
    );
}

#[test]
fn indentation_that_the_old_text_left_out_is_not_doubled() {
    assert_eq!(
        edited(
            "    if x:\n        y()\n",
            "if x:\n        y()",
            "    if z:\n        y()"
        )
        .unwrap(),
        "    if z:\n        y()\n"
    );
}

#[test]
fn an_addition_is_not_made_twice() {
    let file = "import os\nimport sys\n\nmain()\n";
    assert_eq!(
        edited(file, "import os\n", "import os\nimport sys\n"),
        Err(Refusal::AlreadyThere { at: 0 })
    );
    assert!(edited(file, "import os\n", "import os\nimport re\n").is_ok());
    assert_eq!(
        edited(
            &file.replace('\n', "\r\n"),
            "import os\n",
            "import os\nimport sys\n"
        ),
        Err(Refusal::AlreadyThere { at: 0 })
    );
}

fn all(bytes: &[u8], old: &str, new: &str) -> Result<Vec<u8>, Refusal> {
    let found = find(bytes, old).without_overlaps();
    let Guarded { replacements, .. } = guard(bytes, found, new)?;
    Ok(apply(bytes, &replacements).unwrap())
}

#[test]
fn several_matches_are_treated_alike() {
    let now = all(b"let a = 1;\nlet a = 1;\n", "let a = 1", "let a = 2;");
    assert_eq!(now.unwrap(), b"let a = 2;\nlet a = 2;\n");
    // One of them has what the new text has, and the other has not.
    let mixed = all(b"foo();\nfoobar();\n", "foo", "foobar");
    assert_eq!(mixed, Err(Refusal::Repeats { at: 7 }));
    // Widened to the same line.
    let same = all(b"x x\n", "x", "y x x");
    assert!(same.is_err(), "{same:?}");
}

#[test]
fn bytes_that_are_not_utf_8_are_not_replaced_by_what_a_model_sees() {
    let file = b"name = \"caf\xe9\";\n";
    let edited = all(file, "name", "title = \"caf\u{fffd}\";");
    assert_eq!(edited, Err(Refusal::Repeats { at: 0 }));
    let edited = all(file, "name", "title");
    assert_eq!(edited.unwrap(), b"title = \"caf\xe9\";\n");
}

#[test]
fn many_matches_on_one_line_take_linear_time() {
    let time = |count: usize| {
        let file = "ab(c);".repeat(count);
        let begun = std::time::Instant::now();
        let now = all(file.as_bytes(), "ab(c", "ab(d)");
        assert_eq!(now.unwrap().len(), file.len());
        begun.elapsed()
    };
    let (few, many) = (time(20_000), time(160_000));
    // Eight times as many take about eight times as long, and sixty-four times if the
    // effort is quadratic.
    assert!(many < 24 * few, "{few:?}, {many:?}");
}

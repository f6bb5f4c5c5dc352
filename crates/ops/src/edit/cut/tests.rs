use super::*;
use crate::edit::splice::{apply, find};

fn edited(file: &str, old: &str, new: &str) -> Result<String, Refusal> {
    let found = find(file.as_bytes(), old);
    assert_eq!(found.spans.len(), 1, "{old:?} in {file:?}");
    let replacements = guard(file.as_bytes(), found, new)?;
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

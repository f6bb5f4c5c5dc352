//! Compares the parser of command lines with the shell itself.
#![expect(
    clippy::disallowed_methods,
    reason = "the shell is what the reader is compared with"
)]

use crate::policy::line;
use crate::policy::shell::Word;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

/// The parser's result for a line.
struct Read {
    commands: Vec<Vec<String>>,
    limit: Option<String>,
    readable: bool,
}

fn read(line: &str) -> Read {
    let line = line::read(line, false);
    Read {
        commands: line
            .commands
            .iter()
            .map(|command| {
                command
                    .words
                    .iter()
                    .map_while(Word::known)
                    .map(str::to_owned)
                    .collect()
            })
            .collect(),
        limit: line.limit().map(str::to_owned),
        readable: line.unreadable.is_none(),
    }
}

/// Returns the commands that `bash` runs for a line if each returns `status`; `None` if the
/// line has a syntax error.
fn ran(line: &str, status: u8) -> Option<BTreeSet<Vec<String>>> {
    let (commands, is_correct) = run(line, status);
    is_correct.then_some(commands)
}

/// Returns the commands that `bash` runs for a line, valid or not.
fn ran_until_error(line: &str, status: u8) -> BTreeSet<Vec<String>> {
    run(line, status).0
}

fn run(line: &str, status: u8) -> (BTreeSet<Vec<String>>, bool) {
    let folder = tempfile::TempDir::new().unwrap();
    let log = folder.path().join("log");
    // No program is found, so that every command ends up here with its words. Each is
    // written at once, because the parts of a pipe run in parallel.
    let script = format!(
        "ulimit -t 2; FUNCNEST=3; command_not_found_handle() {{ printf '%s\\0' begin \"$@\" >&3; return {status}; }}; exec 3>>\"$LOG\"\n{line}"
    );
    let ended = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", &script])
        .env_clear()
        .env("PATH", "/nonexistent")
        .env("LC_ALL", "C.UTF-8")
        .env("HOME", "/nonexistent")
        .env("LOG", &log)
        .current_dir(folder.path())
        .output()
        .unwrap();
    let is_correct = !String::from_utf8_lossy(&ended.stderr).contains("syntax error");
    let text = String::from_utf8(std::fs::read(&log).unwrap_or_default()).unwrap();
    let words: Vec<&str> = text.split_terminator('\0').collect();
    let commands = words
        .split(|word| *word == "begin")
        .filter(|words| !words.is_empty())
        .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
        .collect();
    (commands, is_correct)
}

/// Fragments of every construct of the shell.
const PIECES: &[&str] = &[
    "$(",
    "\"$(",
    ")",
    ")\"",
    "`",
    "\"",
    "'",
    "$'",
    "$\"",
    "${a:-",
    "${a[",
    "]}",
    "}",
    "$((",
    "))",
    "((",
    "[[ ",
    " ]]",
    "<(",
    ">(",
    "<<E\n",
    "<<'E'\n",
    "<<-E\n\t",
    "\nE\n",
    "\n\tE\n",
    "E",
    "<<< ",
    ">f ",
    "2>f ",
    "&>f ",
    "{fd}>f ",
    "2>&1 ",
    "a=",
    "a=(",
    "a[1]=",
    "a[",
    "]",
    "]=1 ",
    "{x,y} ",
    "{w,{x,y}}",
    "{",
    "}",
    "{ ",
    "; }",
    "(",
    "fn() { ",
    "function fn { ",
    "if ",
    "; then ",
    "; else ",
    "; elif ",
    "; fi",
    "for i in y; do ",
    "; done",
    "for ((i=0;i<1;i++)); do ",
    "case z in z) ",
    "case z in (w|z) ",
    ";; ",
    ";& ",
    ";;& ",
    "esac",
    "! ",
    "time ",
    "time -p ",
    "coproc ",
    "command ",
    "eval ",
    "eval '",
    "exec ",
    "&",
    "|&",
    "#",
    " #",
    "\\",
    "\\\n",
    "\\\\",
    "\\'",
    "\\\"",
    "\\`",
    "\\$",
    "\\)",
    "$x",
    "\"$x\"",
    "*",
    "?",
    "~",
    "-",
    "\t",
];

/// Generates lines, many with more than literal words.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        5 => prop::sample::select(vec!["w", "x", "y", "z"]).prop_map(str::to_owned),
        4 => Just(" ".to_owned()),
        2 => prop::sample::select(vec![";", "\n", " && ", " || ", " | ", "; "]).prop_map(str::to_owned),
        6 => prop::sample::select(PIECES).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 1..16).prop_map(|pieces| pieces.concat())
}

/// Generates complete lines, in which every construct ends.
fn complete() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "w",
        "x",
        "y",
        "z",
        "'w;x'",
        "\"a b\"",
        "\\w",
        "$x",
        "\"$x\"",
        "w*",
        "~",
        "{x,y}",
        "$'\\x77'",
        "a=b",
        "#",
        "y#z",
        "${a:-z}",
        "$((1+2))",
        "')'",
        "\"'\"",
        "'\"'",
        "\\)",
        "\"\\\"\"",
        "`w`",
        "\"`x y`\"",
        "`w \\`x\\``",
        "\\\n",
    ])
    .prop_map(str::to_owned);
    let command = prop::collection::vec(word, 1..4).prop_map(|words| words.join(" "));
    command.prop_recursive(4, 24, 3, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(|a| format!("w $({a})")),
            inner.clone().prop_map(|a| format!("w \"$({a})\"z")),
            inner
                .clone()
                .prop_map(|a| format!("w \"b ${{a:-$({a})}} c\"")),
            inner.clone().prop_map(|a| format!("w ${{a:-\"$({a})\"}}")),
            inner.clone().prop_map(|a| format!("w <({a})")),
            inner.clone().prop_map(|a| format!("({a})")),
            inner.clone().prop_map(|a| format!("{{ {a}\n}}")),
            inner.clone().prop_map(|a| format!("y <<E\nb $({a}) '\nE")),
            inner
                .clone()
                .prop_map(|a| format!("y <<'E'; {a}\n$( ` \" '\nE")),
            inner
                .clone()
                .prop_map(|a| format!("y <<-E <<B\n\ta\n\tE\nb\\\nB\nB\n{a}")),
            inner.clone().prop_map(|a| format!("fn() {{ {a}\n}}; fn")),
            inner
                .clone()
                .prop_map(|a| format!("for i in x; do {a}\ndone")),
            inner.clone().prop_map(|a| format!("a=( $({a}) )")),
            inner.clone().prop_map(|a| format!("! {a}")),
            inner.clone().prop_map(|a| format!("time {a}")),
            inner.clone().prop_map(|a| format!("b=c {a}")),
            inner
                .clone()
                .prop_map(|a| format!("[[ -n $({a}) && ( b ) ]]")),
            inner.clone().prop_map(|a| format!("(( $({a}) 1 ))")),
            inner
                .clone()
                .prop_map(|a| format!("eval '{}'", a.replace('\'', "'\\''"))),
            inner.clone().prop_map(|a| format!("eval \"$(w)\"; {a}")),
            inner.clone().prop_map(|a| format!("{a} >f 2>&1")),
            inner.clone().prop_map(|a| format!(">f {a}")),
            inner.clone().prop_map(|a| format!("{a} # ' $(\n")),
            two.clone().prop_map(|(a, b)| format!("{a}; {b}")),
            two.clone().prop_map(|(a, b)| format!("{a}\n{b}")),
            two.clone().prop_map(|(a, b)| format!("{a} && {b}")),
            two.clone().prop_map(|(a, b)| format!("{a} | {b}")),
            two.clone().prop_map(|(a, b)| format!("{a} & {b}")),
            two.clone()
                .prop_map(|(a, b)| format!("if {a}\nthen {b}\nfi")),
            two.clone()
                .prop_map(|(a, b)| format!("case z in x) {a};; (z|w) {b}\n;; esac")),
            two.prop_map(|(a, b)| format!("case $({a}) in *) {b};& y) ;; esac")),
        ]
    })
}

/// Checks that every command the shell ran was found, or that the line counts as
/// unreadable.
fn nothing_is_missed(line: &str) -> Result<(), TestCaseError> {
    let read = read(line);
    if !read.readable {
        return Ok(());
    }
    // A later syntax error does not undo commands that ran before it.
    for status in [0, 1] {
        for ran in ran_until_error(line, status) {
            let Some(name) = ran.first() else { continue };
            let found = read
                .commands
                .iter()
                .any(|command| command.first() == Some(name));
            prop_assert!(
                found,
                "{name:?} was run by {line:?}, of which {:?} was read",
                read.commands
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_command_in_fragments_is_missed(line in fragments()) {
        nothing_is_missed(&line)?;
    }

    #[test]
    fn no_command_in_a_complete_line_is_missed(line in complete()) {
        nothing_is_missed(&line)?;
    }
}

/// Whether the shell would not look up a program: its builtins, and paths.
fn is_elsewhere(word: &str) -> bool {
    let is_job = word.starts_with('%');
    is_job || word.is_empty() || word.contains('/') || matches!(word, ":" | "." | "[" | "begin")
}

/// Generates lines with every special character, and words that the shell does not know.
fn line() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => "[wxyz]{1,2}",
        4 => Just(" ".to_owned()),
        2 => prop::sample::select(vec![
            "&&", "||", ";", "|", "\n", "\\\n", "\\\\", "\\'", "\\ ", "'", "\"", "'a b'",
            "\"c d\"", "\"\\\"\"", "\"\\x\"", "''", "\t",
        ]).prop_map(str::to_owned),
        1 => prop::sample::select(vec![
            "#", "~", "=", ":", "!", "^", "%", "@", "+", ",", "-", "]", "é", "\u{a0}", "&", "$", "`",
            "*", "?", "[", "{", "}", "(", ")", "<", ">", "\r", "\u{7f}", "\u{2028}", "if", "time", "1",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, max_global_rejects: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_line_of_literal_words_is_exactly_what_the_shell_runs(line in line()) {
        let read = read(&line);
        prop_assume!(read.limit.is_none());
        prop_assume!(!line.contains(['$', '`', '*', '?', '[', '{', '}', '(', ')', '<', '>', '~', '&', '=']));
        let words = |command: &Vec<String>| command.first().cloned().unwrap_or_default();
        prop_assume!(!read.commands.iter().any(|command| is_elsewhere(&words(command))));
        let (good, bad) = (ran(&line, 0), ran(&line, 1));
        let (Some(good), Some(bad)) = (good, bad) else {
            return Err(TestCaseError::fail(format!("the shell does not take {line:?}")));
        };
        // After `&&` only a success runs the next command, after `||` only a failure.
        let all: BTreeSet<Vec<String>> = good.union(&bad).cloned().collect();
        let expected: BTreeSet<Vec<String>> = read.commands.into_iter().collect();
        prop_assert_eq!(all, expected, "{:?}", line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_can_be_parsed(line in any::<String>()) {
        let _ = read(&line);
    }

    #[test]
    fn any_mixture_of_special_characters_can_be_parsed(line in line()) {
        let _ = read(&line);
    }

    #[test]
    fn any_mixture_of_constructs_can_be_parsed(line in fragments()) {
        let _ = read(&line);
    }

    #[test]
    fn any_bytes_can_be_parsed(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn hostile_text_is_cheap() {
    // Longer text is not parsed at all.
    let many = |piece: &str| piece.repeat(130_000 / piece.len());
    for piece in [
        "(",
        "$(",
        "`",
        "{",
        "\"",
        "'",
        "\"$(",
        "${a:-",
        "$((",
        "((",
        "[[ ",
        "<(",
        "<<E\n",
        "<<E ",
        "a=(",
        "\\`",
        "\\",
        "\\\n",
        "{a,",
        "{a,b}",
        "{,}",
        "if ",
        "case a in a) ",
        "f() ",
        "! ",
        "time ",
        "coproc ",
        "eval ",
        "sudo ",
        "env ",
        "env -S ",
        "sh -c ",
        "x;",
        "x ",
        "x=",
        "*",
        "[",
        "]",
        "a[",
        "~",
        "#",
        "\n",
        "\t",
        "é",
        "\u{200b}",
        "$x",
        "$'\\x41",
        "}",
        ")",
        ";",
        "&",
        "|",
        ">",
        "<",
        "find -exec ",
        "function f ",
        "for a in b; do ",
        "git -c ",
        "&>f ",
        "- ",
        "-S",
        "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} ",
        "nice ",
        "{aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,b,c,d,e,f,g,h}{a,b,c,d,e,f,g,h} ",
    ] {
        let text = many(piece);
        let start = Instant::now();
        read(&text);
        read(&format!("ls {text}"));
        let took = start.elapsed();
        // Well below a second on an idle machine; quadratic time would take hours.
        assert!(took < Duration::from_secs(30), "{piece:?} took {took:?}");
    }
    // The size of the result is counted, not only that of the line.
    for line in [
        format!("ls {}", "{a,b}{a,b}{a,b}{a,b}{a,b}{a,b} ".repeat(4_000)),
        format!(
            "find . {}{}",
            "-exec ls {} + ".repeat(32),
            "a ".repeat(60_000)
        ),
        format!("{}ls {}", "nice ".repeat(30), "a ".repeat(60_000)),
        format!("ls {}", "a ".repeat(70_000)),
    ] {
        assert!(line.len() < 150_000);
        let read = line::read(&line, false);
        assert!(read.unreadable.is_some(), "{:?}", line.get(..40));
        let words: usize = read
            .commands
            .iter()
            .map(|command| command.words.len())
            .sum();
        assert!(words < 200_000, "{words} words");
    }
    // Each level doubles the escapes, so deep nesting is long.
    let mut line = "rm x".to_owned();
    for _ in 0..12 {
        line = format!(
            "sh -c \"{}\"",
            line.replace('\\', "\\\\").replace('"', "\\\"")
        );
    }
    assert!(
        read(&line)
            .commands
            .iter()
            .any(|words| words.first().is_some_and(|word| word == "rm"))
    );
}

#[test]
fn words_are_unquoted_as_the_shell_does() {
    for (line, words) in [
        (r#"a 'b c' "d e" f\ g"#, &["a", "b c", "d e", "f g"][..]),
        (r#"a"b"'c'\d"#, &["abcd"]),
        (r#"a "x\"y\\z\q" '\n'"#, &["a", r#"x"y\z\q"#, r"\n"]),
        ("a '' \"\"", &["a", "", ""]),
        ("a \\\n b", &["a", "b"]),
        ("a\\\nb", &["ab"]),
        (
            "a b#c x=y HEAD~2 --d=e",
            &["a", "b#c", "x=y", "HEAD~2", "--d=e"],
        ),
        ("  a\t", &["a"]),
    ] {
        let read = read(line);
        assert_eq!(read.limit, None, "{line:?}");
        assert_eq!(read.commands, [words], "{line:?}");
    }
    let several = read("a b && c || d | e ; f\n\n g ;\n");
    assert_eq!(several.limit, None);
    assert_eq!(several.commands.len(), 6);
    assert_eq!(read(" \n\t").commands, Vec::<Vec<String>>::new());
    assert_eq!(read("a \\\n# b").commands, [["a"]], "a comment after all");
    // 10,000 blanks hide nothing.
    let far = format!("ls{}; rm x", " ".repeat(10_000));
    assert_eq!(read(&far).commands, [vec!["ls"], vec!["rm", "x"]]);
}

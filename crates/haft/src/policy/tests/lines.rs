//! The reader of command lines against the shell itself.
#![expect(
    clippy::disallowed_methods,
    reason = "the shell is what the reader is compared with"
)]

use crate::policy::line::read;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::process::Command;

/// The commands that `bash` runs for a line, if each of them returns `status`.
fn ran(line: &str, status: u8) -> Option<BTreeSet<Vec<String>>> {
    let folder = tempfile::TempDir::new().unwrap();
    let log = folder.path().join("log");
    // Nothing is found, so that every command comes here with its words. One
    // write each, as the parts of a pipe run at once.
    let script = format!(
        "command_not_found_handle() {{ printf '%s\\0' begin \"$@\" >&3; return {status}; }}; exec 3>>\"$LOG\"\n{line}"
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
    if String::from_utf8_lossy(&ended.stderr).contains("syntax error") {
        return None;
    }
    let text = String::from_utf8(std::fs::read(&log).unwrap_or_default()).unwrap();
    let words: Vec<&str> = text.split_terminator('\0').collect();
    Some(
        words
            .split(|word| *word == "begin")
            .filter(|words| !words.is_empty())
            .map(|words| words.iter().map(|word| (*word).to_owned()).collect())
            .collect(),
    )
}

/// Whether the shell would not look for a program: its own words, and paths.
fn is_elsewhere(word: &str) -> bool {
    word.is_empty() || word.contains('/') || matches!(word, ":" | "." | "[" | "%" | "begin")
}

/// What the shell is asked about: every character with a meaning, and words
/// that it does not know.
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
    fn a_line_that_is_read_is_what_the_shell_runs(line in line()) {
        let read = read(&line);
        prop_assume!(read.obstacle.is_none());
        let words = |command: &Vec<String>| command.first().cloned().unwrap_or_default();
        prop_assume!(!read.commands.iter().any(|command| is_elsewhere(&words(command))));
        let (good, bad) = (ran(&line, 0), ran(&line, 1));
        let (Some(good), Some(bad)) = (good, bad) else {
            return Err(TestCaseError::fail(format!("the shell does not take {line:?}")));
        };
        // Behind `&&` only the first runs it, behind `||` only the other.
        let all: BTreeSet<Vec<String>> = good.union(&bad).cloned().collect();
        let wanted: BTreeSet<Vec<String>> = read.commands.into_iter().collect();
        prop_assert_eq!(all, wanted, "{:?}", line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read(line in any::<String>()) {
        let _ = read(&line);
    }

    #[test]
    fn any_mixture_of_what_has_a_meaning_is_read(line in line()) {
        let _ = read(&line);
    }
}

#[test]
fn what_the_shell_would_do_to_a_word_is_done() {
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
        assert_eq!(read.obstacle, None, "{line:?}");
        assert_eq!(read.commands, [words], "{line:?}");
    }
    let several = read("a b && c || d | e ; f\n\n g ;\n");
    assert_eq!(several.obstacle, None);
    assert_eq!(several.commands.len(), 6);
    assert_eq!(read(" \n\t").commands, Vec::<Vec<String>>::new());
    assert!(read("a \\\n# b").obstacle.is_some(), "a comment after all");
    // 10,000 blanks hide nothing.
    let far = format!("ls{}; rm x", " ".repeat(10_000));
    assert_eq!(read(&far).commands, [vec!["ls"], vec!["rm", "x"]]);
}

//! The data sent to the host: the script that runs there, and the order it reads.
//!
//! All of it goes through standard input, line by line, instead of the command line. So the
//! account's shell, whichever it is, parses only one fixed command, and no environment
//! variable appears in the host's process list.

use super::super::{Launch, Program, Refusal, Streams};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// Command for the account's shell. Every shell parses it the same way.
pub(super) const REMOTE_COMMAND: &str = "exec /bin/sh -c 'IFS= read -r l && eval \"$l\"'";

/// Maximum length of an argument on Linux, in bytes.
const MAX_ARGUMENT: usize = (128 << 10) - 1;

/// Random identifiers of one run.
#[derive(Debug, Clone)]
pub(super) struct Names {
    /// Prefix of the host's reports; the command never learns it.
    pub(super) token: String,
    /// Marks its processes in their environment.
    pub(super) mark: String,
}

impl Names {
    pub(super) fn random() -> Self {
        Self {
            token: random(),
            mark: random(),
        }
    }
}

pub(super) fn random() -> String {
    use std::hash::{BuildHasher, RandomState};
    // The hasher of the standard library is keyed by the system's random source.
    let (first, second) = (RandomState::new(), RandomState::new());
    let ours = std::process::id();
    format!(
        "{:016x}{:016x}",
        first.hash_one(ours),
        second.hash_one(first.hash_one(ours + 1))
    )
}

/// Returns the bytes that start a launch on a host, or the reason why it cannot be started
/// there.
pub(super) fn bytes(launch: &Launch, names: &Names) -> Result<Vec<u8>, (Refusal, String)> {
    let words = words(&launch.program);
    if words.first().is_none_or(|name| name.is_empty()) {
        return Err((Refusal::Missing, "no program was named".to_owned()));
    }
    let mut lines = vec![format!("eval \"$(printf '{}')\"", encode(&script()))];
    let mut field = |bytes: &[u8]| lines.push(encode(bytes));
    field(names.token.as_bytes());
    field(names.mark.as_bytes());
    field(match launch.streams {
        Streams::Merged => b"merged",
        Streams::Separate => b"apart",
    });
    field(whole(launch.dir.as_os_str())?);
    field(words.len().to_string().as_bytes());
    for word in &words {
        field(whole(word)?);
    }
    field(launch.environment.len().to_string().as_bytes());
    for (name, value) in &launch.environment {
        if !is_name(name.as_bytes()) {
            let name = name.to_string_lossy();
            let detail = format!("{name:?} is not a variable name that a shell can set");
            return Err((Refusal::Other, detail));
        }
        field(name.as_bytes());
        field(whole(value)?);
    }
    let mut bytes = lines.join("\n").into_bytes();
    bytes.push(b'\n');
    Ok(bytes)
}

fn words(program: &Program) -> Vec<OsString> {
    match program {
        Program::Direct(words) => words.clone(),
        Program::Shell {
            shell,
            arguments,
            script,
        } => std::iter::once(shell.clone().into_os_string())
            .chain(arguments.iter().map(OsString::from))
            .chain([script.into()])
            .collect(),
    }
}

fn whole(word: &OsStr) -> Result<&[u8], (Refusal, String)> {
    let bytes = word.as_bytes();
    if bytes.contains(&0) {
        return Err((Refusal::Other, "an argument contains a NUL byte".to_owned()));
    }
    if bytes.len() > MAX_ARGUMENT {
        let detail = "an argument or environment variable is longer than 128 KiB".to_owned();
        return Err((Refusal::TooLong, detail));
    }
    Ok(bytes)
}

fn is_name(name: &[u8]) -> bool {
    name.first().is_some_and(|first| !first.is_ascii_digit())
        && name
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// Returns the script without its comments.
fn script() -> Vec<u8> {
    include_str!("there.sh")
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .flat_map(|line| [line.as_bytes(), b"\n"].concat())
        .collect()
}

/// Returns a `printf` format that produces exactly these bytes and can be written in single
/// quotes. Plain text is unchanged.
fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for (at, &byte) in bytes.iter().enumerate() {
        // A leading dash would be taken for an option.
        let plain = matches!(byte, b' '..=b'~') && !matches!(byte, b'\'' | b'\\' | b'%');
        if plain && (at > 0 || byte != b'-') {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "\\{byte:03o}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// Decodes fields with a shell, using the same lines as on the host.
    #[expect(clippy::disallowed_methods, reason = "a shell to test with")]
    fn decoded(shell: &[&str], fields: &[Vec<u8>]) -> Vec<u8> {
        let script = String::from_utf8(script()).unwrap();
        let begin = script.find("haft_next() {").unwrap();
        let decoder = script.get(begin..).unwrap().split_inclusive("\n}\n").next();
        let program = format!(
            "LC_ALL=C; exec 3<&0; {}for i in {}; do haft_next; printf '%s\\000' \"$haft_v\"; done",
            decoder.unwrap(),
            "x ".repeat(fields.len())
        );
        let mut child = Command::new(shell[0])
            .args(&shell[1..])
            .args(["-c", &program])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = String::new();
        for field in fields {
            lines.push_str(&encode(field));
            lines.push('\n');
        }
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(lines.as_bytes()).unwrap();
        drop(stdin);
        child.wait_with_output().unwrap().stdout
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn any_bytes_survive(fields in prop::collection::vec(prop::collection::vec(1_u8.., 0..60), 1..8)) {
            let expected: Vec<u8> = fields.iter().flat_map(|field| [field.as_slice(), b"\0"].concat()).collect();
            for shell in [&["/bin/sh"][..], &["bash", "--posix"]] {
                prop_assert_eq!(&decoded(shell, &fields), &expected, "{:?}", shell);
            }
        }
    }

    #[test]
    fn hostile_words_survive() {
        let fields: Vec<Vec<u8>> = [
            "",
            "-n",
            "--",
            "%s%n",
            "a'b\"c`d`$(id)",
            "\\",
            "\\\\n",
            "\n\n",
            " \t ",
            "x\n",
            "!!",
            "\u{1}\u{7f}\u{81}é",
            "#",
            "~",
            "*",
        ]
        .map(|text| text.as_bytes().to_vec())
        .to_vec();
        let every: Vec<u8> = (1..=255).collect();
        let fields = [fields, vec![every]].concat();
        let expected: Vec<u8> = fields
            .iter()
            .flat_map(|field| [field.as_slice(), b"\0"].concat())
            .collect();
        for shell in [&["/bin/sh"][..], &["bash", "--posix"], &["bash"]] {
            assert_eq!(decoded(shell, &fields), expected, "{shell:?}");
        }
    }

    #[test]
    fn only_names_that_a_shell_can_set_are_valid() {
        for (name, expected) in [
            ("A", true),
            ("_a1", true),
            ("", false),
            ("1A", false),
            ("A-B", false),
            ("A=B", false),
            ("A;id", false),
            ("é", false),
        ] {
            assert_eq!(is_name(name.as_bytes()), expected, "{name}");
        }
    }
}

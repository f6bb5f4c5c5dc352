//! Reads the variables of a git configuration exactly as git does.
//!
//! The parser of `config` finds what to protect, so it continues after an error and finds too
//! much rather than too little. This one decides what may be published, so it does the
//! opposite: whatever git would not accept is an error, and so are bytes that another program
//! may read differently than git.

/// Maximum length of a configuration. Even thousands of branches need less.
pub(crate) const MAX_BYTES: usize = 1 << 20;

/// Maximum number of variables.
const MAX_VARIABLES: usize = 50_000;

/// A variable and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    /// Full name as git compares it: section and key in lower case, the subsection unchanged.
    pub(super) name: Vec<u8>,
    /// `None` for a key without `=`, which means true.
    pub(super) value: Option<Vec<u8>>,
}

impl Variable {
    /// Returns the section, the subsection if there is one, and the key.
    pub(super) fn parts(&self) -> (&[u8], Option<&[u8]>, &[u8]) {
        parts(&self.name)
    }
}

/// Returns the section of a name, the subsection if there is one, and the key.
pub(super) fn parts(name: &[u8]) -> (&[u8], Option<&[u8]>, &[u8]) {
    let dot = |byte: &u8| *byte == b'.';
    let Some(first) = name.iter().position(dot) else {
        return (b"", None, name);
    };
    let last = name.iter().rposition(dot).unwrap_or(first);
    let part = |range: std::ops::Range<usize>| name.get(range).unwrap_or_default();
    let subsection = (first < last).then(|| part(first + 1..last));
    (part(0..first), subsection, part(last + 1..name.len()))
}

/// The bytes are not a configuration that git accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotValid;

/// Returns the variables in their order.
pub(super) fn variables(bytes: &[u8]) -> Result<Vec<Variable>, NotValid> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.len() > MAX_BYTES || has_odd_bytes(bytes) {
        return Err(NotValid);
    }
    let mut reader = Reader { rest: bytes };
    let mut found = Vec::new();
    let mut section = Vec::new();
    loop {
        match reader.next() {
            Byte::End => return Ok(found),
            Byte::Is(b'\n' | b' ' | b'\t') => {}
            Byte::Is(b'#' | b';') => reader.skip_line(),
            Byte::Is(b'[') => section = reader.section()?,
            Byte::Is(_) if found.len() >= MAX_VARIABLES => return Err(NotValid),
            Byte::Is(first) if first.is_ascii_alphabetic() => {
                found.push(reader.variable(&section, first)?);
            }
            Byte::Is(_) => return Err(NotValid),
        }
    }
}

/// Whether there are control characters other than tabs and line ends. In C, a NUL would end
/// a value, and a carriage return ends a line for some programs and not for others.
fn has_odd_bytes(bytes: &[u8]) -> bool {
    let next = bytes.iter().skip(1).map(Some).chain([None]);
    bytes.iter().zip(next).any(|(byte, next)| match byte {
        b'\t' | b'\n' => false,
        b'\r' => next != Some(&b'\n'),
        byte => byte.is_ascii_control(),
    })
}

fn is_of_key(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

enum Byte {
    Is(u8),
    End,
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    /// Returns the next byte. `\r` and `\n` together are one line end.
    fn next(&mut self) -> Byte {
        if let Some(rest) = self.rest.strip_prefix(b"\r\n") {
            self.rest = rest;
            return Byte::Is(b'\n');
        }
        match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                Byte::Is(*byte)
            }
            None => Byte::End,
        }
    }

    /// Returns the next byte. The end counts as a line end.
    fn within_line(&mut self) -> u8 {
        match self.next() {
            Byte::Is(byte) => byte,
            Byte::End => b'\n',
        }
    }

    fn skip_line(&mut self) {
        while self.within_line() != b'\n' {}
    }

    /// Reads what follows `[`. Returns the name with a dot at its end.
    fn section(&mut self) -> Result<Vec<u8>, NotValid> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                Byte::End => return Err(NotValid),
                Byte::Is(b']') => break,
                Byte::Is(b' ' | b'\t') => {
                    name.push(b'.');
                    self.subsection(&mut name)?;
                    break;
                }
                Byte::Is(byte) if is_of_key(byte) || byte == b'.' => {
                    name.push(byte.to_ascii_lowercase());
                }
                Byte::Is(_) => return Err(NotValid),
            }
        }
        name.push(b'.');
        Ok(name)
    }

    fn subsection(&mut self, name: &mut Vec<u8>) -> Result<(), NotValid> {
        let mut byte = self.within_line();
        while matches!(byte, b' ' | b'\t') {
            byte = self.within_line();
        }
        if byte != b'"' {
            return Err(NotValid);
        }
        loop {
            let byte = match self.within_line() {
                b'"' => break,
                b'\\' => self.within_line(),
                byte => byte,
            };
            if byte == b'\n' {
                return Err(NotValid);
            }
            name.push(byte);
        }
        match self.within_line() {
            b']' => Ok(()),
            _ => Err(NotValid),
        }
    }

    fn variable(&mut self, section: &[u8], first: u8) -> Result<Variable, NotValid> {
        let mut name = section.to_owned();
        name.push(first.to_ascii_lowercase());
        let mut byte = self.within_line();
        while is_of_key(byte) {
            name.push(byte.to_ascii_lowercase());
            byte = self.within_line();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.within_line();
        }
        let value = match byte {
            b'\n' => None,
            b'=' => Some(self.value()?),
            _ => return Err(NotValid),
        };
        Ok(Variable { name, value })
    }

    fn value(&mut self) -> Result<Vec<u8>, NotValid> {
        let mut value = Vec::new();
        let mut is_quoted = false;
        // Length without blanks at the end.
        let mut kept = 0;
        loop {
            match self.within_line() {
                b'\n' if is_quoted => return Err(NotValid),
                b'\n' => break,
                b'#' | b';' if !is_quoted => {
                    self.skip_line();
                    break;
                }
                blank @ (b' ' | b'\t') if !is_quoted => {
                    if !value.is_empty() {
                        value.push(blank);
                    }
                    continue;
                }
                b'"' => is_quoted = !is_quoted,
                b'\\' => match self.within_line() {
                    b'\n' => {}
                    b'n' => value.push(b'\n'),
                    b't' => value.push(b'\t'),
                    b'b' => value.push(0x08),
                    byte @ (b'\\' | b'"') => value.push(byte),
                    _ => return Err(NotValid),
                },
                byte => value.push(byte),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &[u8]) -> Option<Vec<String>> {
        let show = |one: Variable| {
            let name = one.name.escape_ascii().to_string();
            match one.value {
                Some(value) => format!("{name}={}", value.escape_ascii()),
                None => name,
            }
        };
        let all = variables(text).ok()?;
        Some(all.into_iter().map(show).collect())
    }

    #[test]
    fn variables_are_read_as_git_reads_them() {
        for (text, wanted) in [
            ("[core]\n\tPager = a b ; c", "core.pager=a b"),
            ("[CORE] PAGER=\"a # b\" # c", "core.pager=a # b"),
            ("[core]bare", "core.bare"),
            ("[core]\tbare =", "core.bare="),
            ("[core][user]name=x", "user.name=x"),
            (
                "[Remote \"Or.i]\\\"g\\in\"]URL=x",
                "remote.Or.i]\\\"gin.url=x",
            ),
            ("[remote.Origin]url=x", "remote.origin.url=x"),
            ("[remote \t \"o\"]url=x", "remote.o.url=x"),
            ("[a]b = c\\\nd", "a.b=cd"),
            ("[a]b = c\\\r\nd\r\n", "a.b=cd"),
            ("[a]b = \"c \" # \\\n", "a.b=c "),
            ("[a]b = \\t\\n\\b\\\\\\\"", "a.b=\\t\\n\\x08\\\\\\\""),
            ("\u{feff}[a]b=c", "a.b=c"),
            ("b=c", "b=c"),
            ("[a]b = c  d\t", "a.b=c  d"),
            ("[a]b = c\t d", "a.b=c\\t d"),
        ] {
            assert_eq!(shown(text.as_bytes()).unwrap(), [wanted], "{text:?}");
        }
        assert_eq!(shown(b"# [a]b=c\n; x\n\n").unwrap(), [""; 0]);
        assert_eq!(shown(b"[a]b=c # \\\n[d]e=f").unwrap(), ["a.b=c", "d.e=f"]);
    }

    const VALID: [&[u8]; 9] = [
        b"[CORE] PAGER=\"a # b\" # c",
        b"[core]bare",
        b"[core]\tbare =",
        b"[core][user]name=x",
        b"[Remote \"Or.i]\\\"g\\in\"]URL=x",
        b"[remote.Origin]url=x",
        b"[a]b = c\\\r\nd\r\n",
        b"\xef\xbb\xbf[a]b = \\t\\n\\\\\\\"",
        b"[a]b = c  d\t",
    ];

    /// What git refuses too.
    const NOT_VALID: [&[u8]; 13] = [
        b"[a",
        b"[a\nb]c=d",
        b"[a b]c=d",
        b"[a \"b]c=d",
        b"[a \"b\n\"]c=d",
        b"[a \"b\" ]c=d",
        b"[a]b c",
        b"[a]b = \"c",
        b"[a]b = \\c",
        b"[a]1 = c",
        b"[a]b_ = c",
        b"[a]\x0cb = c",
        b"=x",
    ];

    #[test]
    fn what_git_would_not_accept_is_not_valid() {
        let odd: [&[u8]; 5] = [
            b"[a]b\0 = c",
            b"[a]b = c\0d",
            b"[a]b = c\rd",
            b"[a]b = c\r",
            b"\xef\xbb[a]b=c",
        ];
        for text in NOT_VALID.iter().chain(&odd) {
            assert_eq!(shown(text), None, "{:?}", text.escape_ascii().to_string());
        }
        let long = [b"#".repeat(MAX_BYTES), b"\n".to_vec()].concat();
        assert_eq!(shown(&long), None);
    }

    /// Compares with the git of this machine.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test runs git")]
    fn git_itself_reads_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let of_git = |text: &[u8]| -> Option<Vec<u8>> {
            std::fs::write(&file, text).unwrap();
            let mut git = std::process::Command::new("git");
            git.args(["config", "--list", "-z", "--no-includes", "-f"]);
            let output = git
                .arg(&file)
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .output();
            let output = output.unwrap();
            output.status.success().then_some(output.stdout)
        };
        let of_haft = |text: &[u8]| -> Option<Vec<u8>> {
            let all = variables(text).ok()?.into_iter();
            let line = |one: Variable| match one.value {
                Some(value) => [one.name, b"\n".to_vec(), value, b"\0".to_vec()].concat(),
                None => [one.name, b"\0".to_vec()].concat(),
            };
            Some(all.flat_map(line).collect())
        };
        for text in VALID {
            assert_eq!(
                of_haft(text),
                of_git(text),
                "{:?}",
                text.escape_ascii().to_string()
            );
        }
        for text in NOT_VALID {
            assert_eq!(of_git(text), None, "{:?}", text.escape_ascii().to_string());
        }
        // Every text of a few pieces.
        let pieces: [&[u8]; 16] = [
            b"[a]",
            b"[a \"b\"]",
            b"[a.B]",
            b"k",
            b"=",
            b"v",
            b" ",
            b"\t",
            b"\n",
            b"\r\n",
            b"\"",
            b"\\",
            b"#",
            b"]",
            b".",
            b"-",
        ];
        let mut random = 1_u64;
        for _ in 0..400 {
            let mut text = b"[s]x=y\n".to_vec();
            for _ in 0..8 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let at = usize::try_from(random >> 40).unwrap() % pieces.len();
                text.extend(pieces[at]);
            }
            assert_eq!(
                of_haft(&text),
                of_git(&text),
                "{:?}",
                text.escape_ascii().to_string()
            );
        }
    }

    #[test]
    fn names_have_two_or_three_parts() {
        let parts = |name: &str| {
            let variable = Variable {
                name: name.into(),
                value: None,
            };
            let (section, subsection, key) = variable.parts();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_owned()).unwrap();
            (text(section), subsection.map(text), text(key))
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(parts("a.b"), ("a".into(), None, "b".into()));
        assert_eq!(parts("a.b.c.d"), ("a".into(), some("b.c"), "d".into()));
        assert_eq!(parts("a..d"), ("a".into(), some(""), "d".into()));
        assert_eq!(parts("d"), (String::new(), None, "d".into()));
    }
}

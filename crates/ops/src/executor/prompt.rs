//! Whether a last line without a newline asks somebody something.

/// How sure it is that an unfinished line is a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asks {
    /// It is something people are asked.
    Surely,
    /// It ends like a question; so do many progress messages.
    Maybe,
}

/// What is only ever said to a person.
const SURE: [&str; 21] = [
    "password",
    "passphrase",
    "passcode",
    "username",
    "login",
    "verification code",
    "one-time code",
    "pin",
    "otp",
    "(y/n)",
    "[y/n]",
    "y/n",
    "(yes/no)",
    "(yes/no/[fingerprint])",
    "yes/no",
    "[yes]",
    "[no]",
    "press enter",
    "press return",
    "press any key",
    "hit enter",
];

/// What people are asked, when the line says so.
pub(super) fn asks(line: &[u8]) -> Option<Asks> {
    let text = plain(line).to_lowercase();
    let ends_like_one = text.ends_with([':', '?', '>', ']', ')']);
    // "Press any key to continue . . ." ends like no question.
    let pressing = SURE.iter().skip(17).any(|phrase| text.contains(phrase));
    if pressing {
        return Some(Asks::Surely);
    }
    if !ends_like_one {
        return None;
    }
    let sure = SURE.iter().any(|phrase| {
        text.match_indices(phrase).any(|(at, _)| {
            let word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let (before, rest) = text.split_at_checked(at).unwrap_or_default();
            let after = rest.strip_prefix(phrase).unwrap_or_default();
            !word(before.chars().next_back()) && !word(after.chars().next())
        })
    });
    Some(if sure { Asks::Surely } else { Asks::Maybe })
}

/// The question as text: no escapes, no blanks around it.
pub(super) fn plain(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {}
            chars.next();
        } else if !c.is_control() {
            out.push(c);
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_told_from_progress() {
        for (line, expected) in [
            ("Password:", Some(Asks::Surely)),
            ("[sudo] password for root: ", Some(Asks::Surely)),
            ("\x1b[1mContinue? [Y/n]\x1b[0m ", Some(Asks::Surely)),
            ("Overwrite (yes/no)? ", Some(Asks::Surely)),
            ("Press any key to continue . . . ", Some(Asks::Surely)),
            ("Enter PIN: ", Some(Asks::Surely)),
            ("Pinging host: ", Some(Asks::Maybe)),
            ("What is your name? ", Some(Asks::Maybe)),
            (">>> ", Some(Asks::Maybe)),
            ("Downloading... ", None),
            ("42%", None),
            ("", None),
        ] {
            assert_eq!(asks(line.as_bytes()), expected, "{line:?}");
        }
        assert_eq!(plain(b"\x1b[31mPassword:\x1b[0m \x07"), "Password:");
    }
}

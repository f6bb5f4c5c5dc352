//! Recognising an unfinished line that asks the user something.

/// Texts that ask for a key, however the line ends: "Press any key to continue . . .".
const PRESSING: [&str; 4] = ["press enter", "press return", "press any key", "hit enter"];

/// Whether a line may be a question. Many progress messages look like one, and a question
/// may have been answered already, so the caller must also check whether a process is
/// waiting for input.
pub(super) fn asks(line: &[u8]) -> bool {
    let text = plain(line).to_lowercase();
    text.ends_with([':', '?', '>', ']', ')']) || PRESSING.iter().any(|phrase| text.contains(phrase))
}

/// Returns the question as plain text, without escape sequences and surrounding spaces.
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
    fn questions_are_distinguished_from_progress() {
        for (line, expected) in [
            ("Password:", true),
            ("[sudo] password for root: ", true),
            ("\x1b[1mContinue? [Y/n]\x1b[0m ", true),
            ("Overwrite (yes/no)? ", true),
            ("Press any key to continue . . . ", true),
            ("Enter PIN: ", true),
            ("What is your name? ", true),
            (">>> ", true),
            ("Downloading... ", false),
            ("42%", false),
            ("", false),
        ] {
            assert_eq!(asks(line.as_bytes()), expected, "{line:?}");
        }
        assert_eq!(plain(b"\x1b[31mPassword:\x1b[0m \x07"), "Password:");
    }
}

//! The file that `haft init` writes: every key that has an effect, with its
//! default, commented out. A file that sets defaults would override the
//! person's own settings for no reason.

use super::keys::{KEYS, Key, SECTION};

/// The text of a new `haft.yaml`.
pub(crate) fn template() -> String {
    let mut text = String::from(
        "## Settings of haft for this folder. Take the `# ` from a line to use it.\n\
         ## Flags and variables come first; `haft config show` says what is in force.\n\
         ## A file like this may only tighten what the person's own settings allow.\n\n",
    );
    text.push_str(&format!("# {SECTION}:\n"));
    for key in of_section(Some(SECTION)) {
        text.push_str(&line("  ", key));
    }
    for key in of_section(None) {
        text.push_str(&line("", key));
    }
    text
}

fn of_section(section: Option<&str>) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| key.parts().0 == section)
}

fn line(indent: &str, key: &Key) -> String {
    let setting = format!("{indent}{}: {}", key.parts().1, key.default);
    format!("# {setting:<26} # {}\n", key.about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fits_a_terminal_and_lists_every_key() {
        let text = template();
        for key in KEYS {
            assert!(
                text.contains(&format!("{}: ", key.parts().1)),
                "{}",
                key.name
            );
        }
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

//! The file that `haft init` writes: every key with its default, commented out. Active
//! defaults would override the user's own settings for no reason.

use super::keys::{KEYS, Key, SECTION};

/// Returns the text of a new `haft.yaml`.
pub(crate) fn template() -> String {
    let mut text = String::from(
        "## Settings of haft for this folder. Remove `# ` from a line to use it.\n\
         ## Flags and variables take precedence; `haft config show` shows the result.\n\
         ## A project's file can only tighten what the user's own settings allow.\n\n",
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
    fn the_template_fits_a_terminal_and_lists_every_key() {
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

//! The rule between the indentation of a text and that of the lines it is meant for.

/// One rule that turns the indentation of the text to find into that of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Relation {
    Same,
    /// The file has this in front of it, too.
    Deeper(String),
    /// The text has this in front of it, too.
    Shallower(String),
    /// The file has a tab for each of this many spaces.
    TabsInFile(usize),
    /// The text has a tab for each of this many spaces.
    TabsInText(usize),
}

/// Widths of a tab that are tried.
const WIDTHS: [usize; 4] = [4, 2, 8, 3];

/// Finds the rule for pairs of indentations, the text's first; `None` if no rule fits.
pub(super) fn relation(pairs: &[(&str, &str)]) -> Option<Relation> {
    if pairs.iter().all(|(text, file)| text == file) {
        return Some(Relation::Same);
    }
    let (text, file) = pairs.iter().find(|(text, file)| text != file)?;
    if let Some(more) = file.strip_suffix(text) {
        let fits = |(text, file): &(&str, &str)| file.strip_prefix(more) == Some(*text);
        if pairs.iter().all(fits) {
            return Some(Relation::Deeper(more.to_owned()));
        }
    }
    if let Some(more) = text.strip_suffix(file) {
        let fits = |(text, file): &(&str, &str)| text.strip_prefix(more) == Some(*file);
        if pairs.iter().all(fits) {
            return Some(Relation::Shallower(more.to_owned()));
        }
    }
    let fits = |width: usize, tabs: fn(&(&str, &str)) -> (String, String)| {
        pairs.iter().all(|pair| {
            let (tabbed, spaced) = tabs(pair);
            tabbed.replace('\t', &" ".repeat(width)) == spaced
        })
    };
    let in_file = |(text, file): &(&str, &str)| ((*file).to_owned(), (*text).to_owned());
    let in_text = |(text, file): &(&str, &str)| ((*text).to_owned(), (*file).to_owned());
    for width in WIDTHS {
        if fits(width, in_file) {
            return Some(Relation::TabsInFile(width));
        }
        if fits(width, in_text) {
            return Some(Relation::TabsInText(width));
        }
    }
    None
}

impl Relation {
    /// Turns an indentation of the new text into one of the file; `None` if the rule does
    /// not say how.
    pub(super) fn apply(&self, indent: &str) -> Option<String> {
        match self {
            Self::Same => Some(indent.to_owned()),
            Self::Deeper(more) => Some(format!("{more}{indent}")),
            Self::Shallower(more) => indent.strip_prefix(more.as_str()).map(str::to_owned),
            Self::TabsInFile(width) => {
                let even =
                    indent.len().is_multiple_of(*width) && indent.bytes().all(|byte| byte == b' ');
                even.then(|| "\t".repeat(indent.len() / width))
            }
            Self::TabsInText(width) => {
                let tabs = indent.bytes().all(|byte| byte == b'\t');
                tabs.then(|| " ".repeat(indent.len() * width))
            }
        }
    }

    /// Describes the repair.
    pub(super) fn note(&self) -> Option<String> {
        let amount = |text: &str| {
            crate::text::nearest::whitespace(text).unwrap_or_else(|| "nothing".to_owned())
        };
        Some(match self {
            Self::Same => return None,
            Self::Deeper(more) => format!("{} of indentation added", amount(more)),
            Self::Shallower(more) => format!("{} of indentation removed", amount(more)),
            Self::TabsInFile(width) => format!("{width} spaces of indentation replaced by 1 tab"),
            Self::TabsInText(width) => format!("1 tab of indentation replaced by {width} spaces"),
        })
    }
}

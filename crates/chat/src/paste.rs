//! Long pastes: the input line shows a short label, and the text takes its place when it is
//! sent.

/// A paste with more lines or characters is folded.
const MAX_LINES: usize = 8;
const MAX_CHARS: usize = 1000;

/// Folded pastes of the input line.
#[derive(Debug, Default)]
pub(crate) struct Pastes(Vec<(String, String)>);

impl Pastes {
    /// Returns what to insert for a paste: the text, or a label for it.
    pub(crate) fn fold(&mut self, text: &str) -> String {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let (lines, chars) = (text.lines().count(), text.chars().count());
        if lines <= MAX_LINES && chars <= MAX_CHARS {
            return text;
        }
        let what = match lines {
            0 | 1 => format!("{chars} characters"),
            lines => format!("{lines} lines"),
        };
        let mut label = format!("[pasted {what}]");
        let mut number = 2;
        while self.0.iter().any(|(known, _)| *known == label) {
            label = format!("[pasted {what}, {number}]");
            number += 1;
        }
        self.0.push((label.clone(), text));
        label
    }

    /// Puts the pastes in place of their labels, and forgets them.
    pub(crate) fn unfold(&mut self, text: &str) -> String {
        let pastes = std::mem::take(&mut self.0);
        // From the right place on, so that labels within a paste stay.
        let mut out = String::new();
        let mut rest = text;
        loop {
            let found = pastes.iter().filter_map(|(label, paste)| {
                Some((rest.find(label.as_str())?, label.len(), paste))
            });
            let Some((at, length, paste)) = found.min_by_key(|(at, ..)| *at) else {
                out.push_str(rest);
                return out;
            };
            out.push_str(rest.get(..at).unwrap_or_default());
            out.push_str(paste);
            rest = rest.get(at + length..).unwrap_or_default();
        }
    }

    /// Length of the label at the end of a text: it is deleted as a whole.
    pub(crate) fn label_before(&self, text: &str) -> Option<usize> {
        let mut labels = self.0.iter().map(|(label, _)| label);
        labels
            .find(|label| text.ends_with(label.as_str()))
            .map(String::len)
    }
}

#[cfg(test)]
mod tests {
    use super::Pastes;

    #[test]
    fn long_pastes_have_labels_until_they_are_sent() {
        let mut pastes = Pastes::default();
        assert_eq!(pastes.fold("a\r\nb"), "a\nb");
        let long = "row\n".repeat(212);
        let (one, two) = (
            pastes.fold(&long),
            pastes.fold(&long.replace("row", "[pasted 212 lines]")),
        );
        assert_eq!(
            (one.as_str(), two.as_str()),
            ("[pasted 212 lines]", "[pasted 212 lines, 2]")
        );
        assert_eq!(pastes.label_before("x [pasted 212 lines]"), Some(18));
        assert_eq!(pastes.label_before("x"), None);
        let text = pastes.unfold(&format!("see {one} and {two}."));
        let second = long.replace("row", "[pasted 212 lines]");
        assert_eq!(text, format!("see {long} and {second}."));
        assert_eq!(pastes.fold(&"x".repeat(2000)), "[pasted 2000 characters]");
    }
}

//! The output of a command, truncated for the model. The output may be larger than memory
//! allows; then all of it is already on disk.

use crate::Toolset;
use haft_ops::executor::Captured;
use haft_ops::spill::{Spill, StoredOutput};
use haft_ops::text::limit::{Cut, Keep, Limit, middle, middle_of};
use haft_ops::text::{decode, size, sniff};

/// Bytes needed at the start to tell text from binary data, and bytes kept at each end
/// beyond what is shown, so that the text does not start or end within a character.
const SPARE: usize = sniff::SAMPLE_BYTES;

/// Returns how many bytes of the start and end of an output must be in memory to truncate
/// it to `limit`.
pub(crate) fn ends_in_memory(limit: &Limit) -> (usize, usize) {
    match limit.keep {
        Keep::Head => (limit.bytes + SPARE, 0),
        Keep::Tail => (SPARE, limit.bytes + SPARE),
        Keep::Middle => (limit.bytes / 2 + SPARE, limit.bytes / 2 + SPARE),
    }
}

/// The part of an output that the model gets.
pub(crate) struct ShownOutput {
    /// The text shown, or a description if the output is binary.
    pub(crate) text: String,
    /// Note below the text if it was truncated.
    pub(crate) note: Option<String>,
    /// Path of the full output.
    pub(crate) path: Option<String>,
}

/// Truncates an output for the model.
pub(crate) fn captured(
    output: &Captured,
    limit: &Limit,
    toolset: &Toolset,
    spill: Option<&Spill>,
    call_id: &str,
) -> ShownOutput {
    let stored = output.spill.as_ref().map(|path| StoredOutput {
        path: spill.map_or_else(|| path.clone(), |spill| spill.name_of(path)),
        omitted: output.omitted,
    });
    let path = |stored: &Option<StoredOutput>| {
        stored
            .as_ref()
            .map(|stored| stored.path.to_string_lossy().into_owned())
    };
    let beginning = if output.head.is_empty() {
        &output.tail
    } else {
        &output.head
    };
    let is_whole = output.missing() == 0;
    if sniff::is_binary(beginning) {
        // Output that is not shown must be saved as well.
        let bytes = || [output.head.as_slice(), &output.tail].concat();
        let stored = match stored {
            None if is_whole => spill.and_then(|spill| spill.keep_bytes(call_id, &bytes()).ok()),
            stored => stored,
        };
        return binary(output, path(&stored));
    }
    let bytes = match limit.keep {
        Keep::Head if !is_whole => output.head.clone(),
        Keep::Tail if !is_whole => output.tail.clone(),
        _ => [output.head.as_slice(), &output.tail].concat(),
    };
    let text = decode::lossy(&bytes);
    let mut cut = limit.cut(&text);
    if is_whole && !cut.is_cut() {
        return ShownOutput {
            text: text.into_owned(),
            note: None,
            path: path(&stored),
        };
    }
    let stored = match stored {
        None if is_whole => spill.and_then(|spill| keep(spill, call_id, &bytes)),
        stored => stored,
    };
    if !is_whole {
        cut.total_bytes = usize::try_from(output.total_bytes).unwrap_or(usize::MAX);
        cut.total_lines = usize::try_from(output.total_lines).unwrap_or(usize::MAX);
    }
    let note = match &output.trouble {
        None => (toolset.cut_note)(&cut, limit.keep, stored.as_ref()),
        // A file that was cut off does not have the full output, whatever its name.
        Some(trouble) => {
            let part = path(&stored).map(|path| format!("; what there is: {path}"));
            let note = (toolset.cut_note)(&cut, limit.keep, None);
            format!(
                "[The full output is not on disk: {trouble}{}]\n{note}",
                part.unwrap_or_default()
            )
        }
    };
    ShownOutput {
        text: shown(output, limit, &cut, &text),
        note: Some(note),
        path: path(&stored),
    }
}

/// Saves the full output byte for byte, even if it is not valid UTF-8.
fn keep(spill: &Spill, name: &str, bytes: &[u8]) -> Option<StoredOutput> {
    match std::str::from_utf8(bytes) {
        Ok(text) => spill.keep(name, text).ok(),
        Err(_) => spill.keep_bytes(name, bytes).ok(),
    }
}

/// Returns the visible part of a truncated output.
fn shown(output: &Captured, limit: &Limit, cut: &Cut<'_>, text: &str) -> String {
    match limit.keep {
        Keep::Head | Keep::Tail => cut.kept.to_owned(),
        Keep::Middle if output.missing() == 0 => {
            middle(text, limit.bytes, Some(limit.lines)).into_owned()
        }
        Keep::Middle => {
            let (head, missing, tail) = decode::ends(&output.head, output.missing(), &output.tail);
            let lines = Some(limit.lines);
            middle_of(&head, missing, &tail, limit.bytes, lines)
        }
    }
}

/// The start of an output.
pub(crate) struct Beginning {
    /// The text, or a description if the output is binary.
    pub(crate) text: String,
    /// Whether there was more.
    pub(crate) is_cut: bool,
    /// Path of the full output.
    pub(crate) path: Option<String>,
    /// Reason why the file at `path` is incomplete.
    pub(crate) trouble: Option<String>,
}

/// Returns at most `most` bytes from the start of an output.
pub(crate) fn beginning(
    output: &Captured,
    most: usize,
    spill: Option<&Spill>,
    name: &str,
) -> Beginning {
    let path = output.spill.as_ref();
    let path = path.map(|path| spill.map_or_else(|| path.clone(), |spill| spill.name_of(path)));
    let path = path.map(|path| path.to_string_lossy().into_owned());
    let sample = if output.head.is_empty() {
        &output.tail
    } else {
        &output.head
    };
    if sniff::is_binary(sample) {
        // Output that is not shown must be saved as well.
        let bytes = || [output.head.as_slice(), &output.tail].concat();
        let path = match path {
            None if output.missing() == 0 => spill
                .and_then(|spill| spill.keep_bytes(name, &bytes()).ok())
                .map(|stored| stored.path.to_string_lossy().into_owned()),
            path => path,
        };
        let ShownOutput { text, path, .. } = binary(output, path);
        return Beginning {
            text,
            is_cut: false,
            path,
            trouble: output.trouble.clone(),
        };
    }
    let is_whole = output.missing() == 0;
    let mut bytes = output.head.clone();
    if is_whole {
        bytes.extend_from_slice(&output.tail);
    } else {
        bytes.truncate(bytes.len() - decode::unfinished(&bytes));
    }
    let text = decode::lossy(&bytes);
    let prefix = decode::prefix(&text, most);
    let is_cut = !is_whole || prefix.len() < text.len();
    let path = match path {
        None if is_cut && is_whole => spill
            .and_then(|spill| keep(spill, name, &bytes))
            .map(|stored| stored.path.to_string_lossy().into_owned()),
        path => path,
    };
    let trouble = match (&output.trouble, output.omitted) {
        (Some(trouble), _) => Some(trouble.clone()),
        (None, 0) => None,
        (None, omitted) => Some(format!(
            "the limit for saved outputs was reached: {} from the middle are missing",
            size::size(omitted)
        )),
    };
    Beginning {
        text: prefix.to_owned(),
        is_cut,
        path,
        trouble,
    }
}

fn binary(output: &Captured, path: Option<String>) -> ShownOutput {
    let size = size::size(output.total_bytes);
    let kind = sniff::kind_name(&output.head).map(|kind| format!(", {kind}"));
    let place = match &path {
        Some(path) => format!("saved to: {path}"),
        None => "it was not kept".to_owned(),
    };
    ShownOutput {
        text: format!(
            "[binary output, {size}{}, not shown; {place}]",
            kind.unwrap_or_default()
        ),
        note: None,
        path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(head: &[u8], tail: &[u8], total: u64) -> Captured {
        Captured {
            head: head.to_vec(),
            tail: tail.to_vec(),
            total_bytes: total,
            ..Captured::default()
        }
    }

    #[test]
    fn a_beginning_never_ends_within_a_character() {
        let whole = beginning(&captured(b"ab", b"cd", 4), 4, None, "x");
        assert_eq!((whole.text.as_str(), whole.is_cut), ("abcd", false));
        let split = beginning(&captured("a€".as_bytes(), b"", 4), 3, None, "x");
        assert_eq!((split.text.as_str(), split.is_cut), ("a", true));
        // The middle is not in memory, and the available part ends within a character.
        let part = beginning(&captured(&"a€€".as_bytes()[..5], b"z", 100), 5, None, "x");
        assert_eq!((part.text.as_str(), part.is_cut), ("a€", true));
        let binary = beginning(&captured(&[0; 4], b"", 4), 9, None, "x");
        assert!(
            binary.text.starts_with("[binary output, 4B"),
            "{}",
            binary.text
        );
        assert!(!binary.is_cut);
    }

    #[test]
    fn output_that_is_in_memory_but_not_shown_is_saved() {
        let folder = tempfile::tempdir().unwrap();
        let spill = Spill::new(folder.path().join("outputs"));
        let cut = beginning(
            &captured(b"abcdef", b"gh", 8),
            3,
            Some(&spill),
            "call-1_stdout",
        );
        assert_eq!(cut.text, "abc");
        let path = cut.path.unwrap();
        assert!(path.ends_with("outputs/call-1_stdout.txt"), "{path}");
        #[expect(clippy::disallowed_methods, reason = "a test looks at the disk itself")]
        let stored = std::fs::read_to_string(path).unwrap();
        assert_eq!(stored, "abcdefgh");
    }
}

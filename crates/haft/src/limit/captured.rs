//! What a command said, cut for a model. It may have said more than memory
//! holds; then the whole of it is on the disk already.

use crate::Toolset;
use haft_ops::executor::Captured;
use haft_ops::spill::{Kept, Spill};
use haft_ops::text::limit::{Cut, Keep, Limit, middle, middle_of};
use haft_ops::text::{decode, size, sniff};

/// How much of a beginning is needed to tell text from bytes, and of each end
/// more than is shown, so that what is shown begins and ends with a character.
const SPARE: usize = sniff::SAMPLE_BYTES;

/// How much of an output's beginning and end has to be in memory to be cut so.
pub(crate) fn held(limit: &Limit) -> (usize, usize) {
    match limit.keep {
        Keep::Head => (limit.bytes + SPARE, 0),
        Keep::Tail => (SPARE, limit.bytes + SPARE),
        Keep::Middle => (limit.bytes / 2 + SPARE, limit.bytes / 2 + SPARE),
    }
}

/// What a model gets of an output.
pub(crate) struct Said {
    /// What is shown of it, or its name when it is no text.
    pub(crate) text: String,
    /// What stands under it when it was cut.
    pub(crate) note: Option<String>,
    /// Where the whole of it is.
    pub(crate) path: Option<String>,
}

/// Cuts an output to what a model is to get of it.
pub(crate) fn captured(
    output: &Captured,
    limit: &Limit,
    toolset: &Toolset,
    spill: Option<&Spill>,
    call_id: &str,
) -> Said {
    let kept = output.spill.as_ref().map(|path| Kept {
        path: spill.map_or_else(|| path.clone(), |spill| spill.name_of(path)),
        omitted: output.omitted,
    });
    let path = |kept: &Option<Kept>| {
        kept.as_ref()
            .map(|kept| kept.path.to_string_lossy().into_owned())
    };
    let beginning = if output.head.is_empty() {
        &output.tail
    } else {
        &output.head
    };
    let is_whole = output.missing() == 0;
    if sniff::is_binary(beginning) {
        // Not shown is as good as cut: the whole of it is kept.
        let bytes = || [output.head.as_slice(), &output.tail].concat();
        let kept = match kept {
            None if is_whole => spill.and_then(|spill| spill.keep_bytes(call_id, &bytes()).ok()),
            kept => kept,
        };
        return binary(output, path(&kept));
    }
    let bytes = match limit.keep {
        Keep::Head if !is_whole => output.head.clone(),
        Keep::Tail if !is_whole => output.tail.clone(),
        _ => [output.head.as_slice(), &output.tail].concat(),
    };
    let text = decode::lossy(&bytes);
    let mut cut = limit.cut(&text);
    if is_whole && !cut.is_cut() {
        return Said {
            text: text.into_owned(),
            note: None,
            path: path(&kept),
        };
    }
    let kept = match kept {
        None if is_whole => spill.and_then(|spill| keep(spill, call_id, &bytes)),
        kept => kept,
    };
    if !is_whole {
        cut.total_bytes = usize::try_from(output.total_bytes).unwrap_or(usize::MAX);
        cut.total_lines = usize::try_from(output.total_lines).unwrap_or(usize::MAX);
    }
    let note = match &output.trouble {
        None => (toolset.cut_note)(&cut, limit.keep, kept.as_ref()),
        // A file that ends early is not the whole, whatever its name.
        Some(trouble) => {
            let part = path(&kept).map(|path| format!("; what there is: {path}"));
            let note = (toolset.cut_note)(&cut, limit.keep, None);
            format!(
                "[The output is not on the disk as a whole: {trouble}{}]\n{note}",
                part.unwrap_or_default()
            )
        }
    };
    Said {
        text: shown(output, limit, &cut, &text),
        note: Some(note),
        path: path(&kept),
    }
}

/// Keeps the full output byte for byte, also where it is not valid UTF-8.
fn keep(spill: &Spill, name: &str, bytes: &[u8]) -> Option<Kept> {
    match std::str::from_utf8(bytes) {
        Ok(text) => spill.keep(name, text).ok(),
        Err(_) => spill.keep_bytes(name, bytes).ok(),
    }
}

/// What is left of an output that is cut.
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

/// The beginning of an output.
pub(crate) struct Beginning {
    /// The text, or the output's name when it is no text.
    pub(crate) text: String,
    /// Whether there was more.
    pub(crate) is_cut: bool,
    /// Where the whole of it is.
    pub(crate) path: Option<String>,
    /// Why that file is not the whole.
    pub(crate) trouble: Option<String>,
}

/// The first bytes of an output, at most so many.
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
        // Not shown is as good as cut: the whole of it is kept.
        let bytes = || [output.head.as_slice(), &output.tail].concat();
        let path = match path {
            None if output.missing() == 0 => spill
                .and_then(|spill| spill.keep_bytes(name, &bytes()).ok())
                .map(|kept| kept.path.to_string_lossy().into_owned()),
            path => path,
        };
        let Said { text, path, .. } = binary(output, path);
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
    let kept = decode::prefix(&text, most);
    let is_cut = !is_whole || kept.len() < text.len();
    let path = match path {
        None if is_cut && is_whole => spill
            .and_then(|spill| keep(spill, name, &bytes))
            .map(|kept| kept.path.to_string_lossy().into_owned()),
        path => path,
    };
    let trouble = match (&output.trouble, output.omitted) {
        (Some(trouble), _) => Some(trouble.clone()),
        (None, 0) => None,
        (None, omitted) => Some(format!(
            "the limit for kept outputs was reached: {} from the middle are gone",
            size::size(omitted)
        )),
    };
    Beginning {
        text: kept.to_owned(),
        is_cut,
        path,
        trouble,
    }
}

fn binary(output: &Captured, path: Option<String>) -> Said {
    let size = size::size(output.total_bytes);
    let kind = sniff::kind_name(&output.head).map(|kind| format!(", {kind}"));
    let place = match &path {
        Some(path) => format!("saved to: {path}"),
        None => "it was not kept".to_owned(),
    };
    Said {
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
    fn a_beginning_is_whole_or_ends_with_a_whole_character() {
        let whole = beginning(&captured(b"ab", b"cd", 4), 4, None, "x");
        assert_eq!((whole.text.as_str(), whole.is_cut), ("abcd", false));
        let split = beginning(&captured("a€".as_bytes(), b"", 4), 3, None, "x");
        assert_eq!((split.text.as_str(), split.is_cut), ("a", true));
        // The middle is not in memory, and what is ends within a character.
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
    fn what_memory_holds_and_a_reply_does_not_is_kept() {
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
        let kept = std::fs::read_to_string(path).unwrap();
        assert_eq!(kept, "abcdefgh");
    }
}

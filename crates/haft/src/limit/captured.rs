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
        path: path.clone(),
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
    if sniff::is_binary_output(beginning) {
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
        None if is_whole => spill.and_then(|spill| spill.keep(call_id, &text).ok()),
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

//! What a command said, cut for a model. It may have said more than memory
//! holds; then the whole of it is on the disk already.

use crate::Toolset;
use haft_ops::executor::Captured;
use haft_ops::spill::{Kept, Spill};
use haft_ops::text::limit::{Keep, Limit};
use haft_ops::text::{decode, size, sniff};

/// How much of a beginning is needed to tell text from bytes.
pub(crate) const HEAD: usize = sniff::SAMPLE_BYTES;

/// What a model gets of an output.
pub(crate) struct Said {
    /// Its end, or its name when it is no text.
    pub(crate) text: String,
    /// What stands under it when it was cut.
    pub(crate) note: Option<String>,
    /// Where the whole of it is.
    pub(crate) path: Option<String>,
}

/// Cuts an output to what the toolset gives a model, keeping its end.
pub(crate) fn captured(
    output: &Captured,
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
    if sniff::is_binary(beginning) {
        return binary(output, path(&kept));
    }
    let is_whole = output.missing() == 0;
    let bytes = if is_whole {
        [output.head.as_slice(), &output.tail].concat()
    } else {
        output.tail.clone()
    };
    let text = decode::lossy(&bytes);
    let limit = Limit {
        keep: Keep::Tail,
        ..toolset.limit
    };
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
        None => (toolset.cut_note)(&cut, Keep::Tail, kept.as_ref()),
        // A file that ends early is not the whole, whatever its name.
        Some(trouble) => {
            let part = path(&kept).map(|path| format!("; what there is: {path}"));
            let note = (toolset.cut_note)(&cut, Keep::Tail, None);
            format!(
                "[The output is not on the disk as a whole: {trouble}{}]\n{note}",
                part.unwrap_or_default()
            )
        }
    };
    Said {
        text: cut.kept.to_owned(),
        note: Some(note),
        path: path(&kept),
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
    let path = path.map(|path| path.to_string_lossy().into_owned());
    let sample = if output.head.is_empty() {
        &output.tail
    } else {
        &output.head
    };
    if sniff::is_binary(sample.get(..HEAD).unwrap_or(sample)) {
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
            .and_then(|spill| spill.keep(name, &text).ok())
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
        None => "redirect it to a file to keep it".to_owned(),
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

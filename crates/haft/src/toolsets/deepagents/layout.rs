//! Lines of the prompt about where files are, and which of them commands see.

use crate::toolset::{CommandPlace, Layout};
use haft_ops::text::decode::visible;
use std::path::Path;

/// Returns one line about paths, and one or more about commands.
pub(super) fn lines(layout: &Layout<'_>) -> Vec<String> {
    let begin = match layout.scope.has_work_dir() {
        true => format!(
            ", and {} is the work folder",
            shown(&layout.scope.named_work_dir())
        ),
        false => " and begin with /".to_owned(),
    };
    let mut lines = vec![format!(
        "- Paths are absolute{begin}. There is no `..` and no `~`."
    )];
    if !layout.tools.contains(&"execute") {
        return lines;
    }
    match layout.commands {
        CommandPlace::Nowhere => {}
        CommandPlace::Elsewhere => lines.push(
            "- execute runs commands on another machine, which does not have the files of the other tools."
                .to_owned(),
        ),
        CommandPlace::Here => lines.extend(here(layout)),
    }
    lines
}

fn here(layout: &Layout<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut on_disk, mut others, mut hidden) = (None, Vec::new(), Vec::new());
    for (place, folder) in layout.scope.parts() {
        match folder {
            None => hidden.push(shown(&place)),
            Some(folder) if folder == layout.scope.work_dir() => on_disk = Some((place, folder)),
            Some(folder) => others.push((place, folder)),
        }
    }
    match on_disk {
        Some((place, folder)) if place == folder => lines.push(format!(
            "- execute starts in {}; paths mean the same in a command.",
            shown(&place)
        )),
        Some((place, _)) => lines.push(format!(
            "- execute starts in the folder that the other tools call {}: their {} is src/a.py in a command.",
            shown(&place),
            shown(&place.join("src/a.py"))
        )),
        None => lines.push(
            "- execute starts in the work folder, on the disk of this machine. The other tools do not see it."
                .to_owned(),
        ),
    }
    for (place, folder) in others.iter().filter(|(place, folder)| place != folder) {
        lines.push(format!(
            "- What the other tools call {} is {} in a command.",
            shown(place),
            shown(folder)
        ));
    }
    if !hidden.is_empty() {
        lines.push(format!(
            "- Files below {} are not on the disk: commands cannot see them. Pass a command what it needs as text, and save what it prints with a file tool.",
            hidden.join(", ")
        ));
    }
    lines
}

/// Formats a path on one line.
fn shown(path: &Path) -> String {
    visible(&path.to_string_lossy()).replace('\n', "\\n")
}

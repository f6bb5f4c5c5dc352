//! Variables and placeholders in the texts of other programs, in haft's spelling.

use super::draft::Draft;
use super::secrets;
use super::servers::Spelling;

/// The spelling of the work folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// As `.` where a path begins: haft reads it as a path.
    Dot,
    /// As the variable for the folder that haft is started in.
    Variable,
}

/// Placeholders for the folder that is worked in: of Claude Code, of editors, of Gemini CLI.
const WORK: [&str; 5] = [
    "CLAUDE_PROJECT_DIR",
    "workspaceFolder",
    "workspaceRoot",
    "workspacePath",
    "cwd",
];

/// Placeholders that have no counterpart, and what to write instead.
const OTHERS: [(&str, &str); 9] = [
    ("CLAUDE_PLUGIN_ROOT", "the folder of the plugin"),
    ("extensionPath", "the folder of the extension"),
    ("workspaceFolderBasename", "the name of the work folder"),
    ("execPath", "the path of the program"),
    ("file", "the path of the file"),
    ("fileDirname", "the folder of the file"),
    ("fileWorkspaceFolder", "the folder of the file"),
    ("relativeFile", "the path of the file"),
    ("selectedText", "the text"),
];

/// A text with its variables in haft's spelling.
pub(super) fn references(
    draft: &mut Draft,
    what: &str,
    text: &str,
    spelling: Spelling,
    work: Work,
) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['$', '{']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let braced = from
            .strip_prefix("${")
            .or_else(|| {
                let inner = from.strip_prefix('{')?;
                let is_reference = inner.starts_with("env:") || inner.starts_with("file:");
                (spelling == Spelling::Opencode && is_reference).then_some(inner)
            })
            .and_then(|inner| inner.split_once('}'));
        let bare = from
            .strip_prefix('$')
            .filter(|_| spelling == Spelling::Gemini);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some((inner, after)) = braced {
            let begins_path = (out.is_empty() || out.ends_with('='))
                && (after.is_empty() || after.starts_with(['/', '\\']) || after.starts_with("${"));
            let work = match begins_path {
                true => work,
                false => Work::Variable,
            };
            match reference(draft, what, inner, spelling, work) {
                Some(reference) => out.push_str(&reference),
                None => out.push_str(from.strip_suffix(after).unwrap_or_default()),
            }
            rest = after;
        } else if let Some(name) = bare.filter(|name| name.starts_with(is_word)) {
            let end = name.find(|c: char| !is_word(c)).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            out.push_str(&draft.needs(name));
            rest = after;
        } else {
            let mut chars = from.chars();
            out.extend(chars.next());
            rest = chars.as_str();
        }
    }
    out.push_str(rest);
    out
}

/// Translates the text between the braces of a reference.
fn reference(
    draft: &mut Draft,
    what: &str,
    inner: &str,
    spelling: Spelling,
    work: Work,
) -> Option<String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let shown = match spelling {
        Spelling::Opencode => format!("{what}, {{{inner}}}"),
        _ => format!("{what}, ${{{inner}}}"),
    };
    let inner = match inner.strip_prefix("env:") {
        Some(variable) => variable,
        None => match placeholder(draft, &shown, inner, work) {
            Some(written) => return Some(written),
            None => inner,
        },
    };
    if let Some((name, _)) = inner.split_once(":-").filter(|(name, _)| is_name(name)) {
        draft.left(
            &format!("{what}, the default of {name}"),
            format!("haft has no defaults for variables; set {name}"),
        );
        return Some(draft.needs(name));
    }
    if is_name(inner) {
        return Some(draft.needs(inner));
    }
    let (kind, name) = inner.split_once(':')?;
    match kind {
        "input" | "file" => {
            let variable = secrets::variable(&[name]);
            draft.left(
                &shown,
                format!("haft does not ask for values or read them from files; set the variable {variable}"),
            );
            Some(draft.needs(&variable))
        }
        // Of an editor: its settings, its commands, one of several folders.
        "config" | "command" | "workspaceFolder" => {
            let variable = secrets::variable(&[&snake(kind), name]);
            draft.left(
                &shown,
                format!("haft has no such placeholder; write the value, or set the variable {variable} to it"),
            );
            Some(draft.needs(&variable))
        }
        _ => None,
    }
}

/// Translates a placeholder, which is no variable.
fn placeholder(draft: &mut Draft, shown: &str, inner: &str, work: Work) -> Option<String> {
    // Claude Code puts the value in place of a variable that is not set.
    let plain = inner.split_once(":-").map_or(inner, |(name, _)| name);
    if WORK.contains(&plain) {
        return Some(match work {
            Work::Dot => {
                draft.same(shown, "`.`, the folder of haft.yaml");
                ".".to_owned()
            }
            Work::Variable => {
                draft.same(shown, "`${PWD}`, the folder that haft is started in");
                "${PWD}".to_owned()
            }
        });
    }
    match plain {
        "userHome" => return Some("${HOME}".to_owned()),
        "pathSeparator" | "/" => return Some("/".to_owned()),
        _ => {}
    }
    if let Some((_, instead)) = OTHERS.iter().find(|(name, _)| *name == plain) {
        let variable = secrets::variable(&[&snake(plain)]);
        draft.left(
            shown,
            format!("haft has no such placeholder; write {instead}, or set the variable {variable} to it"),
        );
        return Some(draft.needs(&variable));
    }
    None
}

/// `workspaceFolder` as `workspace_folder`.
fn snake(name: &str) -> String {
    let mut out = String::new();
    let mut before = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && before.is_ascii_lowercase() {
            out.push('_');
        }
        out.push(c);
        before = c;
    }
    out
}

//! Converts variables and placeholders to haft's syntax.

use crate::draft::Draft;
use crate::secrets;
use crate::servers::Dialect;

/// How to write the work folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkFolder {
    /// As `.` at the start of a path, which haft resolves.
    Dot,
    /// As the variable for the folder haft is started in.
    Variable,
}

/// Placeholders for the work folder in Claude Code, editors and Gemini CLI.
const WORK: [&str; 5] = [
    "CLAUDE_PROJECT_DIR",
    "workspaceFolder",
    "workspaceRoot",
    "workspacePath",
    "cwd",
];

/// Placeholders without a counterpart, and what to write instead.
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

/// Returns a text with variables in haft's syntax.
pub(crate) fn references(
    draft: &mut Draft,
    what: &str,
    text: &str,
    dialect: Dialect,
    work: WorkFolder,
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
                (dialect == Dialect::Opencode && is_reference).then_some(inner)
            })
            .and_then(|inner| inner.split_once('}'));
        let bare = from
            .strip_prefix('$')
            .filter(|_| dialect == Dialect::Gemini);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if let Some((inner, after)) = braced {
            let begins_path = (out.is_empty() || out.ends_with('='))
                && (after.is_empty() || after.starts_with(['/', '\\']) || after.starts_with("${"));
            let work = match begins_path {
                true => work,
                false => WorkFolder::Variable,
            };
            match reference(draft, what, inner, dialect, work) {
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

/// Converts the text between the braces of a reference.
fn reference(
    draft: &mut Draft,
    what: &str,
    inner: &str,
    dialect: Dialect,
    work: WorkFolder,
) -> Option<String> {
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    let shown = match dialect {
        Dialect::Opencode => format!("{what}, {{{inner}}}"),
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
        draft.skip(
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
            draft.skip(
                &shown,
                format!("haft does not prompt for values or read them from files; set variable {variable}"),
            );
            Some(draft.needs(&variable))
        }
        // Editor settings, editor commands, or one of several folders.
        "config" | "command" | "workspaceFolder" => {
            let variable = secrets::variable(&[&snake(kind), name]);
            draft.skip(
                &shown,
                format!("haft has no such placeholder; write the value, or set variable {variable} to it"),
            );
            Some(draft.needs(&variable))
        }
        _ => None,
    }
}

/// Converts a placeholder; `None` if it is a variable.
fn placeholder(draft: &mut Draft, shown: &str, inner: &str, work: WorkFolder) -> Option<String> {
    // In Claude Code `:-` precedes the default value.
    let plain = inner.split_once(":-").map_or(inner, |(name, _)| name);
    if WORK.contains(&plain) {
        return Some(match work {
            WorkFolder::Dot => {
                draft.same(shown, "`.`, the folder of haft.yaml");
                ".".to_owned()
            }
            WorkFolder::Variable => {
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
        draft.skip(
            shown,
            format!(
                "haft has no such placeholder; write {instead}, or set variable {variable} to it"
            ),
        );
        return Some(draft.needs(&variable));
    }
    None
}

/// Converts `workspaceFolder` to `workspace_folder`.
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

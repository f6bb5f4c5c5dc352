//! Changing the user's own `haft.yaml` as text, so that comments and layout stay.

use crate::environment::Environment;
use crate::failure::Failure;
use crate::flags::Flags;
use crate::read;
use crate::sources::FILE;
use haft::ops::private;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The user's own file, which may not exist yet.
#[derive(Debug, Clone)]
pub(crate) struct OwnFile(pub(crate) PathBuf);

impl OwnFile {
    /// Returns the file named with `--config`, or else the user's own; `None` if there is no
    /// config folder.
    pub(crate) fn find(flags: &Flags, environment: &Environment) -> Option<Self> {
        let named = flags.config.clone();
        let named = named.or_else(|| environment.variable("HAFT_CONFIG").map(PathBuf::from));
        let file = match named {
            Some(named) => std::path::absolute(named).ok()?,
            None => environment.folders().config?.join(FILE),
        };
        Some(Self(file))
    }

    /// Returns its name in messages.
    pub(crate) fn shown(&self) -> String {
        self.0.display().to_string()
    }

    /// Replaces the text with what `edit` makes of it; `None` leaves it.
    pub(crate) fn edit(
        &self,
        edit: impl FnOnce(&str) -> Result<Option<String>, Failure>,
    ) -> Result<(), Failure> {
        edit_file(&self.0, edit)
    }
}

/// Replaces the text of a settings file with what `edit` makes of it; `None` leaves it. A file
/// that does not exist is empty.
///
/// # Errors
/// The file cannot be read or written, or `edit` has failed.
#[expect(
    clippy::disallowed_methods,
    reason = "the user's own file, outside every scope"
)]
pub fn edit_file<E: From<Failure>>(
    path: &Path,
    edit: impl FnOnce(&str) -> Result<Option<String>, E>,
) -> Result<(), E> {
    // A file that is a link stays one.
    let file = haft::ops::scope::real(path).unwrap_or_else(|| path.to_owned());
    let shown = path.display().to_string();
    let fail = |error: std::io::Error| Failure::failed(format!("cannot write {shown}: {error}"));
    let folder = file.parent().unwrap_or(Path::new("/"));
    if !folder.is_dir() {
        private::folder(folder).map_err(fail)?;
    }
    // Locked, so that two processes cannot overwrite each other's changes.
    let folder_handle = std::fs::File::open(folder).map_err(fail)?;
    folder_handle.lock().map_err(fail)?;
    let old = read::read(&file, &shown, read::Links::Followed)?;
    let mode = old.is_some().then(|| std::fs::metadata(&file)).transpose();
    let mode = mode.map_err(fail)?.map(|facts| facts.permissions());
    let Some(new) = edit(&old.unwrap_or_default())? else {
        return Ok(());
    };
    let replace = || -> std::io::Result<()> {
        let mut temporary = tempfile::Builder::new()
            .prefix(".haft-")
            .suffix(".tmp")
            .tempfile_in(folder)?;
        temporary.write_all(new.as_bytes())?;
        if let Some(mode) = mode {
            temporary.as_file().set_permissions(mode)?;
        }
        temporary.as_file().sync_all()?;
        temporary.persist(&file)?;
        folder_handle.sync_all()
    };
    Ok(replace().map_err(fail)?)
}

/// Form of the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `- ITEM` on each line, or `[ITEM, …]`.
    List,
    /// `NAME: VALUE` on each line, or `{ NAME: VALUE, … }`.
    Map,
}

impl Form {
    fn brackets(self) -> (char, &'static str) {
        match self {
            Self::List => ('[', "[]"),
            Self::Map => ('{', "{}"),
        }
    }

    /// Formats items, one a line.
    fn lines(self, items: &[String], indent: &str, end: &str) -> String {
        let mark = match self {
            Self::List => "- ",
            Self::Map => "",
        };
        let lines = items
            .iter()
            .map(|item| format!("{indent}{mark}{item}{end}"));
        lines.collect()
    }

    /// Returns the indentation of the items that follow the line of the key.
    fn indent(self, first: Option<&String>) -> String {
        let usual = "  ".to_owned();
        let Some(line) = first else {
            return usual;
        };
        let text = line.trim_start();
        let indent = line.get(..line.len() - text.len()).unwrap_or_default();
        match self {
            Self::List if text.starts_with('-') => indent.to_owned(),
            Self::Map if !indent.is_empty() => indent.to_owned(),
            _ => usual,
        }
    }
}

/// Inserts items as the first ones of a key at the top level; `None` if the text has an
/// unusual form.
pub(crate) fn with_items(text: &str, key: &str, items: &[String], form: Form) -> Option<String> {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let is_key = |line: &String| {
        line.strip_prefix(key)
            .is_some_and(|rest| rest.trim_start().starts_with(':'))
    };
    let Some(at) = lines.iter().position(is_key) else {
        let mut out = text.to_owned();
        if !out.is_empty() && !out.ends_with('\n') {
            out.push('\n');
        }
        if !out.trim().is_empty() {
            out.push('\n');
        }
        out.push_str(&format!("{key}:\n{}", form.lines(items, "  ", "\n")));
        return Some(out);
    };
    let line = lines.get(at)?.clone();
    let (key, rest) = line.split_once(':')?;
    let end = match line.ends_with("\r\n") {
        true => "\r\n",
        false => "\n",
    };
    let value = rest.split(" #").next().unwrap_or_default().trim();
    if value.is_empty() || value.starts_with('#') {
        let mut next = lines.iter().skip(at + 1);
        let first = next.find(|line| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        let indent = form.indent(first);
        let has_end = line.ends_with('\n');
        let inserted = form.lines(items, &indent, end);
        lines.insert(
            at + 1,
            if has_end {
                inserted
            } else {
                format!("{end}{inserted}")
            },
        );
        return Some(lines.concat());
    }
    let (open, empty) = form.brackets();
    if value == empty {
        let comment = rest.trim().strip_prefix(empty).unwrap_or_default();
        let comment = comment.trim_end();
        let line = format!("{key}:{comment}{end}{}", form.lines(items, "  ", end));
        *lines.get_mut(at)? = line;
        return Some(lines.concat());
    }
    let inner = rest.trim_start().strip_prefix(open)?;
    let inner = inner.trim_start();
    *lines.get_mut(at)? = format!("{key}: {open}{}, {inner}", items.join(", "));
    Some(lines.concat())
}

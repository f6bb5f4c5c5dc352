//! The tasks: correct edits of sources written for this purpose, in several languages and
//! encodings. The same every time.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// A correct edit of a file.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) before: Vec<u8>,
    /// The text as a model sees it, with LF line endings.
    pub(crate) view: String,
    pub(crate) old: String,
    pub(crate) new: String,
    pub(crate) after: Vec<u8>,
    /// First and last line of the old text, counted from 1.
    pub(crate) place: (usize, usize),
    pub(crate) encoding: Encoding,
}

/// Encoding and line endings of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    CrLf,
    BomCrLf,
    Latin1,
    Open,
    Decomposed,
}

const SOURCES: &[(&str, &str, Encoding)] = &[
    (
        "src/cache.rs",
        include_str!("../sources/cache.rs.txt"),
        Encoding::Utf8,
    ),
    (
        "orders.py",
        include_str!("../sources/orders.py.txt"),
        Encoding::Utf8,
    ),
    (
        "web/client.ts",
        include_str!("../sources/client.ts.txt"),
        Encoding::Utf8,
    ),
    (
        "queue/queue.go",
        include_str!("../sources/queue.go.txt"),
        Encoding::Utf8,
    ),
    (
        "docs/guide.md",
        include_str!("../sources/guide.md.txt"),
        Encoding::Utf8,
    ),
    (
        "deploy.yaml",
        include_str!("../sources/deploy.yaml.txt"),
        Encoding::Utf8,
    ),
    (
        "Makefile",
        include_str!("../sources/Makefile.txt"),
        Encoding::Utf8,
    ),
    (
        "Invoice.cs",
        include_str!("../sources/Invoice.cs.txt"),
        Encoding::BomCrLf,
    ),
    (
        "backup.sh",
        include_str!("../sources/backup.sh.txt"),
        Encoding::Open,
    ),
    (
        "letters.txt",
        include_str!("../sources/letters.txt.txt"),
        Encoding::Utf8,
    ),
    (
        "decomposed.txt",
        include_str!("../sources/letters.txt.txt"),
        Encoding::Decomposed,
    ),
    (
        "page.html",
        include_str!("../sources/page.html.txt"),
        Encoding::Utf8,
    ),
    (
        "schema.sql",
        include_str!("../sources/schema.sql.txt"),
        Encoding::CrLf,
    ),
    (
        "src/Handlers.java",
        include_str!("../sources/Handlers.java.txt"),
        Encoding::Utf8,
    ),
    (
        "window.c",
        include_str!("../sources/window.c.txt"),
        Encoding::Latin1,
    ),
    (
        "package.json",
        include_str!("../sources/package.json.txt"),
        Encoding::Open,
    ),
];

/// Shapes of edits that are made in every source.
const SHAPES: usize = 12;

impl Encoding {
    /// Encodes a text with LF line endings.
    pub(crate) fn encode(self, text: &str) -> Vec<u8> {
        match self {
            Self::Utf8 | Self::Open | Self::Decomposed => text.as_bytes().to_vec(),
            Self::CrLf => text.replace('\n', "\r\n").into_bytes(),
            Self::BomCrLf => format!("\u{feff}{}", text.replace('\n', "\r\n")).into_bytes(),
            Self::Latin1 => text
                .chars()
                .map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'))
                .collect(),
        }
    }
}

/// Returns all tasks.
pub(crate) fn all() -> Vec<Task> {
    let mut tasks = Vec::new();
    for (index, (path, text, encoding)) in SOURCES.iter().enumerate() {
        let view = match encoding {
            Encoding::Open => text.trim_end_matches('\n').to_owned(),
            Encoding::Decomposed => DecomposingNormalizerBorrowed::new_nfd()
                .normalize(text)
                .into_owned(),
            _ => (*text).to_owned(),
        };
        for shape in 0..SHAPES {
            if let Some(task) = task(path, &view, *encoding, index, shape) {
                tasks.push(task);
            }
        }
    }
    tasks
}

fn task(path: &str, view: &str, encoding: Encoding, source: usize, shape: usize) -> Option<Task> {
    let lines: Vec<&str> = view.lines().collect();
    let length = [1, 1, 3, 5, 2, 3, 4, 5, 8, 3, 3, 2].get(shape).copied()?;
    let from = (shape * 7 + source * 3) % lines.len();
    (0..lines.len()).find_map(|step| {
        let start = (from + step) % lines.len();
        let block = lines.get(start..start + length)?;
        let (old, new) = edit(block, shape)?;
        let blank_edge = [block.first(), block.last()]
            .iter()
            .any(|line| line.is_none_or(|line| line.trim().len() < 4));
        let unclear = blank_edge
            || view.matches(&old).count() != 1
            || old == new
            || (encoding == Encoding::Latin1 && !old.is_ascii());
        if unclear {
            return None;
        }
        Some(Task {
            name: format!("{path}/{shape}"),
            path: path.to_owned(),
            before: encoding.encode(view),
            view: view.to_owned(),
            after: encoding.encode(&view.replacen(&old, &new, 1)),
            old,
            new,
            place: (start + 1, start + length),
            encoding,
        })
    })
}

/// Returns old and new text of an edit of this shape.
fn edit(block: &[&str], shape: usize) -> Option<(String, String)> {
    let own = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| (*line).to_owned())
            .collect::<Vec<_>>()
    };
    let mut new = own(block);
    let old = block.join("\n");
    match shape {
        // A part of a line.
        1 => {
            let line = block.first()?.trim();
            let words: Vec<&str> = line.split(' ').collect();
            if words.len() < 3 {
                return None;
            }
            let part = words.get(..words.len() - 1)?.join(" ");
            return Some((part.clone(), changed(&part)?));
        }
        // Lines added after the first, at the end, and with more indentation.
        4 => {
            let first = block.first()?;
            new.insert(1, changed(first)?);
        }
        5 => new.push(changed(block.last()?)?),
        10 => {
            let line = block.get(1)?;
            let tabs = block.iter().any(|line| line.starts_with('\t'));
            let unit = if tabs { "\t" } else { "    " };
            new.insert(2, format!("{unit}{}", changed(line)?));
            new.insert(3, format!("{unit}{}", changed(&changed(line)?)?));
        }
        // A line removed.
        6 => drop(new.remove(2)),
        // Two lines at once; two lines apart from each other.
        7 => {
            for at in [2, 3] {
                let line = new.get_mut(at)?;
                *line = changed(line)?;
            }
        }
        8 => {
            for at in [1, 6] {
                let line = new.get_mut(at)?;
                *line = changed(line)?;
            }
        }
        // From the first letter of a line on.
        9 => {
            let line = new.get_mut(1)?;
            *line = changed(line)?;
            let indent = old.len() - old.trim_start().len();
            let cut = |text: &str| text.get(indent..).map(str::to_owned);
            return Some((cut(&old)?, cut(&new.join("\n"))?));
        }
        // The last line; complete lines with their newline.
        11 => {
            let line = new.last_mut()?;
            *line = changed(line)?;
            return Some((format!("{old}\n"), format!("{}\n", new.join("\n"))));
        }
        _ => {
            let line = new.get_mut(block.len() / 2)?;
            *line = changed(line)?;
        }
    }
    Some((old, new.join("\n")))
}

/// Changes the longest word of a line.
fn changed(line: &str) -> Option<String> {
    let word = line
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|word| word.len() > 2)
        .max_by_key(|word| word.len())?;
    // Not in the middle of a word with other letters.
    Some(line.replacen(word, &format!("{word}Next"), 1))
}

//! Parses a page into sections of steps.

/// Languages of blocks that are not part of a transcript.
pub(super) const LANGUAGES: &[&str] = &[
    "console", "diff", "json", "python", "rust", "sh", "text", "toml", "yaml",
];

/// A parsed page, and the problems found while parsing it.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) sections: Vec<Vec<Step>>,
    pub(super) problems: Vec<String>,
}

/// Something to do or to check, and the line where it starts.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) line: usize,
    /// Whether it needs the session of the steps before it.
    pub(super) one_session: bool,
    pub(super) kind: StepKind,
}

#[derive(Debug)]
pub(super) enum StepKind {
    File {
        name: String,
        content: Vec<u8>,
    },
    Config(String),
    /// A page of the section's website: path, status and content.
    Page(String, u16, String),
    Call(Call),
    After {
        name: String,
        content: Vec<u8>,
    },
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) reply: Option<Reply>,
}

/// The expected reply.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) line: usize,
    pub(super) is_error: bool,
    pub(super) text: String,
}

pub(super) fn parse(text: &str) -> Page {
    let mut page = Page {
        sections: vec![Vec::new()],
        ..Page::default()
    };
    let mut one_session = false;
    let mut fence: Option<Fence> = None;
    for (at, line) in text.lines().enumerate() {
        match fence.take() {
            Some(open) if line.trim_end() == open.closing => page.add(open, one_session),
            Some(mut open) => {
                open.text.push_str(line);
                open.text.push('\n');
                fence = Some(open);
            }
            None if line.starts_with("```") => fence = Some(Fence::open(line, at + 1)),
            None if line.starts_with('#') => {
                one_session = false;
                if line.starts_with("## ") {
                    page.sections.push(Vec::new());
                }
            }
            None => one_session |= line.trim() == "<!-- one session -->",
        }
    }
    if let Some(open) = fence {
        page.problem(open.line, "the block is not closed");
    }
    page.expect_replies();
    page
}

/// A block whose end has not been reached.
struct Fence {
    closing: String,
    info: String,
    text: String,
    line: usize,
}

impl Fence {
    fn open(line: &str, number: usize) -> Self {
        let info = line.trim_start_matches('`');
        Self {
            closing: "`".repeat(line.len() - info.len()),
            info: info.trim().to_owned(),
            text: String::new(),
            line: number,
        }
    }
}

impl Page {
    fn add(&mut self, block: Fence, one_session: bool) {
        let words: Vec<&str> = block.info.split_whitespace().collect();
        let kind = match words.as_slice() {
            ["file", name] => StepKind::File {
                name: (*name).to_owned(),
                content: block.text.into_bytes(),
            },
            ["file", name, "escaped"] => StepKind::File {
                name: (*name).to_owned(),
                content: unescaped(&block.text),
            },
            ["after", name] => StepKind::After {
                name: (*name).to_owned(),
                content: block.text.into_bytes(),
            },
            ["after", name, "escaped"] => StepKind::After {
                name: (*name).to_owned(),
                content: unescaped(&block.text),
            },
            ["config"] => StepKind::Config(block.text),
            ["page", path] => StepKind::Page((*path).to_owned(), 200, block.text),
            ["page", path, status] if status.parse::<u16>().is_ok() => {
                let status = status.parse().unwrap_or(200);
                StepKind::Page((*path).to_owned(), status, block.text)
            }
            ["call", tool] => StepKind::Call(Call {
                tool: (*tool).to_owned(),
                arguments: block.text,
                reply: None,
            }),
            ["reply"] => return self.reply(block.line, false, block.text),
            ["reply", "error"] => return self.reply(block.line, true, block.text),
            [] => return,
            [language] if LANGUAGES.contains(language) => return,
            _ => {
                let problem = format!("unknown block `{}`", block.info);
                return self.problem(block.line, &problem);
            }
        };
        if let Some(section) = self.sections.last_mut() {
            section.push(Step {
                line: block.line,
                one_session,
                kind,
            });
        }
    }

    /// Assigns a reply to the last call of its section, which must not have one yet.
    fn reply(&mut self, line: usize, is_error: bool, text: String) {
        let section = self.sections.last_mut();
        let call = section.and_then(|steps| {
            steps
                .iter_mut()
                .rev()
                .find_map(|step| match &mut step.kind {
                    StepKind::Call(call) => Some(call),
                    _ => None,
                })
        });
        match call {
            Some(call) if call.reply.is_none() => {
                call.reply = Some(Reply {
                    line,
                    is_error,
                    text,
                });
            }
            _ => self.problem(line, "a reply without a call"),
        }
    }

    fn expect_replies(&mut self) {
        let silent: Vec<usize> = self
            .sections
            .iter()
            .flatten()
            .filter(|step| matches!(&step.kind, StepKind::Call(call) if call.reply.is_none()))
            .map(|step| step.line)
            .collect();
        for line in silent {
            self.problem(line, "a call without a reply");
        }
    }

    fn problem(&mut self, line: usize, problem: &str) {
        self.problems.push(format!("line {line}: {problem}"));
    }
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut chars = text.chars().filter(|c| *c != '\n');
    while let Some(c) = chars.next() {
        if c != '\\' {
            bytes.extend_from_slice(c.to_string().as_bytes());
            continue;
        }
        match chars.next() {
            Some('r') => bytes.push(b'\r'),
            Some('n') => bytes.push(b'\n'),
            Some('t') => bytes.push(b'\t'),
            Some('x') => {
                let digits: String = chars.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(&digits, 16).expect("two hex digits after \\x"));
            }
            Some(other) => bytes.extend_from_slice(other.to_string().as_bytes()),
            None => {}
        }
    }
    bytes
}

//! Reading a command line as `bash` would, as far as that is certain.
//!
//! Only literal words joined by `&& || ; |` and newlines are read. Whatever else
//! there is makes the line one that was not analysed: the reader stops and says
//! why. What it has read until then is right, and still counts against a call.

use super::wrapper;
use haft_ops::text::decode::visible;
use std::iter::Peekable;
use std::str::Chars;

/// What is known of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its simple commands, each a list of words. Of a line that was not
    /// analysed, those before the obstacle; the last one may have lost its end.
    pub(crate) commands: Vec<Vec<String>>,
    /// Why it was not analysed, if it was not.
    pub(crate) obstacle: Option<String>,
}

/// Reads a line for a shell.
pub(crate) fn read(line: &str) -> Line {
    let mut reader = Reader {
        chars: line.chars().peekable(),
        commands: Vec::new(),
        words: Vec::new(),
        wanted: false,
    };
    let stopped = reader.run().err();
    if !reader.words.is_empty() {
        reader.commands.push(reader.words);
    }
    finished(reader.commands, stopped)
}

/// A program with its arguments, which no shell looks at.
pub(crate) fn program(argv: &[String]) -> Line {
    finished(vec![argv.to_vec()], None)
}

fn finished(commands: Vec<Vec<String>>, stopped: Option<&'static str>) -> Line {
    let wrapped = || commands.iter().find_map(|words| wrapper::obstacle(words));
    let obstacle = stopped.map(str::to_owned).or_else(wrapped);
    Line { commands, obstacle }
}

/// Words that the shell takes for grammar where a command may begin.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "time", "coproc", "in", "!", "{", "}", "[[", "]]",
];

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    commands: Vec<Vec<String>>,
    /// Those of the command that is being read.
    words: Vec<String>,
    /// An `&&`, `||` or `|` waits for the command behind it.
    wanted: bool,
}

impl Reader<'_> {
    fn run(&mut self) -> Result<(), &'static str> {
        loop {
            let Some(&c) = self.chars.peek() else {
                return if self.wanted && self.words.is_empty() {
                    Err("it ends before its last command")
                } else {
                    Ok(())
                };
            };
            match c {
                ' ' | '\t' => self.skip(),
                '\n' => {
                    self.skip();
                    self.end_command();
                }
                ';' => {
                    self.skip();
                    if self.words.is_empty() {
                        return Err("a command is missing");
                    }
                    if self.take(';') || self.take('&') {
                        return Err("a case of the shell");
                    }
                    self.end_command();
                }
                '&' => {
                    self.skip();
                    if !self.take('&') {
                        return Err("a command in the background or a redirection (&)");
                    }
                    self.join()?;
                }
                '|' => {
                    self.skip();
                    if self.take('&') {
                        return Err("a redirection (|&)");
                    }
                    self.take('|');
                    self.join()?;
                }
                '#' => return Err("a comment"),
                '<' => return Err("a redirection or substitution (<)"),
                '>' => return Err("a redirection or substitution (>)"),
                '(' | ')' => return Err("a subshell or function"),
                _ => {
                    // Nothing but a line that goes on: no word.
                    if let Some(word) = self.word()? {
                        if self.words.is_empty() {
                            first(&word)?;
                        }
                        self.words.push(word);
                    }
                }
            }
        }
    }

    /// The next word, of which there is at least one character.
    fn word(&mut self) -> Result<Option<String>, &'static str> {
        let mut word = String::new();
        let mut any = false;
        while let Some(&c) = self.chars.peek() {
            if matches!(
                c,
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')'
            ) {
                break;
            }
            self.skip();
            match c {
                '\'' => self.single(&mut word)?,
                '"' => self.double(&mut word)?,
                '\\' => match self.chars.next() {
                    None => return Err("it ends in a backslash"),
                    // What follows begins a line, and may begin a word or not.
                    Some('\n') if !any => return Ok(None),
                    Some('\n') => continue,
                    Some(next) => word.push(plain(next)?),
                },
                '$' => return Err("an expansion or substitution ($)"),
                '`' => return Err("a command substitution (`)"),
                '*' | '?' | '[' => return Err("a pattern of file names"),
                '{' | '}' => return Err("a brace"),
                // The home folder, also behind what looks like an assignment.
                '~' if word.is_empty() || word.ends_with(['=', ':']) => {
                    return Err("an expansion (~)");
                }
                c => {
                    plain(c)?;
                    if !c.is_ascii() && (c.is_whitespace() || is_hidden(c)) {
                        return Err("a character that looks like a blank or like nothing");
                    }
                    word.push(c);
                }
            }
            any = true;
        }
        Ok(any.then_some(word))
    }

    fn single(&mut self, word: &mut String) -> Result<(), &'static str> {
        loop {
            match self.chars.next() {
                Some('\'') => return Ok(()),
                Some(c) => word.push(plain(c)?),
                None => return Err("a quote that does not end"),
            }
        }
    }

    fn double(&mut self, word: &mut String) -> Result<(), &'static str> {
        loop {
            match self.chars.next() {
                Some('"') => return Ok(()),
                Some('$') => return Err("an expansion or substitution ($)"),
                Some('`') => return Err("a command substitution (`)"),
                Some('\\') => match self.chars.next() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c),
                    Some(c) => {
                        word.push('\\');
                        word.push(plain(c)?);
                    }
                    None => return Err("a quote that does not end"),
                },
                Some(c) => word.push(plain(c)?),
                None => return Err("a quote that does not end"),
            }
        }
    }

    /// Behind an operator that wants a command on both sides.
    fn join(&mut self) -> Result<(), &'static str> {
        if self.words.is_empty() {
            return Err("a command is missing");
        }
        self.end_command();
        self.wanted = true;
        Ok(())
    }

    fn end_command(&mut self) {
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
            self.wanted = false;
        }
    }

    fn skip(&mut self) {
        self.chars.next();
    }

    fn take(&mut self, wanted: char) -> bool {
        self.chars.next_if_eq(&wanted).is_some()
    }
}

/// A character that is what it looks like, to the shell and to a person.
fn plain(c: char) -> Result<char, &'static str> {
    match c {
        '\n' | '\t' => Ok(c),
        '\r' => Err("a carriage return"),
        c if c.is_control() => Err("a control character"),
        c => Ok(c),
    }
}

fn is_hidden(c: char) -> bool {
    let mut own = [0; 4];
    let own: &str = c.encode_utf8(&mut own);
    visible(own) != own
}

/// Whether a word may stand first. A quoted one may in the shell too: not being
/// that exact costs a question, and nothing else.
fn first(word: &str) -> Result<(), &'static str> {
    if RESERVED.contains(&word) {
        return Err("a reserved word of the shell");
    }
    if word.starts_with('%') {
        return Err("a job of the shell");
    }
    let name = word.split_once('=').map(|(name, _)| name);
    let name = name.map(|name| name.strip_suffix('+').unwrap_or(name));
    match name {
        Some(name) if is_name(name) => Err("an assignment"),
        _ => Ok(()),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

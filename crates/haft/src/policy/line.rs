//! Reading a command line as `bash` would, as far as that is certain.
//!
//! Only literal words joined by `&& || ; |` and newlines are analysed. Whatever
//! else there is makes the line one that was not analysed, and the reader says
//! why. It reads on all the same: the commands it can still make out may be
//! wrong, and only ever count against a call.

use super::wrapper;
use haft_ops::text::decode::visible;
use std::iter::Peekable;
use std::str::Chars;

/// What is known of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its simple commands, each a list of words. Of a line that was not
    /// analysed, what could be made out: some may be missing or without end.
    pub(crate) commands: Vec<Vec<String>>,
    /// Why it was not analysed, if it was not.
    pub(crate) obstacle: Option<String>,
}

/// How deep commands inside of commands are looked for.
const DEPTH: usize = 4;

/// Reads a line for a shell.
pub(crate) fn read(line: &str) -> Line {
    read_at(line, 0)
}

/// A program with its arguments, which no shell looks at.
pub(crate) fn program(argv: &[String]) -> Line {
    finished(vec![argv.to_vec()], None, 0)
}

fn read_at(line: &str, depth: usize) -> Line {
    let mut reader = Reader {
        chars: line.chars().peekable(),
        commands: Vec::new(),
        words: Vec::new(),
        wanted: false,
        in_ticks: false,
        to_file: false,
        obstacle: None,
    };
    if let Err(why) = reader.run() {
        reader.hinder(why);
    }
    reader.end_command();
    finished(reader.commands, reader.obstacle, depth)
}

fn finished(mut commands: Vec<Vec<String>>, stopped: Option<&'static str>, depth: usize) -> Line {
    let wrapped = || commands.iter().find_map(|words| wrapper::obstacle(words));
    let obstacle = stopped.map(str::to_owned).or_else(wrapped);
    if obstacle.is_some() && depth < DEPTH {
        let mut inside = Vec::new();
        for words in &commands {
            match wrapper::inside(words) {
                Some(wrapper::Inside::Words(words)) => {
                    inside.extend(finished(vec![words.to_vec()], None, depth + 1).commands);
                }
                Some(wrapper::Inside::Line(line)) => {
                    inside.extend(read_at(&line, depth + 1).commands);
                }
                None => {}
            }
        }
        commands.append(&mut inside);
    }
    Line { commands, obstacle }
}

/// Words that the shell takes for grammar where a command may begin.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac",
    "select", "function", "time", "coproc", "in", "!", "{", "}", "[[", "]]",
];

/// Those among them that a command stands behind.
const BEFORE_COMMAND: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "time", "coproc", "!", "{", "}",
];

/// Stands in a word for what cannot be known. No word of a rule contains it.
const HOLE: char = '\0';

const DOLLAR: &str = "an expansion or substitution ($)";
const TICK: &str = "a command substitution (`)";
const MISSING: &str = "a command is missing";
const UNQUOTED: &str = "a quote that does not end";

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    commands: Vec<Vec<String>>,
    /// Those of the command that is being read.
    words: Vec<String>,
    /// An `&&`, `||` or `|` waits for the command behind it.
    wanted: bool,
    /// Between two backticks.
    in_ticks: bool,
    /// The next word is a file of a redirection.
    to_file: bool,
    /// The first thing that made it impossible to be certain.
    obstacle: Option<&'static str>,
}

impl Reader<'_> {
    /// Reads to the end, or to where nothing can be made out any more.
    fn run(&mut self) -> Result<(), &'static str> {
        while let Some(&c) = self.chars.peek() {
            match c {
                ' ' | '\t' => self.skip(),
                '\n' => {
                    self.skip();
                    self.end_command();
                }
                ';' => {
                    self.skip();
                    if self.words.is_empty() {
                        self.hinder(MISSING);
                    }
                    if self.take(';') || self.take('&') {
                        self.hinder("a case of the shell");
                    }
                    self.end_command();
                }
                '&' => {
                    self.skip();
                    if self.take('&') {
                        self.join();
                    } else {
                        self.hinder("a command in the background or a redirection (&)");
                        // `&>` goes on as a redirection.
                        if self.chars.peek() != Some(&'>') {
                            self.end_command();
                        }
                    }
                }
                '|' => {
                    self.skip();
                    if self.take('&') {
                        self.hinder("a redirection (|&)");
                    } else {
                        self.take('|');
                    }
                    self.join();
                }
                '#' => {
                    self.hinder("a comment");
                    while self.chars.next_if(|c| *c != '\n').is_some() {}
                }
                '<' | '>' => self.redirection(c)?,
                '(' | ')' => {
                    self.skip();
                    self.hinder("a subshell or function");
                    self.nested(c == '(');
                }
                '`' => {
                    self.skip();
                    self.hinder(TICK);
                    self.in_ticks = !self.in_ticks;
                    self.nested(self.in_ticks);
                }
                _ => {
                    if let Some(word) = self.word()? {
                        self.push(word);
                    }
                }
            }
        }
        if self.wanted && self.words.is_empty() {
            self.hinder("it ends before its last command");
        }
        Ok(())
    }

    /// Behind `<` or `>`. What follows is a file, or for `<(` a command.
    fn redirection(&mut self, c: char) -> Result<(), &'static str> {
        self.skip();
        self.hinder(match c {
            '<' => "a redirection or substitution (<)",
            _ => "a redirection or substitution (>)",
        });
        if c == '<' && self.take('<') && !self.take('<') {
            // The lines of a document are no commands.
            return Err("a here-document");
        }
        let _ = self.take('>') || self.take('&') || self.take('|');
        self.to_file = true;
        Ok(())
    }

    /// At a bracket: a command begins, or the rest of the one around it goes on.
    fn nested(&mut self, opens: bool) {
        self.end_command();
        if !opens {
            self.words.push(HOLE.to_string());
        }
    }

    /// The next word, if there is one after all.
    fn word(&mut self) -> Result<Option<String>, &'static str> {
        let mut word = String::new();
        let mut any = false;
        while let Some(&c) = self.chars.peek() {
            if matches!(
                c,
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '`'
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
                    Some(next) => self.literal(next, &mut word),
                },
                '$' => {
                    self.hole(DOLLAR, &mut word);
                    if self.chars.peek() == Some(&'\'') {
                        return Err(DOLLAR);
                    }
                }
                '*' | '?' | '[' => self.hole("a pattern of file names", &mut word),
                '{' | '}' => {
                    self.hinder("a brace");
                    // Alone it groups commands, else it makes several words.
                    if any || !self.at_blank() {
                        word.push(HOLE);
                    } else {
                        return Ok(None);
                    }
                }
                // The home folder, also behind what looks like an assignment.
                '~' if word.is_empty() || word.ends_with(['=', ':']) => {
                    self.hole("an expansion (~)", &mut word);
                }
                c if !c.is_ascii() && (c.is_whitespace() || is_hidden(c)) => {
                    self.hole(
                        "a character that looks like a blank or like nothing",
                        &mut word,
                    );
                }
                c => self.literal(c, &mut word),
            }
            any = true;
        }
        // `2>` is the number of a file; the sign behind it is said there.
        let number = word.chars().all(|c| c.is_ascii_digit());
        if any && number && matches!(self.chars.peek(), Some('<' | '>')) {
            return Ok(None);
        }
        Ok(any.then_some(word))
    }

    fn single(&mut self, word: &mut String) -> Result<(), &'static str> {
        loop {
            match self.chars.next() {
                Some('\'') => return Ok(()),
                Some(c) => self.literal(c, word),
                None => return Err(UNQUOTED),
            }
        }
    }

    fn double(&mut self, word: &mut String) -> Result<(), &'static str> {
        loop {
            match self.chars.next() {
                Some('"') => return Ok(()),
                Some('`') => return Err(TICK),
                Some('$') => {
                    self.hole(DOLLAR, word);
                    // Quotes within it would not be ours.
                    if matches!(self.chars.peek(), Some('(' | '{')) {
                        return Err(DOLLAR);
                    }
                }
                Some('\\') => match self.chars.next() {
                    Some('\n') => {}
                    Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c),
                    Some(c) => {
                        word.push('\\');
                        self.literal(c, word);
                    }
                    None => return Err(UNQUOTED),
                },
                Some(c) => self.literal(c, word),
                None => return Err(UNQUOTED),
            }
        }
    }

    /// A character that is what it looks like, to the shell and to a person; or
    /// not.
    fn literal(&mut self, c: char, word: &mut String) {
        match c {
            '\n' | '\t' => word.push(c),
            '\r' => self.hole("a carriage return", word),
            c if c.is_control() => self.hole("a control character", word),
            c => word.push(c),
        }
    }

    fn hole(&mut self, why: &'static str, word: &mut String) {
        self.hinder(why);
        word.push(HOLE);
    }

    fn push(&mut self, word: String) {
        if std::mem::take(&mut self.to_file) {
            return;
        }
        if self.words.is_empty() {
            // Quoted it would be a plain word: not being that exact costs a
            // question, and nothing else.
            if RESERVED.contains(&word.as_str()) {
                self.hinder("a reserved word of the shell");
                if BEFORE_COMMAND.contains(&word.as_str()) {
                    return;
                }
            }
            if is_assignment(&word) {
                return self.hinder("an assignment");
            }
            if word.starts_with('%') {
                self.hinder("a job of the shell");
            }
        }
        self.words.push(word);
    }

    /// Behind an operator that wants a command on both sides.
    fn join(&mut self) {
        if self.words.is_empty() {
            self.hinder(MISSING);
        }
        self.end_command();
        self.wanted = true;
    }

    fn end_command(&mut self) {
        self.to_file = false;
        if self.words.is_empty() {
            return;
        }
        self.wanted = false;
        let mut words = std::mem::take(&mut self.words);
        // Only the words before the first hole are known.
        let known = words.iter().position(|word| word.contains(HOLE));
        words.truncate(known.unwrap_or(words.len()));
        if !words.is_empty() {
            self.commands.push(words);
        }
    }

    fn hinder(&mut self, why: &'static str) {
        self.obstacle.get_or_insert(why);
    }

    fn skip(&mut self) {
        self.chars.next();
    }

    fn take(&mut self, wanted: char) -> bool {
        self.chars.next_if_eq(&wanted).is_some()
    }

    fn at_blank(&mut self) -> bool {
        matches!(self.chars.peek(), None | Some(' ' | '\t' | '\n' | ';'))
    }
}

fn is_hidden(c: char) -> bool {
    let mut own = [0; 4];
    let own: &str = c.encode_utf8(&mut own);
    visible(own) != own
}

/// Whether a word sets a variable, where a command may begin.
pub(super) fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let name = name.strip_suffix('+').unwrap_or(name);
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

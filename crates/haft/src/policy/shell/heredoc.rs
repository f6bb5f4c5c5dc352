//! Here-documents: their bodies start after the line that names them.

use super::Stop;
use super::cursor::Reader;
use super::word::{Item, Quote, Word};

/// A here-document whose body has not been read yet.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    /// Index in the script.
    id: usize,
    /// The line that ends it.
    delimiter: String,
    /// Whether tabs at the start of each line are removed (`<<-`).
    tabs: bool,
    /// Whether nothing in it is expanded.
    literal: bool,
}

impl Reader<'_> {
    /// Parses the delimiter, after `<<` or `<<-`. Returns the index of the document.
    pub(super) fn document(&mut self, tabs: bool) -> Result<usize, Stop> {
        self.blanks();
        let start = self.at;
        let mut literal = false;
        let mut delimiter = String::new();
        while let Some(c) = self.peek() {
            let mut items = Vec::new();
            match c {
                '\'' => {
                    self.bump();
                    self.single(&mut items)?;
                    literal = true;
                }
                '"' => {
                    self.bump();
                    self.double(&mut items)?;
                    literal = true;
                }
                '\\' => {
                    self.bump();
                    items.extend(self.next_raw().map(Item::Quoted));
                    literal = true;
                }
                '$' | '`' => return Err("a here-document with an unusual delimiter"),
                c if super::cursor::is_meta(c) => break,
                c => {
                    self.bump();
                    items.push(Item::Plain(c));
                }
            }
            match self.word(&items).known() {
                Some(part) if items.first() != Some(&Item::Plain('~')) => delimiter.push_str(part),
                _ => return Err("a here-document with an unusual delimiter"),
            }
        }
        if self.at == start || delimiter.contains('\n') || matches!(self.peek(), Some('(')) {
            return Err("a here-document with an unusual delimiter");
        }
        let id = self.script.documents.len();
        self.script.documents.push(None);
        self.pending.push(Pending {
            id,
            delimiter,
            tabs,
            literal,
        });
        Ok(id)
    }

    /// Reads the bodies of all documents named on the line before, after its newline.
    pub(super) fn documents(&mut self) -> Result<(), Stop> {
        for pending in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            loop {
                let line = self.document_line(&pending)?;
                if line == pending.delimiter {
                    break;
                }
                if self.substitutions > 0
                    && line
                        .strip_prefix(&pending.delimiter)
                        .is_some_and(|rest| rest.contains(')'))
                {
                    return Err("a here-document whose end is not certain");
                }
                body.push_str(&line);
                body.push('\n');
            }
            let word = if pending.literal {
                let items: Vec<Item> = body.chars().map(Item::Quoted).collect();
                self.script.numbers.look_at_document(&items);
                Word::literal(body)
            } else {
                self.inner(&body)?.document_text()?
            };
            if let Some(place) = self.script.documents.get_mut(pending.id) {
                *place = Some(word);
            }
        }
        Ok(())
    }

    /// Reads one line of a body. In an expanded one, a backslash joins it with the next
    /// line.
    fn document_line(&mut self, pending: &Pending) -> Result<String, Stop> {
        const ENDS: Stop = "a here-document that does not end";
        let mut line = self.rest_of_line().ok_or(ENDS)?;
        while !pending.literal && line.chars().rev().take_while(|c| *c == '\\').count() % 2 == 1 {
            line.pop();
            line.push_str(&self.rest_of_line().ok_or(ENDS)?);
        }
        if pending.tabs {
            line = line.trim_start_matches('\t').to_owned();
        }
        Ok(line)
    }

    /// Parses a text in which the shell expands, but ignores quotes.
    pub(super) fn document_text(&mut self) -> Result<Word, Stop> {
        let mut items = Vec::new();
        while let Some(c) = self.peek() {
            self.bump();
            self.quoted_part(c, &mut items, Quote::Document)?;
        }
        self.script.numbers.look_at_document(&items);
        Ok(self.word(&items))
    }
}

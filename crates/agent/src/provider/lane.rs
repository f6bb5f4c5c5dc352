//! The bytes of a conversation, as its provider hears them.
//!
//! A conversation grows at its end and is sent whole, again and again. Each message
//! is written once; what is sent is a chain of pieces that share their bytes with
//! what was sent before. Every so often pieces are joined into a longer one, as
//! seldom as they are long, so that a thousand turns are some dozens of pieces: few
//! enough for few writes, and no turn copies what is old.

use crate::{Message, ModelError, Said};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// So many pieces of a size are joined into one.
const FAN: usize = 8;

/// A piece of so many bytes is joined with no other: while they are copied, both are there.
const LONG: usize = 128 * 1024;

/// How messages stand behind each other in a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Grammar {
    /// Each is one or more elements of an array.
    Elements,
    /// Each is blocks of a turn, and turns of the same side are one. The end of the
    /// conversation is marked, now and as it was the time before: up to there the
    /// provider remembers it.
    Turns,
}

/// The text that marks the end, written into the last block.
const MARK: &[u8] = br#","cache_control":{"type":"ephemeral"}"#;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Person,
    Model,
}

/// Where a lane stands after a piece.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// Bytes so far.
    length: usize,
    /// Whose turn is open.
    side: Option<Side>,
    /// Where marks belong: at the end of what was sent before, and of this.
    marks: [Option<usize>; 2],
}

#[derive(Debug, Clone)]
struct Piece {
    bytes: Bytes,
    /// How many messages it holds.
    messages: usize,
    /// How often it was joined.
    level: u32,
    after: Place,
}

/// A conversation's bytes.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// The messages in it. They are known by where they are, and as long as they are
    /// remembered nothing else can be there.
    said: Vec<Weak<Said>>,
    pieces: Vec<Piece>,
}

impl Lane {
    /// Makes the lane hold exactly this conversation. Answers how many bytes had to
    /// be written for it.
    ///
    /// # Errors
    /// What `write` fails with; the lane is then as if nobody had asked.
    pub(super) fn follow(
        &mut self,
        history: &[Arc<Said>],
        grammar: Grammar,
        mut write: impl FnMut(usize, &Message) -> Result<Bytes, ModelError>,
    ) -> Result<usize, ModelError> {
        let known = self.said.iter().zip(history);
        let same = known
            .take_while(|(known, said)| std::ptr::eq(known.as_ptr(), Arc::as_ptr(said)))
            .count();
        let mut kept = self.pieces.len();
        let mut held = self.said.len();
        while held > same
            && let Some(piece) = kept.checked_sub(1).and_then(|last| self.pieces.get(last))
        {
            held -= piece.messages;
            kept -= 1;
        }
        let start = kept.checked_sub(1).and_then(|last| self.pieces.get(last));
        let mut place = start.map(|piece| piece.after).unwrap_or_default();
        let begun = place.length;
        let mut bytes = Vec::new();
        for (at, said) in history.iter().enumerate().skip(held) {
            let written = write(at, &said.message)?;
            let side = match said.message {
                Message::Assistant(_) => Side::Model,
                Message::User { .. } | Message::Tool { .. } => Side::Person,
            };
            append(&mut bytes, &mut place, grammar, side, &written);
            place.length = begun + bytes.len();
        }
        self.pieces.truncate(kept);
        self.said.truncate(held);
        let new = history.get(held..).unwrap_or_default();
        if !bytes.is_empty() {
            // The last byte closes the last block; the mark stands before it.
            place.marks = [place.marks[1], place.length.checked_sub(1)];
        }
        let written = bytes.len();
        if !new.is_empty() {
            self.said.extend(new.iter().map(Arc::downgrade));
            self.pieces.push(Piece {
                bytes: bytes.into(),
                messages: new.len(),
                level: 0,
                after: place,
            });
            self.join();
        }
        Ok(written)
    }

    /// Joins the last pieces while there are enough of a level.
    fn join(&mut self) {
        while let Some(last) = self.pieces.last().cloned() {
            let alike = self.pieces.iter().rev();
            let alike = alike.take_while(|piece| piece.level == last.level).count();
            if alike < FAN || last.bytes.len() >= LONG {
                return;
            }
            let joined = self.pieces.split_off(self.pieces.len() - alike);
            let bytes: Vec<&[u8]> = joined.iter().map(|piece| &*piece.bytes).collect();
            self.pieces.push(Piece {
                bytes: bytes.concat().into(),
                messages: joined.iter().map(|piece| piece.messages).sum(),
                level: last.level + 1,
                after: last.after,
            });
        }
    }

    /// The conversation as a chain, up to and with what closes its array.
    pub(super) fn chain(&self, grammar: Grammar, chain: &mut Vec<Bytes>) {
        let end = self.pieces.last().map(|piece| piece.after);
        let end = end.unwrap_or_default();
        let marks = match grammar {
            Grammar::Elements => [None, None],
            Grammar::Turns => end.marks,
        };
        let mut marks = marks.into_iter().flatten().peekable();
        let mut begin = 0;
        for piece in &self.pieces {
            let mut rest = piece.bytes.clone();
            while let Some(mark) = marks.next_if(|mark| *mark < begin + rest.len()) {
                chain.push(rest.split_to(mark - begin));
                chain.push(Bytes::from_static(MARK));
                begin = mark;
            }
            begin += rest.len();
            chain.push(rest);
        }
        let close: &[u8] = match (grammar, end.side) {
            (Grammar::Turns, Some(_)) => b"]}]",
            _ => b"]",
        };
        chain.push(Bytes::from_static(close));
    }

    /// Whether nobody has this conversation any more.
    fn is_over(&self) -> bool {
        let last = self.said.last();
        last.is_none_or(|last| last.strong_count() == 0)
    }
}

fn append(bytes: &mut Vec<u8>, place: &mut Place, grammar: Grammar, side: Side, new: &[u8]) {
    if new.is_empty() {
        return;
    }
    match (grammar, place.side) {
        (Grammar::Elements, Some(_)) => bytes.push(b','),
        (Grammar::Elements, None) => {}
        (Grammar::Turns, Some(open)) if open == side => bytes.push(b','),
        (Grammar::Turns, open) => {
            if open.is_some() {
                bytes.extend_from_slice(b"]},");
            }
            bytes.extend_from_slice(match side {
                Side::Person => br#"{"role":"user","content":["#,
                Side::Model => br#"{"role":"assistant","content":["#,
            });
        }
    }
    bytes.extend_from_slice(new);
    place.side = Some(side);
}

/// The lanes of a model, by session.
#[derive(Debug, Default)]
pub(super) struct Lanes(Mutex<HashMap<String, Lane>>);

impl Lanes {
    /// Does something with the lane of a session. Lanes whose conversation is gone
    /// go too.
    pub(super) fn with<T>(&self, session: &str, work: impl FnOnce(&mut Lane) -> T) -> T {
        let taken = self.lock().remove(session);
        // Outside of the lock: others need not wait while this one is written.
        let mut lane = taken.unwrap_or_default();
        let done = work(&mut lane);
        let mut lanes = self.lock();
        lanes.retain(|_, lane| !lane.is_over());
        lanes.insert(session.to_owned(), lane);
        done
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Lane>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;

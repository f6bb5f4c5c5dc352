//! A stream of server-sent events, of bounded size each.

use futures::Stream;
use haft_web::Response;
use sse_stream::Sse;
use std::collections::VecDeque;

/// No event is larger.
pub(super) const LARGEST: usize = 16 << 20;

/// Reads events out of pieces of a body.
#[derive(Default)]
pub(super) struct Reader {
    line: Vec<u8>,
    event: Sse,
    /// How much there is of the event so far.
    size: usize,
    /// Whether the last piece ended in a carriage return, whose line feed may follow.
    had_return: bool,
    whole: VecDeque<Sse>,
}

/// An event that is too large to be one.
#[derive(Debug, thiserror::Error)]
#[error("an event is larger than {LARGEST} bytes")]
pub(super) struct TooLarge;

impl Reader {
    /// Takes in a piece of the body.
    pub(super) fn take(&mut self, piece: &[u8]) -> Result<(), TooLarge> {
        for byte in piece {
            match byte {
                b'\n' if self.had_return => self.had_return = false,
                b'\n' | b'\r' => {
                    self.had_return = *byte == b'\r';
                    self.end_of_line();
                }
                other => {
                    self.had_return = false;
                    self.line.push(*other);
                    self.size += 1;
                    if self.size > LARGEST {
                        return Err(TooLarge);
                    }
                }
            }
        }
        Ok(())
    }

    /// The next event that is whole.
    pub(super) fn next(&mut self) -> Option<Sse> {
        self.whole.pop_front()
    }

    fn end_of_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            self.size = 0;
            if event.data.is_some() || event.id.is_some() || event.retry.is_some() {
                self.whole.push_back(event);
            }
            return;
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.event = Some(value.to_owned()),
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.event.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.event.retry = value.parse().ok(),
            _ => {}
        }
    }
}

/// The events of an answer.
pub(super) struct Events {
    response: Response,
    reader: Reader,
}

impl Events {
    pub(super) fn new(response: Response) -> Self {
        Self {
            response,
            reader: Reader::default(),
        }
    }

    /// The next one; nothing at the end.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Sse>> {
        loop {
            if let Some(event) = self.reader.next() {
                return Ok(Some(event));
            }
            let piece = self.response.chunk().await.map_err(failed)?;
            match piece {
                Some(piece) => self.reader.take(&piece).map_err(failed)?,
                None => return Ok(None),
            }
        }
    }

    /// As a stream.
    pub(super) fn stream(self) -> impl Stream<Item = std::io::Result<Sse>> {
        futures::stream::try_unfold(self, |mut events| async move {
            Ok(events.next().await?.map(|event| (event, events)))
        })
    }
}

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> std::io::Error {
    std::io::Error::other(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pieces: &[&str]) -> Vec<(Option<String>, Option<String>, Option<String>)> {
        let mut reader = Reader::default();
        for piece in pieces {
            reader.take(piece.as_bytes()).unwrap();
        }
        let next = || reader.next().map(|sse| (sse.event, sse.data, sse.id));
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn events_are_read_however_they_are_cut() {
        let text =
            ": hello\r\nevent: endpoint\r\ndata: /a\r\n\r\ndata:1\ndata: 2\nid: 7\n\n\ndata: late";
        let wanted = [
            (Some("endpoint".into()), Some("/a".into()), None),
            (None, Some("1\n2".into()), Some("7".into())),
        ];
        assert_eq!(all(&[text]), wanted);
        let bytes: Vec<&str> = text.split_inclusive(|_| true).collect();
        assert_eq!(all(&bytes), wanted);
    }

    #[test]
    fn an_event_without_end_is_given_up() {
        let mut reader = Reader::default();
        let piece = vec![b'x'; 1 << 20];
        let ended = (0..20).find(|_| reader.take(&piece).is_err());
        assert_eq!(ended, Some(16));
    }
}

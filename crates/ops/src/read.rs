//! Reading: a window of lines of a text, or a picture.
//!
//! A text is read in one pass with little memory, however large it is: lines
//! before and after the window are counted, not kept.

use crate::backend::Content;
use crate::blocking::Weight;
use crate::text::decode;
use crate::text::sniff::{self, Encoding};
use crate::{Backend, Error, FilePath, Result, blocking};
use std::io::Read as _;
use tokio_util::sync::CancellationToken;

mod ends;
#[cfg(test)]
mod tests;
mod window;

pub use ends::Gap;
pub use window::{LongLine, Shown};

/// Pictures larger than this are not loaded.
const PICTURE_LIMIT: u64 = 32 << 20;

/// How much room is made at once for the beginning of a file.
const ROOM: usize = 256 << 10;

/// Lines of a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The first line wanted, 1 or more.
    pub first: u64,
    /// How many lines at most, when the caller limits them.
    pub lines: Option<u64>,
}

/// How much of a window is shown, and which part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// Whole lines from its beginning, as many as fit.
    Lines {
        /// The most bytes.
        bytes: usize,
        /// The most lines.
        lines: usize,
    },
    /// Its beginning and its end, half of the bytes each, wherever in a line
    /// that is.
    Ends {
        /// The most bytes.
        bytes: usize,
    },
}

/// A file to read.
#[derive(Debug)]
pub struct Read {
    /// Which.
    pub path: FilePath,
    /// Which lines of it.
    pub window: Window,
    /// How much of them at most.
    pub room: Room,
    /// Stops the reading of a very large file.
    pub cancel: CancellationToken,
}

/// What a file turned out to hold.
#[derive(Debug)]
pub enum Found {
    /// Text.
    Text(Shown),
    /// A picture, by content, whatever its name.
    Picture(Vec<u8>, &'static str),
}

/// Reads a file.
///
/// # Errors
/// [`Error::Binary`] for what is neither text nor picture,
/// [`Error::PastEnd`] for a window after the last line of a file that has some.
pub async fn file(backend: &dyn Backend, request: Read) -> Result<Found> {
    let content = backend.read(&request.path).await?;
    blocking::run(content.weight, move || decide(content, &request)).await
}

/// The whole of a file, for operations that need all of it at once.
///
/// # Errors
/// [`Error::TooLarge`] beyond `limit` bytes.
pub async fn whole(backend: &dyn Backend, path: &FilePath, limit: u64) -> Result<Vec<u8>> {
    let content = backend.read(path).await?;
    let path = path.clone();
    blocking::run(content.weight, move || all(content, &path, limit)).await
}

fn all(content: Content, path: &FilePath, limit: u64) -> Result<Vec<u8>> {
    let too_large = |size| Error::TooLarge {
        path: path.given().to_owned(),
        size,
        limit,
    };
    if content.stat.size > limit {
        return Err(too_large(content.stat.size));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(content.stat.size).unwrap_or(0));
    // One more than allowed: the file may grow while it is read.
    content
        .reader
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| Error::io("read", path.given(), source))?;
    if bytes.len() as u64 > limit {
        Err(too_large(bytes.len() as u64))
    } else {
        Ok(bytes)
    }
}

fn decide(mut content: Content, request: &Read) -> Result<Found> {
    let fail = |source| Error::io("read", request.path.given(), source);
    // What is light is small, so there is no reason to read it in two steps.
    let light = content.weight == Weight::Light;
    let first = if light {
        PICTURE_LIMIT
    } else {
        sniff::SAMPLE_BYTES as u64
    };
    let room = usize::try_from(content.stat.size).unwrap_or(0).min(ROOM);
    let mut sample = Vec::with_capacity(room + 1);
    content
        .reader
        .by_ref()
        .take(first)
        .read_to_end(&mut sample)
        .map_err(fail)?;

    if let Some(media_type) = sniff::image_type(&sample) {
        if content.stat.size > PICTURE_LIMIT {
            return Err(Error::TooLarge {
                path: request.path.given().to_owned(),
                size: content.stat.size,
                limit: PICTURE_LIMIT,
            });
        }
        content
            .reader
            .take(PICTURE_LIMIT)
            .read_to_end(&mut sample)
            .map_err(fail)?;
        return Ok(Found::Picture(sample, media_type));
    }
    let size = content.stat.size.max(sample.len() as u64);
    match sniff::encoding(&sample) {
        Encoding::Utf16Le | Encoding::Utf16Be => {
            let bytes = all(
                Content {
                    reader: Box::new(std::io::Cursor::new(sample).chain(content.reader)),
                    ..content
                },
                &request.path,
                PICTURE_LIMIT,
            )?;
            let text = decode::decode(&bytes).into_owned();
            let reader = Box::new(std::io::Cursor::new(text.into_bytes()));
            return window::show(reader, size, request).map(Found::Text);
        }
        _ if sniff::is_binary(&sample) => {
            return Err(Error::Binary {
                path: request.path.given().to_owned(),
                size,
                kind: sniff::kind_name(&sample),
            });
        }
        _ => {}
    }
    if light {
        return window::show_all(&sample, size, request).map(Found::Text);
    }
    let reader = Box::new(std::io::Cursor::new(sample).chain(content.reader));
    window::show(reader, size, request).map(Found::Text)
}

//! Reading a file: a window of its lines if it is text, or all of it if it is a picture.
//!
//! Text of any size is read in one pass with little memory. Lines outside the window are
//! counted, not stored.

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

/// Maximum size of a picture in bytes; larger ones are not loaded.
const PICTURE_LIMIT: u64 = 32 << 20;

/// Maximum buffer size to reserve in advance for the start of a file.
const ROOM: usize = 256 << 10;

/// Range of lines to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// First line, counted from 1.
    pub first: u64,
    /// Maximum number of lines, if the caller limits it.
    pub lines: Option<u64>,
}

/// Amount and part of a window to return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// As many complete lines as fit, from the start of the window.
    Lines {
        /// Maximum number of bytes.
        bytes: usize,
        /// Maximum number of lines.
        lines: usize,
    },
    /// The start and the end of the window, each with half of the bytes. Both may cut a
    /// line.
    Ends {
        /// Maximum number of bytes in both parts together.
        bytes: usize,
    },
}

/// Request to read a file.
#[derive(Debug)]
pub struct Read {
    /// The file to read.
    pub path: FilePath,
    /// Lines to read.
    pub window: Window,
    /// Maximum amount to return.
    pub room: Room,
    /// Stops reading a very large file.
    pub cancel: CancellationToken,
}

/// Content of a file.
#[derive(Debug)]
pub enum Found {
    /// Text, decoded.
    Text(Shown),
    /// A picture and its media type. The content decides, not the file name.
    Picture(Vec<u8>, &'static str),
}

/// Reads a file.
///
/// # Errors
/// [`Error::Binary`] if the file is neither text nor a picture, [`Error::PastEnd`] if the
/// window starts after the last line of a file that is not empty.
pub async fn file(backend: &dyn Backend, request: Read) -> Result<Found> {
    let content = backend.read(&request.path).await?;
    blocking::run(content.weight, move || decide(content, &request)).await
}

/// Reads a complete file, for operations that need all of it at once.
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
    // Reads one byte more than allowed, because the file may grow meanwhile.
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
    // Light content is small, so one read is enough.
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

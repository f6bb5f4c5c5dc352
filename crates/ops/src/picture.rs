//! Pictures for models that see: small enough to send, whole enough to use.

use crate::{Error, Result};
use image::{DynamicImage, ImageFormat, ImageReader, Limits};
use std::io::Cursor;

/// The longest side a picture is shown with.
pub const MAX_SIDE: u32 = 2000;

/// Beyond this even a small picture is encoded again.
const MAX_BYTES: usize = 4 << 20;

/// Memory a picture may need to be decoded. A file of a few kilobytes can claim
/// to be of any size.
const MAX_DECODED: u64 = 512 << 20;

/// A picture to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// The encoded bytes.
    pub bytes: Vec<u8>,
    /// Their media type.
    pub media_type: &'static str,
    /// Width and height as shown.
    pub size: (u32, u32),
    /// Width and height in the file.
    pub original: (u32, u32),
}

/// Prepares a picture: one that is small enough is passed on byte for byte, a
/// larger one is scaled so that its longest side is [`MAX_SIDE`].
///
/// # Errors
/// [`Error::Binary`] when the bytes are no picture after all.
pub fn prepare(bytes: Vec<u8>, media_type: &'static str, path: &str) -> Result<Picture> {
    let size = bytes.len() as u64;
    let broken = |_| Error::Binary {
        path: path.to_owned(),
        size,
        kind: Some("damaged or oversized image"),
    };
    let original = reader(&bytes)
        .map_err(image::ImageError::IoError)
        .and_then(ImageReader::into_dimensions)
        .map_err(broken)?;
    if original.0.max(original.1) <= MAX_SIDE && bytes.len() <= MAX_BYTES {
        return Ok(Picture {
            bytes,
            media_type,
            size: original,
            original,
        });
    }
    let decoded = reader(&bytes)
        .map_err(image::ImageError::IoError)
        .and_then(ImageReader::decode)
        .map_err(broken)?;
    drop(bytes);
    let scaled = if original.0.max(original.1) > MAX_SIDE {
        decoded.thumbnail(MAX_SIDE, MAX_SIDE)
    } else {
        decoded
    };
    let (bytes, media_type) = encode(&scaled).map_err(broken)?;
    Ok(Picture {
        bytes,
        media_type,
        size: (scaled.width(), scaled.height()),
        original,
    })
}

fn reader(bytes: &[u8]) -> std::io::Result<ImageReader<Cursor<&[u8]>>> {
    let mut limits = Limits::default();
    limits.max_alloc = Some(MAX_DECODED);
    limits.max_image_width = Some(30_000);
    limits.max_image_height = Some(30_000);
    let mut reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format()?;
    reader.limits(limits);
    Ok(reader)
}

/// PNG keeps text sharp; a photograph that is too large that way becomes JPEG.
fn encode(picture: &DynamicImage) -> image::ImageResult<(Vec<u8>, &'static str)> {
    let mut bytes = Vec::new();
    picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
    if bytes.len() <= MAX_BYTES {
        return Ok((bytes, "image/png"));
    }
    bytes.clear();
    picture
        .to_rgb8()
        .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Jpeg)?;
    Ok((bytes, "image/jpeg"))
}

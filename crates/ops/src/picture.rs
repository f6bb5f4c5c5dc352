//! Pictures for models that accept images, scaled down to a size that services accept.

use crate::{Error, Result};
use image::error::{LimitError, LimitErrorKind};
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits};
use std::io::Cursor;
use std::sync::{Mutex, PoisonError};

/// Maximum width and height in pixels.
pub const MAX_SIDE: u32 = 2000;

/// Maximum number of bytes passed on unchanged. Base64 adds a third, and common services
/// accept 5 MB of that.
const MAX_BYTES: usize = 3_600_000;

/// Maximum size of the decoded pixels in bytes, because a file of a few kilobytes can claim
/// any dimensions.
const MAX_DECODED: u64 = 192 << 20;

/// Maximum memory for decoding a progressive JPEG, in bytes. Its decoder keeps the
/// coefficients of the whole picture, so it needs three times the size of the pixels.
const MAX_PROGRESSIVE: u64 = 256 << 20;

/// A picture ready to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Content in the format of `media_type`.
    pub bytes: Vec<u8>,
    /// Media type of the bytes, such as `image/png`.
    pub media_type: &'static str,
    /// Width and height as sent.
    pub size: (u32, u32),
    /// Width and height in the file.
    pub original: (u32, u32),
}

/// Prepares a picture. A small one is passed on unchanged; a larger one is scaled so that
/// its longest side is [`MAX_SIDE`].
///
/// # Errors
/// [`Error::Binary`] if the bytes are not a valid picture.
pub fn prepare(bytes: Vec<u8>, media_type: &'static str, path: &str) -> Result<Picture> {
    let size = bytes.len() as u64;
    let broken = |_| Error::Binary {
        path: path.to_owned(),
        size,
        kind: Some("damaged or oversized image"),
    };
    // One at a time, so that many calls need no more memory than one.
    static DECODING: Mutex<()> = Mutex::new(());
    let _alone = DECODING.lock().unwrap_or_else(PoisonError::into_inner);
    // Decoded even if passed on unchanged: after one damaged picture a model's service
    // would reject every later request that contains it.
    let (decoded, turned) = decode(&bytes).map_err(broken)?;
    let original = (decoded.width(), decoded.height());
    let small = original.0.max(original.1) <= MAX_SIDE;
    if small && bytes.len() <= MAX_BYTES {
        return Ok(Picture {
            bytes,
            media_type,
            size: original,
            original,
        });
    }
    drop(bytes);
    let mut scaled = if small {
        decoded
    } else {
        decoded.thumbnail(MAX_SIDE, MAX_SIDE)
    };
    // Encoding loses the orientation mark.
    scaled.apply_orientation(turned);
    let (bytes, media_type) = encode(&scaled, media_type).map_err(broken)?;
    Ok(Picture {
        bytes,
        media_type,
        size: (scaled.width(), scaled.height()),
        original,
    })
}

fn decode(bytes: &[u8]) -> image::ImageResult<(DynamicImage, Orientation)> {
    let mut decoder = reader(bytes).map_err(ImageError::IoError)?.into_decoder()?;
    // The reader's limits cover dimensions and the decoder's own buffers, not the pixels.
    if decoder.total_bytes() > MAX_DECODED
        || progressive_bytes(bytes, decoder.dimensions()) > MAX_PROGRESSIVE
        || is_cut_off(bytes)
    {
        let kind = LimitErrorKind::InsufficientMemory;
        return Err(ImageError::Limits(LimitError::from_kind(kind)));
    }
    let turned = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    Ok((DynamicImage::from_decoder(decoder)?, turned))
}

/// Returns the memory for decoding a progressive JPEG, and 0 for other pictures. The marker
/// of such a frame cannot occur in compressed data. It can in metadata, which only makes the
/// limit stricter.
fn progressive_bytes(bytes: &[u8], (width, height): (u32, u32)) -> u64 {
    const FRAME: [u8; 2] = [0xff, 0xc2];
    if !bytes.starts_with(&[0xff, 0xd8]) {
        return 0;
    }
    let frames = memchr::memmem::find_iter(bytes, &FRAME);
    // Two bytes for a coefficient of each component and one for its value, and three more
    // where four components become a colour.
    let costs = frames.map(|at| match bytes.get(at + 9) {
        Some(1) => 3,
        Some(3) => 9,
        _ => 15,
    });
    u64::from(width) * u64::from(height) * costs.max().unwrap_or(0)
}

/// Whether a JPEG ends before its end marker. The decoder fills such a picture up with
/// grey. Neither marker can occur in the compressed data between them.
fn is_cut_off(bytes: &[u8]) -> bool {
    const SCAN: [u8; 2] = [0xff, 0xda];
    const END: [u8; 2] = [0xff, 0xd9];
    let last = |marker: [u8; 2]| memchr::memmem::rfind(bytes, &marker);
    bytes.starts_with(&[0xff, 0xd8]) && last(END) < last(SCAN)
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

/// Encodes as PNG, which keeps text sharp, or as JPEG if the original was a photograph or
/// the PNG is too large.
fn encode(picture: &DynamicImage, was: &str) -> image::ImageResult<(Vec<u8>, &'static str)> {
    let mut bytes = Vec::new();
    if was != "image/jpeg" {
        picture.write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)?;
        if bytes.len() <= MAX_BYTES {
            return Ok((bytes, "image/png"));
        }
    }
    let picture = picture.to_rgb8();
    for quality in [85, 60, 30] {
        bytes.clear();
        let encoder = image::codecs::jpeg::JpegEncoder::new_with_quality(&mut bytes, quality);
        picture.write_with_encoder(encoder)?;
        if bytes.len() <= MAX_BYTES {
            break;
        }
    }
    Ok((bytes, "image/jpeg"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let picture = DynamicImage::ImageRgb8(image::RgbImage::from_fn(width, height, |x, y| {
            image::Rgb([x as u8, y as u8, 7])
        }));
        picture
            .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Png)
            .unwrap();
        bytes
    }

    #[test]
    fn a_small_picture_is_passed_on_byte_for_byte() {
        let bytes = png(30, 20);
        let picture = prepare(bytes.clone(), "image/png", "p").unwrap();
        assert_eq!((picture.bytes, picture.size), (bytes, (30, 20)));
    }

    #[test]
    fn a_large_picture_is_scaled_to_its_longest_side() {
        let picture = prepare(png(4000, 1000), "image/png", "p").unwrap();
        assert_eq!(
            (picture.size, picture.original, picture.media_type),
            ((2000, 500), (4000, 1000), "image/png")
        );
        assert_eq!(
            reader(&picture.bytes).unwrap().into_dimensions().unwrap(),
            (2000, 500)
        );
    }

    #[test]
    fn a_damaged_picture_is_an_error() {
        let bytes = png(300, 200);
        for length in [10, 60, bytes.len() / 2, bytes.len() - 20] {
            let cut = bytes.iter().take(length).copied().collect();
            assert!(
                matches!(prepare(cut, "image/png", "p"), Err(Error::Binary { .. })),
                "{length}"
            );
        }
    }

    #[test]
    fn a_jpeg_that_is_cut_off_is_an_error() {
        let mut bytes = Vec::new();
        let picture = DynamicImage::ImageRgb8(image::RgbImage::new(300, 200));
        picture
            .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Jpeg)
            .unwrap();
        assert!(prepare(bytes.clone(), "image/jpeg", "p").is_ok());
        for left in [bytes.len() - 2, bytes.len() - 50] {
            let cut = bytes.iter().take(left).copied().collect();
            assert!(prepare(cut, "image/jpeg", "p").is_err(), "{left}");
        }
        // Some cameras write more after the end.
        bytes.extend([0; 64]);
        assert!(prepare(bytes, "image/jpeg", "p").is_ok());
    }

    #[test]
    fn pixels_that_need_too_much_memory_are_not_decoded() {
        // A small picture that claims 20,000 by 20,000 pixels.
        let mut bytes = png(8, 8);
        bytes[16..24].copy_from_slice(&[0, 0, 0x4e, 0x20, 0, 0, 0x4e, 0x20]);
        let checksum = bytes[12..29].iter().fold(u32::MAX, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
                (sum >> 1) ^ (0xedb8_8320 * (sum & 1))
            })
        });
        bytes[29..33].copy_from_slice(&(!checksum).to_be_bytes());
        let decoder = reader(&bytes).unwrap().into_decoder().unwrap();
        assert!(decoder.total_bytes() > MAX_DECODED);
        assert!(decode(&bytes).is_err_and(|error| matches!(error, ImageError::Limits(_))));
    }

    #[test]
    fn a_progressive_jpeg_is_limited_by_its_coefficients() {
        let mut bytes = Vec::new();
        let picture = DynamicImage::ImageRgb8(image::RgbImage::new(16, 16));
        picture
            .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Jpeg)
            .unwrap();
        let frame = memchr::memmem::find(&bytes, &[0xff, 0xc0]).unwrap();
        // 7,900 by 7,900 pixels are few enough for a picture of the usual kind.
        bytes[frame + 5..frame + 9].copy_from_slice(&[0x1e, 0xdc, 0x1e, 0xdc]);
        let decoded_bytes = |bytes: &[u8]| {
            let decoder = reader(bytes).unwrap().into_decoder().unwrap();
            assert_eq!(decoder.dimensions(), (7_900, 7_900));
            decoder.total_bytes()
        };
        assert!(decoded_bytes(&bytes) < MAX_DECODED);
        bytes[frame + 1] = 0xc2;
        assert!(decoded_bytes(&bytes) < MAX_DECODED);
        assert!(decode(&bytes).is_err_and(|error| matches!(error, ImageError::Limits(_))));
        // A photograph of 24 megapixels.
        assert!(progressive_bytes(&bytes, (6_000, 4_000)) < MAX_PROGRESSIVE);
    }

    #[test]
    fn noise_becomes_small_enough_too() {
        let mut seed = 1_u32;
        let noise = image::RgbImage::from_fn(1600, 1600, |_, _| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let [a, b, c, _] = seed.to_be_bytes();
            image::Rgb([a, b, c])
        });
        let picture = DynamicImage::ImageRgb8(noise);
        let (bytes, media_type) = encode(&picture, "image/jpeg").unwrap();
        assert_eq!(media_type, "image/jpeg");
        assert!(bytes.len() <= MAX_BYTES, "{}", bytes.len());
    }

    #[test]
    fn a_photograph_stays_one() {
        let mut bytes = Vec::new();
        let picture = DynamicImage::ImageRgb8(image::RgbImage::new(2500, 10));
        picture
            .write_to(&mut Cursor::new(&mut bytes), ImageFormat::Jpeg)
            .unwrap();
        assert_eq!(
            prepare(bytes, "image/jpeg", "p").unwrap().media_type,
            "image/jpeg"
        );
    }
}

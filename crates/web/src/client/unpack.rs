//! Answers that come packed. What comes out is bounded, whatever goes in: a few
//! kilobytes can hold gigabytes.

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read};

/// What is sent as `accept-encoding`.
pub(crate) const ACCEPTED: &str = "gzip, br, zstd, deflate";

/// An answer is packed that often at most.
const MOST_LAYERS: usize = 3;

/// The memory a zstd frame may ask for. The format's own advice is to go no lower, and
/// nobody who writes for the web goes higher.
const MOST_WINDOW: u64 = 8 << 20;

const BUFFER: usize = 16 << 10;

/// What came out.
pub(super) struct Unpacked {
    pub(super) bytes: Vec<u8>,
    /// Whether there was more.
    pub(super) cut: bool,
}

/// Unpacks an answer by its `content-encoding`. `is_cut` says that it is only the
/// beginning of one: then what can be had of it is enough.
///
/// # Errors
/// Why it cannot be unpacked.
pub(super) fn unpack(
    bytes: Vec<u8>,
    encodings: &str,
    limit: usize,
    is_cut: bool,
) -> Result<Unpacked, String> {
    let names: Vec<String> = encodings
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !matches!(name.as_str(), "" | "identity"))
        .collect();
    if names.len() > MOST_LAYERS {
        return Err(format!("it is packed {} times", names.len()));
    }
    let mut unpacked = Unpacked { bytes, cut: is_cut };
    // The last one named was put on last.
    for name in names.iter().rev() {
        unpacked = layer(&unpacked, name, limit)?;
    }
    Ok(unpacked)
}

fn layer(packed: &Unpacked, name: &str, limit: usize) -> Result<Unpacked, String> {
    let bytes = packed.bytes.as_slice();
    // Nothing is nothing, however it is packed.
    if bytes.is_empty() {
        return Ok(Unpacked {
            bytes: Vec::new(),
            cut: packed.cut,
        });
    }
    let damaged = |error: &dyn std::fmt::Display| format!("its {name} data are damaged: {error}");
    let mut out = Vec::new();
    let result = match name {
        "gzip" | "x-gzip" => bounded(MultiGzDecoder::new(bytes), &mut out, limit),
        "deflate" => match is_zlib(bytes) {
            true => bounded(ZlibDecoder::new(bytes), &mut out, limit),
            false => bounded(DeflateDecoder::new(bytes), &mut out, limit),
        },
        "br" => bounded(Decompressor::new(bytes, BUFFER), &mut out, limit),
        "zstd" => match StreamingDecoder::new_with_max_window_size(bytes, MOST_WINDOW) {
            Ok(decoder) => bounded(decoder, &mut out, limit),
            Err(error) => return Err(damaged(&error)),
        },
        _ => {
            let name: String = name.chars().take(20).collect();
            return Err(format!("it is packed in a way that is not known: {name}"));
        }
    };
    match result {
        Ok(cut) => Ok(Unpacked {
            bytes: out,
            cut: cut || packed.cut,
        }),
        // The end is missing because it was not read.
        Err(_) if packed.cut => Ok(Unpacked {
            bytes: out,
            cut: true,
        }),
        Err(error) => Err(damaged(&error)),
    }
}

/// Reads up to a limit, and says whether there was more. What was read before an
/// error stays.
fn bounded(mut reader: impl Read, out: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
    let mut buffer = [0; BUFFER];
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let room = limit - out.len();
        out.extend_from_slice(buffer.get(..count.min(room)).unwrap_or_default());
        if count > room {
            return Ok(true);
        }
    }
}

/// `deflate` means two things, and servers send both.
fn is_zlib(bytes: &[u8]) -> bool {
    let [first, second, ..] = bytes else {
        return false;
    };
    first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0
}

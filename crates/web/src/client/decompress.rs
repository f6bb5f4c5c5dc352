//! Decompresses responses. The output is bounded, because a few kilobytes can expand to
//! gigabytes.

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read};

/// Value of the `accept-encoding` header.
pub(crate) const ACCEPT_ENCODING: &str = "gzip, br, zstd, deflate";

/// Maximum number of encodings stacked on one response.
const MAX_LAYERS: usize = 3;

/// Maximum window size of a zstd frame. RFC 8878 recommends that decoders support at least this
/// much, and content on the web needs no more.
const MAX_WINDOW: u64 = 8 << 20;

const BUFFER: usize = 16 << 10;

/// The result of decompressing.
pub(super) struct Decompressed {
    pub(super) bytes: Vec<u8>,
    /// Whether the output was cut at the limit, or the input was incomplete.
    pub(super) is_truncated: bool,
}

/// Decompresses a response by its `content-encoding`. If the input is incomplete
/// (`is_truncated`), returns as much as can be decoded from it.
///
/// # Errors
/// Returns the reason why the input cannot be decompressed.
pub(super) fn decompress(
    bytes: Vec<u8>,
    encodings: &str,
    limit: usize,
    is_truncated: bool,
) -> Result<Decompressed, String> {
    let names: Vec<String> = encodings
        .split(',')
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !matches!(name.as_str(), "" | "identity"))
        .collect();
    if names.len() > MAX_LAYERS {
        return Err(format!("{} encodings on top of each other", names.len()));
    }
    let mut decompressed = Decompressed {
        bytes,
        is_truncated,
    };
    // Encodings are listed in the order in which they were applied.
    for name in names.iter().rev() {
        decompressed = layer(&decompressed, name, limit)?;
    }
    Ok(decompressed)
}

fn layer(input: &Decompressed, name: &str, limit: usize) -> Result<Decompressed, String> {
    let bytes = input.bytes.as_slice();
    // An empty body is valid in every encoding.
    if bytes.is_empty() {
        return Ok(Decompressed {
            bytes: Vec::new(),
            is_truncated: input.is_truncated,
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
        "zstd" => match StreamingDecoder::new_with_max_window_size(bytes, MAX_WINDOW) {
            Ok(decoder) => bounded(decoder, &mut out, limit),
            Err(error) => return Err(damaged(&error)),
        },
        _ => {
            let name: String = name.chars().take(20).collect();
            return Err(format!("unknown encoding {name}"));
        }
    };
    match result {
        Ok(was_cut) => Ok(Decompressed {
            bytes: out,
            is_truncated: was_cut || input.is_truncated,
        }),
        // The end is missing only because it was not read.
        Err(_) if input.is_truncated => Ok(Decompressed {
            bytes: out,
            is_truncated: true,
        }),
        Err(error) => Err(damaged(&error)),
    }
}

/// Reads up to `limit` bytes and returns whether there were more. Keeps what was read before an
/// error.
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

/// Servers send both zlib and raw deflate data under the name `deflate`.
fn is_zlib(bytes: &[u8]) -> bool {
    let [first, second, ..] = bytes else {
        return false;
    };
    first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0
}

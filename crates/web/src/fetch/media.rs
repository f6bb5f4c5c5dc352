//! What bytes are: by themselves first, and then by what the server says.

use super::charset::is_said_wide;
use haft_ops::text::sniff::{Encoding, encoding, is_binary};

/// How a body is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Media {
    Html,
    Json,
    Text,
    /// Not at all; what it is.
    Binary(String),
}

/// The type itself, without its parameters.
pub(super) fn essence(content_type: &str) -> String {
    let essence = content_type.split(';').next().unwrap_or_default();
    essence.trim().to_ascii_lowercase()
}

/// Whether a server says that a body is not for reading.
pub(super) fn is_said_binary(content_type: &str) -> bool {
    let essence = essence(content_type);
    match essence.split_once('/') {
        Some(("image", kind)) => kind != "svg+xml",
        Some(("audio" | "video" | "font", _)) => true,
        Some(("application", kind)) => {
            matches!(
                kind,
                "pdf" | "zip" | "gzip" | "octet-stream" | "x-tar" | "wasm" | "zstd"
            )
        }
        _ => false,
    }
}

/// Tells what a body is. Servers are wrong about it often enough that what is there
/// counts for more.
pub(super) fn of(bytes: &[u8], content_type: &str) -> Media {
    let essence = essence(content_type);
    if let Some(kind) = infer::get(bytes)
        && kind.matcher_type() != infer::MatcherType::Text
    {
        return Media::Binary(named(kind.mime_type()));
    }
    let is_wide = matches!(encoding(bytes), Encoding::Utf16Le | Encoding::Utf16Be)
        || is_said_wide(content_type);
    if !is_wide && is_binary(bytes) {
        return Media::Binary(named(&essence));
    }
    if essence == "application/json"
        || essence == "text/json"
        || essence.ends_with("+json")
        || essence == "application/manifest+json"
    {
        return Media::Json;
    }
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => Media::Html,
        // What claims to be text is shown as it is, whatever it looks like.
        essence if essence.starts_with("text/") => Media::Text,
        _ if looks_like_html(bytes) => Media::Html,
        _ => Media::Text,
    }
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let start = bytes.get(..512).unwrap_or(bytes);
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html")
}

/// A type in words.
fn named(essence: &str) -> String {
    let shown: String = essence
        .chars()
        .filter(|c| c.is_ascii_graphic())
        .take(60)
        .collect();
    let kind = match essence.split_once('/') {
        Some(("application", "pdf")) => return "a PDF document".to_owned(),
        Some(("image", _)) => "a picture",
        Some(("audio", _)) => "a sound",
        Some(("video", _)) => "a video",
        Some(("font", _)) => "a font",
        Some((
            _,
            "zip" | "gzip" | "x-tar" | "x-7z-compressed" | "zstd" | "x-bzip2" | "x-xz" | "vnd.rar"
            | "x-bzip" | "x-gzip",
        )) => "an archive",
        _ => "binary data",
    };
    match shown.is_empty() {
        true => kind.to_owned(),
        false => format!("{kind}, {shown}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Media, of};

    #[test]
    fn what_is_there_counts_for_more_than_what_is_said() {
        let binary = |what: &str| Media::Binary(what.to_owned());
        for (bytes, content_type, media) in [
            (&b"<p>x"[..], "text/html; charset=utf-8", Media::Html),
            (b"<p>x", "text/plain", Media::Text),
            (b"x\0y\0", "text/plain; charset=UTF-16LE", Media::Text),
            (b"<!DOCTYPE html><p>x", "", Media::Html),
            (b"  <html><p>x", "application/octet-stream", Media::Html),
            (b"{}", "application/json", Media::Json),
            (b"{}", "application/vnd.api+json", Media::Json),
            (b"a,b", "text/csv", Media::Text),
            (b"plain", "application/octet-stream", Media::Text),
            (b"\xff\xfea\0b\0", "text/plain", Media::Text),
            (b"%PDF-1.7 ...", "text/html", binary("a PDF document")),
            (
                b"\x89PNG\r\n\x1a\n\0\0",
                "text/plain",
                binary("a picture, image/png"),
            ),
            (
                b"PK\x03\x04....",
                "application/zip",
                binary("an archive, application/zip"),
            ),
            (
                b"\0\x01\x02",
                "application/wasm",
                binary("binary data, application/wasm"),
            ),
            (b"\0\x01\x02", "", binary("binary data")),
        ] {
            assert_eq!(of(bytes, content_type), media, "{content_type}");
        }
    }
}

//! Detecting the type of a file from its first bytes.

/// Number of bytes to check.
pub const SAMPLE_BYTES: usize = 8 * 1024;

/// Whether bytes are not text: they contain a NUL, or more than 10 % of the first 8 KiB are
/// not printable.
///
/// Control characters other than tab, newline and carriage return are not printable.
/// Escapes, backspaces and bells do not count, because programs use them to colour and
/// rewrite lines, and such output may be saved in a file. Bytes from 0x80 do not count,
/// because text that is not UTF-8 is still text. UTF-16 contains NULs, so call [`encoding`]
/// first if that matters.
#[must_use]
pub fn is_binary(sample: &[u8]) -> bool {
    let sample = sample.get(..SAMPLE_BYTES).unwrap_or(sample);
    if memchr::memchr(0, sample).is_some() {
        return true;
    }
    // Without branches, so that the compiler can vectorise it.
    let (mut unprintable, mut signs) = (0usize, 0usize);
    for &b in sample {
        let sign = (b == 0x1b) | (b == 0x07) | (b == 0x08);
        let blank = (b == b'\t') | (b == b'\n') | (b == b'\r');
        signs += usize::from(sign);
        unprintable += usize::from((b < 0x20) & !blank & !sign | (b == 0x7f));
    }
    unprintable * 10 > sample.len() - signs
}

/// Encoding of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// UTF-8 without a byte-order mark, including ASCII.
    Utf8,
    /// UTF-8 with a byte-order mark.
    Utf8Bom,
    /// Little-endian UTF-16 with a byte-order mark.
    Utf16Le,
    /// Big-endian UTF-16 with a byte-order mark.
    Utf16Be,
    /// A legacy encoding, or not text.
    Other,
}

/// Detects the encoding from the byte-order mark, or by validating UTF-8.
///
/// A sample that ends within a character still counts as UTF-8.
#[must_use]
pub fn encoding(sample: &[u8]) -> Encoding {
    match sample {
        [0xEF, 0xBB, 0xBF, rest @ ..] if is_utf8(rest) => Encoding::Utf8Bom,
        // The mark of UTF-32 starts like that of UTF-16.
        [0xFF, 0xFE, 0, 0, ..] => Encoding::Other,
        [0xFF, 0xFE, ..] => Encoding::Utf16Le,
        [0xFE, 0xFF, ..] => Encoding::Utf16Be,
        _ if is_utf8(sample) => Encoding::Utf8,
        _ => Encoding::Other,
    }
}

fn is_utf8(sample: &[u8]) -> bool {
    match std::str::from_utf8(sample) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

/// Returns the media type of an image that models can see; the content decides.
#[must_use]
pub fn image_type(sample: &[u8]) -> Option<&'static str> {
    match infer::get(sample)?.mime_type() {
        "image/png" => Some("image/png"),
        "image/jpeg" => Some("image/jpeg"),
        // Three letters are not enough, because a text may start with them.
        "image/gif" if sample.starts_with(b"GIF87a") || sample.starts_with(b"GIF89a") => {
            Some("image/gif")
        }
        "image/webp" => Some("image/webp"),
        _ => None,
    }
}

/// Returns the name of a known file type that is not text: `PDF document`.
#[must_use]
pub fn kind_name(sample: &[u8]) -> Option<&'static str> {
    if let Some(image) = image_type(sample) {
        return Some(match image {
            "image/png" => "PNG image",
            "image/jpeg" => "JPEG image",
            "image/gif" => "GIF image",
            _ => "WebP image",
        });
    }
    let extension = infer::get(sample)?.extension();
    // Some signatures are two letters (`BM`, `MZ`), which a text may start with.
    if extension != "pdf" && !is_binary(sample) && is_utf8(sample) {
        return None;
    }
    KINDS
        .iter()
        .find(|(known, _)| *known == extension)
        .map(|(_, name)| *name)
}

/// Keyed by the extension that `infer` returns.
const KINDS: &[(&str, &str)] = &[
    ("pdf", "PDF document"),
    ("doc", "Word document"),
    ("docx", "Word document"),
    ("xls", "Excel spreadsheet"),
    ("xlsx", "Excel spreadsheet"),
    ("ppt", "PowerPoint presentation"),
    ("pptx", "PowerPoint presentation"),
    ("odt", "OpenDocument text"),
    ("ods", "OpenDocument spreadsheet"),
    ("odp", "OpenDocument presentation"),
    ("epub", "EPUB book"),
    ("mobi", "Mobipocket book"),
    ("rtf", "RTF document"),
    ("ps", "PostScript document"),
    ("zip", "ZIP archive"),
    ("tar", "tar archive"),
    ("gz", "gzip archive"),
    ("bz2", "bzip2 archive"),
    ("xz", "xz archive"),
    ("zst", "Zstandard archive"),
    ("lz4", "LZ4 archive"),
    ("lz", "lzip archive"),
    ("Z", "compress archive"),
    ("7z", "7-Zip archive"),
    ("rar", "RAR archive"),
    ("cab", "cabinet archive"),
    ("cpio", "cpio archive"),
    ("ar", "ar archive"),
    ("deb", "Debian package"),
    ("rpm", "RPM package"),
    ("crx", "Chrome extension"),
    ("msi", "Windows installer"),
    ("wasm", "WebAssembly module"),
    ("elf", "ELF executable"),
    ("exe", "Windows executable"),
    ("dll", "Windows library"),
    ("mach", "Mach-O executable"),
    ("obj", "object file"),
    ("class", "Java class"),
    ("bc", "LLVM bitcode"),
    ("dex", "Android executable"),
    ("der", "DER certificate"),
    ("sqlite", "SQLite database"),
    ("qcow2", "QEMU disk image"),
    ("bmp", "BMP image"),
    ("tif", "TIFF image"),
    ("ico", "icon"),
    ("psd", "Photoshop image"),
    ("heif", "HEIF image"),
    ("avif", "AVIF image"),
    ("jp2", "JPEG 2000 image"),
    ("jxl", "JPEG XL image"),
    ("jxr", "JPEG XR image"),
    ("djvu", "DjVu document"),
    ("mp4", "MP4 video"),
    ("m4v", "MP4 video"),
    ("mkv", "Matroska video"),
    ("webm", "WebM video"),
    ("mov", "QuickTime video"),
    ("avi", "AVI video"),
    ("mpg", "MPEG video"),
    ("mp3", "MP3 audio"),
    ("m4a", "MPEG-4 audio"),
    ("ogg", "Ogg audio"),
    ("opus", "Opus audio"),
    ("flac", "FLAC audio"),
    ("wav", "WAV audio"),
    ("midi", "MIDI audio"),
    ("aac", "AAC audio"),
    ("woff", "WOFF font"),
    ("woff2", "WOFF font"),
    ("ttf", "TrueType font"),
    ("otf", "OpenType font"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_text() {
        assert!(!is_binary(b"\x1b[32mok\x1b[0m\r\x1b[K\x08\x08\x07"));
        assert!(!is_binary(b"\x1b\x1b\x1b"));
        assert!(is_binary(b"\x1b[0m\0"));
        assert!(is_binary(b"\x1b\x1b\x1b\x01"));
    }

    #[test]
    fn a_nul_within_the_sample_is_binary() {
        assert!(is_binary(b"text\0text"));
        let mut late = vec![b'a'; SAMPLE_BYTES];
        late.push(0);
        assert!(!is_binary(&late));
        late[SAMPLE_BYTES - 1] = 0;
        assert!(is_binary(&late));
    }

    #[test]
    fn more_than_a_tenth_unprintable_is_binary() {
        assert!(!is_binary(b"\x0123456789A"));
        assert!(is_binary(b"\x0123456789"[..9].as_ref()));
        assert!(is_binary(b"\x0c\x7f3456789A"));
        assert!(!is_binary(b""));
        assert!(!is_binary(b"\t\n\r"));
        assert!(!is_binary(&[0xE9; 100]));
    }

    #[test]
    fn encodings() {
        assert_eq!(encoding(b""), Encoding::Utf8);
        assert_eq!(encoding("é".as_bytes()), Encoding::Utf8);
        assert_eq!(encoding(&"aé".as_bytes()[..2]), Encoding::Utf8);
        assert_eq!(encoding(b"caf\xe9!"), Encoding::Other);
        assert_eq!(encoding(b"\xEF\xBB\xBFx"), Encoding::Utf8Bom);
        assert_eq!(encoding(b"\xEF\xBB\xBF\xff!"), Encoding::Other);
        assert_eq!(encoding(b"\xFF\xFEx\0"), Encoding::Utf16Le);
        assert_eq!(encoding(b"\xFE\xFF\0x"), Encoding::Utf16Be);
        assert_eq!(encoding(b"\xFF\xFE\0\0x\0\0\0"), Encoding::Other);
    }

    #[test]
    fn images_by_content() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        assert_eq!(image_type(png), Some("image/png"));
        assert_eq!(
            image_type(b"\xFF\xD8\xFF\xE0\0\x10JFIF"),
            Some("image/jpeg")
        );
        assert_eq!(image_type(b"GIF89a\x01\0\x01\0"), Some("image/gif"));
        assert_eq!(image_type(b"RIFF\x24\0\0\0WEBPVP8 "), Some("image/webp"));
        assert_eq!(image_type(b"GIF is a format"), None);
        assert_eq!(image_type(b"BM\0\0\0\0"), None);
        assert_eq!(image_type(b""), None);
    }

    #[test]
    fn names_of_other_kinds() {
        assert_eq!(kind_name(b"%PDF-1.7\n"), Some("PDF document"));
        let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
        elf.resize(64, 0);
        assert_eq!(kind_name(&elf), Some("ELF executable"));
        assert_eq!(kind_name(b"PK\x03\x04\x14\0\0\0"), Some("ZIP archive"));
        assert_eq!(kind_name(b"SQLite format 3\0"), Some("SQLite database"));
        assert_eq!(kind_name(b"\x89PNG\r\n\x1a\n"), Some("PNG image"));
        assert_eq!(kind_name(b"MZ is a label"), None);
        assert_eq!(kind_name(b"<!DOCTYPE html><html>"), None);
        assert_eq!(kind_name(b"#!/bin/sh\n"), None);
        assert_eq!(kind_name(b"plain"), None);
    }

    #[test]
    fn every_kind_is_one_that_infer_knows() {
        for (extension, _) in KINDS {
            assert!(infer::is_supported(extension), "{extension}");
        }
    }
}

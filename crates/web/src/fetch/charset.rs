//! Bytes as text, by whatever says how they are encoded.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};
use haft_ops::text::decode::lf;

/// How much of the beginning of a page is searched for what it says of itself.
const LOOKED_AT: usize = 4 << 10;

/// Decodes a body: by its byte order mark, what the server says, what the page says,
/// or, where nobody says anything, as UTF-8 if it is that.
pub(super) fn decode(bytes: &[u8], content_type: &str) -> String {
    let (encoding, skip) = match Encoding::for_bom(bytes) {
        Some((encoding, length)) => (encoding, length),
        None => (
            named(content_type)
                .or_else(|| in_page(bytes))
                .unwrap_or_else(|| guess(bytes)),
            0,
        ),
    };
    let body = bytes.get(skip..).unwrap_or_default();
    let (text, _) = encoding.decode_without_bom_handling(body);
    lf(&text).into_owned()
}

/// The encoding that a `content-type` names.
fn named(content_type: &str) -> Option<&'static Encoding> {
    content_type
        .split(';')
        .skip(1)
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"))
        .and_then(|(_, label)| {
            Encoding::for_label(label.trim().trim_matches(['"', '\'']).as_bytes())
        })
}

/// The encoding that the beginning of a page names: `<meta charset=…>`, `<?xml
/// encoding=…?>`.
fn in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = bytes.get(..LOOKED_AT).unwrap_or(bytes);
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let is_marked_up = start.trim_start().starts_with('<');
    if !is_marked_up {
        return None;
    }
    let of_xml = start
        .split_once("?>")
        .filter(|(front, _)| front.trim_start().starts_with("<?xml"))
        .and_then(|(front, _)| front.split_once("encoding"));
    let rest = of_xml.or_else(|| start.split_once("charset"))?.1;
    let label = rest.trim_start().strip_prefix('=')?.trim_start();
    let label = label.trim_start_matches(['"', '\'']);
    let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')));
    let label = label.get(..end.unwrap_or(label.len()))?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // It was read byte by byte, so it is not what it says.
    if encoding == UTF_16LE || encoding == UTF_16BE {
        return Some(UTF_8);
    }
    Some(encoding)
}

fn guess(bytes: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(bytes) {
        Ok(_) => UTF_8,
        // A body that was cut may end within a character.
        Err(error) if error.error_len().is_none() => UTF_8,
        Err(_) => WINDOWS_1252,
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn whoever_knows_best_is_believed() {
        for (bytes, content_type, text) in [
            (&b"gr\xc3\xbcn"[..], "text/plain", "grün"),
            (b"gr\xfcn", "text/plain", "grün"),
            (b"gr\xfcn", "text/plain; charset=ISO-8859-1", "grün"),
            (b"gr\xc3\xbcn", "text/html; Charset=\"utf-8\"", "grün"),
            (
                b"\xef\xbb\xbfgr\xc3\xbcn",
                "text/plain; charset=latin1",
                "grün",
            ),
            (b"\xff\xfeg\0r\0\xfc\0n\0", "text/plain", "grün"),
            (
                b"<meta charset=shift_jis>\x93\xfa",
                "text/html",
                "<meta charset=shift_jis>日",
            ),
            (
                b"<?xml version='1.0' encoding='koi8-r'?>\xc4\xc1",
                "text/xml",
                "<?xml version='1.0' encoding='koi8-r'?>да",
            ),
            (
                b"<meta charset=utf-16>\xc3\xbc",
                "text/html",
                "<meta charset=utf-16>ü",
            ),
            (b"a\r\nb", "text/plain; charset=nonsense", "a\nb"),
            (b"cut \xc3", "text/plain", "cut \u{fffd}"),
        ] {
            assert_eq!(decode(bytes, content_type), text, "{content_type}");
        }
    }
}

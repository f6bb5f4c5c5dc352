//! String formats. Only checked well enough to catch typos: the tool makes the final check.

use super::{MAX_NAME, sanitize};

/// Description of a format.
pub(super) fn describe(format: &str) -> String {
    match format {
        "email" => "an email address".to_owned(),
        "uri" => "a URL such as https://example.com".to_owned(),
        "date" => "a date such as 2026-01-31".to_owned(),
        "date-time" => "a time such as 2026-01-31T14:30:00Z".to_owned(),
        other => sanitize(other, MAX_NAME),
    }
}

/// Checks a text against a format.
pub(super) fn check(format: &str, text: &str) -> Result<(), String> {
    let holds = match format {
        "email" => is_email(text),
        "uri" => url::Url::parse(text).is_ok(),
        "date" => is_date(text),
        "date-time" => is_date_time(text),
        _ => true,
    };
    match holds {
        true => Ok(()),
        false => Err(format!("expected {}", describe(format))),
    }
}

fn is_email(text: &str) -> bool {
    let parts = text.rsplit_once('@');
    parts.is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
        && !text.contains(char::is_whitespace)
}

fn is_date(text: &str) -> bool {
    // The parser checks the length of months.
    text.len() == "2026-01-31".len()
        && humantime::parse_rfc3339(&format!("{text}T00:00:00Z")).is_ok()
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else {
        return false;
    };
    let (time, offset) = match time.find(['Z', 'z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => return false,
    };
    let is_offset = match offset.get(1..) {
        Some("") => offset.eq_ignore_ascii_case("z"),
        Some(hours) => {
            !offset.starts_with(['Z', 'z'])
                && hours.len() == "01:00".len()
                && humantime::parse_rfc3339(&format!("2026-01-01T{hours}:00Z")).is_ok()
        }
        None => false,
    };
    is_date(date) && is_offset && humantime::parse_rfc3339(&format!("{date}T{time}Z")).is_ok()
}

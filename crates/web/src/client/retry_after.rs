//! The `Retry-After` header.

use std::time::{Duration, SystemTime};

/// Parses a `Retry-After` value: seconds or a date.
pub(crate) fn retry_after(value: &str) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(
        date.duration_since(SystemTime::now())
            .unwrap_or(Duration::ZERO),
    )
}

#[cfg(test)]
mod tests {
    use super::retry_after;
    use std::time::{Duration, SystemTime};

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        assert_eq!(retry_after(" 7 "), Some(Duration::from_secs(7)));
        assert_eq!(retry_after("0.5"), Some(Duration::from_millis(500)));
        for none in ["-1", "NaN", "inf", "soon", ""] {
            assert_eq!(retry_after(none), None, "{none}");
        }
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(60));
        let wait = retry_after(&soon).expect("a date");
        assert!((58..=60).contains(&wait.as_secs()), "{wait:?}");
        let past = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH);
        assert_eq!(retry_after(&past), Some(Duration::ZERO));
    }
}

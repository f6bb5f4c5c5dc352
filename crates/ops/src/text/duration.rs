//! Durations in words.

use std::time::Duration;

/// Formats a duration in words: `1 second`, `120 seconds`, `2.5 seconds`.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    let tenths = duration.as_millis().div_ceil(100);
    match (tenths / 10, tenths % 10) {
        (1, 0) => "1 second".to_owned(),
        (whole, 0) => format!("{whole} seconds"),
        (whole, tenth) => format!("{whole}.{tenth} seconds"),
    }
}

/// Formats a duration to the millisecond: `1s`, `120s`, `1.5s`.
#[must_use]
pub fn short(duration: Duration) -> String {
    let whole = duration.as_secs();
    match duration.subsec_millis() {
        0 => format!("{whole}s"),
        rest => format!("{}s", format!("{whole}.{rest:03}").trim_end_matches('0')),
    }
}

#[cfg(test)]
mod tests {
    use super::{seconds, short};
    use std::time::Duration;

    #[test]
    fn one_is_singular_and_halves_are_shown() {
        assert_eq!(seconds(Duration::from_secs(1)), "1 second");
        assert_eq!(seconds(Duration::from_secs(120)), "120 seconds");
        assert_eq!(seconds(Duration::from_millis(2500)), "2.5 seconds");
        assert_eq!(seconds(Duration::from_millis(1)), "0.1 seconds");
    }

    #[test]
    fn the_short_form_is_exact() {
        let shown = |millis| short(Duration::from_millis(millis));
        assert_eq!(shown(1500), "1.5s");
        assert_eq!(shown(120_000), "120s");
        assert_eq!(shown(1250), "1.25s");
        assert_eq!(shown(50), "0.05s");
        assert_eq!(shown(10_001), "10.001s");
    }
}

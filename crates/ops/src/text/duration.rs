//! Times in words.

use std::time::Duration;

/// `1 second`, `120 seconds`, `2.5 seconds`.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    let tenths = duration.as_millis().div_ceil(100);
    match (tenths / 10, tenths % 10) {
        (1, 0) => "1 second".to_owned(),
        (whole, 0) => format!("{whole} seconds"),
        (whole, tenth) => format!("{whole}.{tenth} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use super::seconds;
    use std::time::Duration;

    #[test]
    fn one_is_singular_and_halves_are_shown() {
        assert_eq!(seconds(Duration::from_secs(1)), "1 second");
        assert_eq!(seconds(Duration::from_secs(120)), "120 seconds");
        assert_eq!(seconds(Duration::from_millis(2500)), "2.5 seconds");
        assert_eq!(seconds(Duration::from_millis(1)), "0.1 seconds");
    }
}

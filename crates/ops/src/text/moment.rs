//! Times in RFC 3339 format, in UTC: `2026-11-15T04:36:07Z`. Supports any time, even before
//! 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Last second with a four-digit year.
const LAST: i64 = 253_402_300_799;
/// First second of the year 0.
const FIRST: i64 = -62_167_219_200;

/// Formats a time to the second.
#[must_use]
pub fn to_seconds(time: SystemTime) -> String {
    let (seconds, _) = since_epoch(time);
    format!("{}Z", written(seconds))
}

/// Formats a time to the millisecond.
#[must_use]
pub fn to_millis(time: SystemTime) -> String {
    let (seconds, nanos) = since_epoch(time);
    format!("{}.{:03}Z", written(seconds), nanos / 1_000_000)
}

/// Returns the seconds since 1970, which may be negative, and the nanoseconds after them. A
/// time without a four-digit year is replaced by the nearest one that has it.
fn since_epoch(time: SystemTime) -> (i64, u32) {
    let whole = |distance: Duration| i64::try_from(distance.as_secs()).unwrap_or(i64::MAX);
    let (seconds, nanos) = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (whole(since), since.subsec_nanos()),
        Err(before) => match before.duration() {
            before if before.subsec_nanos() == 0 => (-whole(before), 0),
            before => (-whole(before) - 1, 1_000_000_000 - before.subsec_nanos()),
        },
    };
    match seconds {
        FIRST..=LAST => (seconds, nanos),
        ..FIRST => (FIRST, 0),
        _ => (LAST, 0),
    }
}

/// Formats the time without its time zone.
fn written(seconds: i64) -> String {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

/// Returns the Gregorian date of a day, counted from 1970-01-01. Years start in March here,
/// so that the leap day is the last one.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, nanos: u32) -> SystemTime {
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let begin = if seconds < 0 {
            UNIX_EPOCH - whole
        } else {
            UNIX_EPOCH + whole
        };
        begin + Duration::from_nanos(nanos.into())
    }

    #[test]
    fn any_time_can_be_formatted() {
        for (seconds, nanos, expected) in [
            (0, 0, "1970-01-01T00:00:00.000Z"),
            (1_794_717_367, 5_000_000, "2026-11-15T04:36:07.005Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000Z"),
            (4_107_542_400, 0, "2100-03-01T00:00:00.000Z"),
            (-1, 999_000_000, "1969-12-31T23:59:59.999Z"),
            (-2_208_988_800, 0, "1900-01-01T00:00:00.000Z"),
            (LAST, 0, "9999-12-31T23:59:59.000Z"),
            (LAST + 1, 0, "9999-12-31T23:59:59.000Z"),
            (FIRST, 0, "0000-01-01T00:00:00.000Z"),
            (FIRST - 1, 0, "0000-01-01T00:00:00.000Z"),
            (1 << 60, 0, "9999-12-31T23:59:59.000Z"),
            (-(1 << 60), 0, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(to_millis(at(seconds, nanos)), expected, "{seconds}");
        }
        assert_eq!(to_seconds(at(-1, 0)), "1969-12-31T23:59:59Z");
    }

    #[test]
    fn times_sort_like_their_texts() {
        let mut before = String::new();
        for seconds in (FIRST..LAST).step_by(86_400 * 97 + 12_345) {
            let text = to_seconds(at(seconds, 0));
            assert!(text > before, "{text} {before}");
            before = text;
        }
    }
}

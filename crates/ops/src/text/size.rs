//! Sizes in human-readable form.

const UNITS: [&str; 5] = ["B", "KB", "MB", "GB", "TB"];

/// Formats a number of bytes with at most one decimal: `512B`, `50KB`, `1.5MB`.
///
/// Units are powers of 1024. A value that would round to 1024 of a unit is shown as 1 of
/// the next, so `1024KB` never appears.
#[must_use]
pub fn size(bytes: u64) -> String {
    let last = UNITS.len() - 1;
    let mut power = 0;
    let mut unit: u128 = 1;
    while power < last && tenths(bytes, unit) >= 10_240 {
        power += 1;
        unit *= 1024;
    }
    let tenths = tenths(bytes, unit);
    let name = UNITS.get(power).copied().unwrap_or_default();
    match tenths % 10 {
        0 => format!("{}{name}", tenths / 10),
        decimal => format!("{}.{decimal}{name}", tenths / 10),
    }
}

/// Returns `bytes / unit` in tenths, rounded half up, without floating-point errors.
fn tenths(bytes: u64, unit: u128) -> u128 {
    (u128::from(bytes) * 10 + unit / 2) / unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_decimal_and_none_if_zero() {
        for (bytes, text) in [
            (0, "0B"),
            (1, "1B"),
            (512, "512B"),
            (1023, "1023B"),
            (1024, "1KB"),
            (1536, "1.5KB"),
            (51_200, "50KB"),
            (51_250, "50KB"),
            (51_252, "50.1KB"),
            (319_898, "312.4KB"),
            (1_572_864, "1.5MB"),
            (1 << 30, "1GB"),
            (1 << 40, "1TB"),
            (u64::MAX, "16777216TB"),
        ] {
            assert_eq!(size(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn rounding_up_moves_to_the_next_unit() {
        assert_eq!(size(1024 * 1024 - 1), "1MB");
        assert_eq!(size(1024 * 1024 - 52), "1023.9KB");
        assert_eq!(size(1024 * 1024 - 51), "1MB");
        assert_eq!(size((1 << 30) - 1), "1GB");
        assert_eq!(size((1 << 40) - 1), "1TB");
    }

    proptest! {
        #[test]
        fn within_half_a_tenth(bytes in 0u64..(1 << 50)) {
            let shown = size(bytes);
            let split = shown.find(|c: char| c.is_ascii_alphabetic()).unwrap();
            let (number, unit) = shown.split_at(split);
            let power = UNITS.iter().position(|u| *u == unit).unwrap();
            let factor = 1024f64.powi(power as i32);
            let value: f64 = number.parse().unwrap();
            prop_assert!((value * factor - bytes as f64).abs() <= factor * 0.0501);
            prop_assert!(power == UNITS.len() - 1 || value < 1024.0);
            prop_assert!(!number.ends_with(".0"));
        }
    }
}

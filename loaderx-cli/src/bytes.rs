//! Numbers for people.

/// A number of bytes with a unit: `11.2 MiB`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn human(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["bytes", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "bytes" { format!("{bytes} bytes") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// `a` by `b`, for ratios and rates that people read.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn quotient(a: u64, b: u64) -> f64 {
    if b == 0 { 1.0 } else { a as f64 / b as f64 }
}

/// The number with its digits in groups of three: `60,000`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([human(0), human(1023), human(1024)], ["0 bytes", "1023 bytes", "1.0 KiB"]);
        assert_eq!(human(3 << 40), "3.0 TiB");
        assert_eq!([grouped(0), grouped(999), grouped(60_000)], ["0", "999", "60,000"]);
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }
}

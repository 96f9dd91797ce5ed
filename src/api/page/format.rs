//! Numbers as people read them.

use time::OffsetDateTime;

/// Day and minute, UTC.
pub(super) fn minute(at: OffsetDateTime) -> String {
    format!("{} {:02}:{:02}", at.date(), at.hour(), at.minute())
}

/// A share as a percentage.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "–".into(), |v| format!("{:.1} %", 100.0 * v))
}

/// A number with so many digits.
pub(super) fn digits(value: Option<f64>, n: usize) -> String {
    value.map_or_else(|| "–".into(), |v| format!("{v:.n$}"))
}

/// A count: 950, 12.3 k, 4.5 M.
pub(super) fn count(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.1} G", v / 1e9),
        v if v >= 1e6 => format!("{:.1} M", v / 1e6),
        v if v >= 1e4 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

/// A span of time: 45 s, 3 min 20 s, 5 h 12 min.
pub(super) fn span(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{count, span};

    #[test]
    fn numbers_are_short() {
        assert_eq!([count(950.0), count(12_345.0), count(4.5e6)], ["950", "12.3 k", "4.5 M"]);
        assert_eq!([span(45.2), span(200.0), span(18_750.0)], ["45 s", "3 min 20 s", "5 h 12 min"]);
    }
}

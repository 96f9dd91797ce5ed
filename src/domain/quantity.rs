//! Numbers as people read them.

/// A count: 950, 12.3 k, 4.5 M.
#[must_use]
pub fn count(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.1} G", v / 1e9),
        v if v >= 1e6 => format!("{:.1} M", v / 1e6),
        v if v >= 1e4 => format!("{:.1} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

/// A span of time: 45 s, 3 min 20 s, 5 h 12 min, 3 d 4 h.
#[must_use]
pub fn span(seconds: f64) -> String {
    let s = seconds.max(0.0).round() as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        3600..86_400 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        _ => format!("{} d {} h", s / 86_400, s % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::{count, span};

    #[test]
    fn numbers_are_short() {
        assert_eq!([count(950.0), count(12_345.0), count(4.5e6)], ["950", "12.3 k", "4.5 M"]);
        let spans = [span(45.2), span(200.0), span(18_750.0), span(273_600.0)];
        assert_eq!(spans, ["45 s", "3 min 20 s", "5 h 12 min", "3 d 4 h"]);
    }
}

//! Means over seeds, and how sure they are.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean with its spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Summary {
    pub n: usize,
    pub mean: f64,
    /// Sample standard deviation; 0 for one value.
    pub deviation: f64,
    /// Half the width of the 95 % interval of the mean (Student's t); none for one value.
    pub margin: Option<f64>,
}

/// Sums up values; none if there are none.
pub(super) fn summary(values: &[f64]) -> Option<Summary> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let deviation = if n > 1 { (squares / (n - 1) as f64).sqrt() } else { 0.0 };
    let margin = (n > 1)
        .then(|| StudentsT::new(0.0, 1.0, (n - 1) as f64).ok())
        .flatten()
        .map(|t| t.inverse_cdf(0.975) * deviation / (n as f64).sqrt());
    Some(Summary { n, mean, deviation, margin })
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn the_interval_of_five_values_is_students() {
        let found = summary(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap_or_else(|| panic!("no summary"));
        assert!((found.mean - 3.0).abs() < 1e-12);
        assert!((found.deviation - 1.581_138_83).abs() < 1e-6);
        // 2.776 · 1.5811 / √5
        let margin = found.margin.unwrap_or_else(|| panic!("no margin"));
        assert!((margin - 1.963_243).abs() < 1e-4, "{margin}");
        assert!(summary(&[]).is_none());
        assert_eq!(summary(&[2.0]).and_then(|s| s.margin), None);
    }
}

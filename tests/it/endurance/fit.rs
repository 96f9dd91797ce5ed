//! A line through values.

/// How much the line of least squares through the values rises from the first to the last.
pub fn rise(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / n;
    let (mut across, mut along) = (0.0, 0.0);
    for (at, value) in values.iter().enumerate() {
        let from_middle = at as f64 - middle;
        across += from_middle * (value - mean);
        along += from_middle * from_middle;
    }
    if along == 0.0 { 0.0 } else { across / along * (n - 1.0) }
}

#[test]
fn a_rise_is_that_of_the_line_and_not_of_one_value() {
    assert_eq!(rise(&[1.0, 2.0, 3.0, 4.0]), 3.0);
    assert_eq!(rise(&[5.0, 5.0, 5.0]), 0.0);
    assert_eq!(rise(&[7.0]), 0.0);
    assert!(rise(&[1.0, 9.0, 1.0, 1.0, 9.0, 1.0]).abs() < 1e-9);
}

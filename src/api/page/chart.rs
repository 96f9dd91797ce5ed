//! A line chart as SVG: points that were measured, joined in order.

use std::fmt::Write as _;

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 200.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 10.0;
const RIGHT: f64 = 12.0;

/// Draws a series over iterations `0..=last`; the axis goes up to `top`, or to the largest value.
pub(super) fn line(series: &[(i32, f64)], last: i32, top: Option<f64>) -> String {
    let highest = series.iter().map(|(_, v)| *v).fold(0.0, f64::max);
    let top = top.unwrap_or(highest * 1.1).max(1e-9);
    let x = |i: f64| LEFT + (WIDTH - LEFT - RIGHT) * i / f64::from(last.max(1));
    let y = |v: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - v / top);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" preserveAspectRatio=\"xMidYMid meet\">"
    );
    // Writing to a string cannot fail.
    for tick in 0..=4 {
        let value = top * f64::from(tick) / 4.0;
        let at = y(value);
        let text = if (top - 1.0).abs() < 1e-9 {
            format!("{:.0} %", value * 100.0)
        } else {
            format!("{value:.2}")
        };
        let right = WIDTH - RIGHT;
        let _ = write!(svg, "<line class=grid x1={LEFT} x2={right} y1={at:.1} y2={at:.1} />");
        let (tx, ty) = (LEFT - 6.0, at + 4.0);
        let _ = write!(svg, "<text class=tick x={tx} y={ty:.1} text-anchor=end>{text}</text>");
    }
    let step = (last / 6).max(1);
    for i in (0..=last).step_by(usize::try_from(step).unwrap_or(1)) {
        let (tx, ty) = (x(f64::from(i)), HEIGHT - 6.0);
        let _ = write!(svg, "<text class=tick x={tx:.1} y={ty} text-anchor=middle>{i}</text>");
    }
    let mut path = String::new();
    for (n, (i, v)) in series.iter().enumerate() {
        let (px, py) = (x(f64::from(*i)), y(*v));
        let _ = write!(path, "{}{px:.1} {py:.1}", if n == 0 { "M" } else { " L" });
        let _ = write!(
            svg,
            "<circle class=dot cx={px:.1} cy={py:.1} r=3><title>iteration {i}: {v:.3}</title></circle>"
        );
    }
    let _ = write!(svg, "<path class=curve d=\"{path}\" /></svg>");
    svg
}

//! Learning curves: a line for the mean over seeds, a thin line for each seed.

use std::path::Path;

use plotters::prelude::*;

use super::{
    outcome::{Axis, Run},
    plan::Experiment,
};
use crate::cli::Failure;

const SIZE: (u32, u32) = (960, 520);
/// Room on the right for the names.
const LEGEND: i32 = 300;
const COLOURS: [RGBColor; 12] = [
    RGBColor(27, 94, 62),
    RGBColor(178, 58, 34),
    RGBColor(58, 87, 149),
    RGBColor(196, 138, 20),
    RGBColor(116, 66, 140),
    RGBColor(20, 140, 150),
    RGBColor(200, 80, 130),
    RGBColor(110, 120, 40),
    RGBColor(90, 90, 90),
    RGBColor(240, 120, 60),
    RGBColor(80, 160, 220),
    RGBColor(150, 110, 80),
];

/// Draws success against an axis.
pub(super) fn draw(
    file: &Path,
    experiment: &Experiment,
    runs: &[Run],
    axis: Axis,
) -> Result<(), Failure> {
    let shown = file.display().to_string();
    plot(file, experiment, runs, axis).map_err(|e| format!("cannot draw {shown}: {e}").into())
}

fn plot(
    file: &Path,
    experiment: &Experiment,
    runs: &[Run],
    axis: Axis,
) -> Result<(), Box<dyn std::error::Error>> {
    let furthest = runs.iter().flat_map(|r| &r.curve).map(|p| p.at(axis)).fold(1.0, f64::max);
    let root = SVGBackend::new(file, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .margin_right(LEGEND)
        .x_label_area_size(42)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..furthest, 0.0..1.0)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.1))
        .x_desc(axis.title())
        .x_label_formatter(&|v| short(*v))
        .y_label_formatter(&|v| format!("{:.0} %", 100.0 * v))
        .y_desc("held-out success")
        .draw()?;
    let width = SIZE.0 as i32;
    for (number, (arm, colour)) in experiment.arms.iter().zip(COLOURS.iter().cycle()).enumerate() {
        let runs: Vec<&Run> =
            runs.iter().filter(|r| r.arm == arm.name && !r.curve.is_empty()).collect();
        for run in &runs {
            let points = run.curve.iter().map(|p| (p.at(axis), p.success));
            chart.draw_series(LineSeries::new(points, colour.mix(0.22).stroke_width(1)))?;
        }
        chart.draw_series(LineSeries::new(mean(&runs, axis), colour.stroke_width(3)))?;
        let row = 24 + 22 * number as i32;
        let from = width - LEGEND + 12;
        root.draw(&PathElement::new(vec![(from, row), (from + 22, row)], colour.stroke_width(3)))?;
        let style = ("sans-serif", 14).into_font().color(&BLACK);
        root.draw(&Text::new(arm.title.clone(), (from + 30, row - 8), style))?;
    }
    root.present()?;
    Ok(())
}

/// The mean of the runs by evaluation, as far as all runs have one.
fn mean(runs: &[&Run], axis: Axis) -> Vec<(f64, f64)> {
    let length = runs.iter().map(|run| run.curve.len()).min().unwrap_or(0);
    let n = runs.len() as f64;
    (0..length)
        .map(|i| {
            let points = || runs.iter().map(|run| &run.curve[i]);
            let x = points().map(|p| p.at(axis)).sum::<f64>() / n;
            (x, points().map(|p| p.success).sum::<f64>() / n)
        })
        .collect()
}

fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.1} M", v / 1e6),
        v if v >= 1e4 => format!("{:.0} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

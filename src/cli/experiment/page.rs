//! `nlac experiment page`: writes stored results into a Markdown page, between two marks for each experiment.

use std::{fmt::Write, fs, path::Path, process::ExitCode};

use super::{
    Kept,
    budgets::{Equal, interval},
    measurement,
    outcome::{Axis, Run},
    plan::Experiment,
    resampling, table,
    worlds::{self, World},
};
use crate::{
    cli::{Failure, args::ExperimentPage, report},
    quantity::summary,
};

const END: &str = "<!-- end of results -->";

/// Axes with a figure on the page.
const DRAWN: [Axis; 2] = [Axis::EnvSteps, Axis::OptimizerSteps];

/// Writes the page and the figures.
pub(super) fn write(args: &ExperimentPage) -> Result<ExitCode, Failure> {
    let shown = args.page.display();
    let failed = |e: std::io::Error| format!("{shown}: {e}");
    let mut page = fs::read_to_string(&args.page).map_err(failed)?;
    let beside = args.page.parent().unwrap_or(Path::new("."));
    for World { experiment, results, .. } in worlds::load(&args.file, args.out.as_deref(), None)? {
        let kept = results.kept()?;
        let mut figures = Vec::new();
        for axis in DRAWN {
            let name = format!("{}-{}.svg", experiment.name, axis.slug());
            let place = args.images.join(&name);
            if results.curve(axis).is_file() {
                fs::create_dir_all(beside.join(&args.images)).map_err(failed)?;
                fs::copy(results.curve(axis), beside.join(&place)).map_err(failed)?;
                figures.push(format!(
                    "![Held-out success by {}, mean and each seed]({})\n",
                    axis.title(),
                    place.display()
                ));
            }
        }
        let text = section(&experiment, &kept, &figures)?;
        page = replaced(&page, &experiment.name, &text).map_err(|e| format!("{shown}: {e}"))?;
    }
    fs::write(&args.page, page).map_err(failed)?;
    report::line(&format!("written to {shown}"));
    Ok(ExitCode::SUCCESS)
}

/// The page with another text between the marks of an experiment.
fn replaced(page: &str, name: &str, text: &str) -> Result<String, String> {
    let begin = format!("<!-- results: {name} -->\n");
    let (before, rest) =
        page.split_once(&begin).ok_or_else(|| format!("there is no line {}", begin.trim()))?;
    let (_, after) =
        rest.split_once(END).ok_or_else(|| format!("there is no line {END} after {name}"))?;
    Ok(format!("{before}{begin}\n{text}\n{END}{after}"))
}

/// What is known of an experiment.
fn section(experiment: &Experiment, kept: &Kept, figures: &[String]) -> Result<String, Failure> {
    let planned = measurement(experiment, kept)?;
    let runs: Vec<Run> = planned.iter().filter_map(|run| kept.get(run)).collect();
    if runs.is_empty() {
        return Ok("**Not measured yet.**\n".into());
    }
    let mut text = String::new();
    if runs.len() < planned.len() {
        let _ = writeln!(text, "**Measured in part: {} of {} runs.**\n", runs.len(), planned.len());
    }
    for figure in figures {
        let _ = writeln!(text, "{figure}");
    }
    ends(&mut text, experiment, &runs);
    equal_budgets(&mut text, experiment, &runs);
    Ok(text)
}

/// One row per arm: where its runs ended, and how soon they learned.
fn ends(text: &mut String, experiment: &Experiment, runs: &[Run]) {
    let _ = write!(
        text,
        "| at the end | seeds | success | 95 % interval | area under the curve | environment steps to half of the \
         best arm's success |\n|---|--:|--:|--:|--:|--:|\n"
    );
    let best = table::best(experiment, runs);
    for arm in &experiment.arms {
        let of_arm = table::of(runs, &arm.name);
        let success: Vec<f64> = of_arm.iter().filter_map(|run| run.success()).collect();
        let Some(found) = summary(&success) else {
            let _ = writeln!(text, "| {} | 0 | not measured | | | |", arm.title);
            continue;
        };
        let areas: Vec<f64> = of_arm.iter().filter_map(|run| run.area()).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {:.1} % | {} | {} | {} |",
            arm.title,
            success.len(),
            100.0 * found.mean,
            interval(&success),
            summary(&areas).map_or("–".into(), |s| format!("{:.1}", 100.0 * s.mean)),
            table::until(&of_arm, best / 2.0, None),
        );
    }
}

/// One column per budget: success when an arm had used as much as the first arm used in total.
fn equal_budgets(text: &mut String, experiment: &Experiment, runs: &[Run]) {
    let equal: Vec<_> =
        Axis::ALL.iter().filter_map(|axis| Equal::of(experiment, runs, *axis)).collect();
    let Some(any) = equal.first() else { return };
    let titles: Vec<_> = equal.iter().map(Equal::title).collect();
    let _ = write!(
        text,
        "\n| at equal budgets | {} |\n|---|{}\n",
        titles.join(" | "),
        "--:|".repeat(titles.len())
    );
    for (place, reached) in any.arms.iter().enumerate().filter(|(_, r)| !r.success.is_empty()) {
        let cells = equal.iter().filter_map(|equal| {
            let reached = equal.arms.get(place)?;
            let mean = 100.0 * summary(&reached.success)?.mean;
            let p = resampling::paired_p(&reached.differences);
            let p = p.map_or_else(String::new, |p| format!(", p {p:.4}"));
            let early = if reached.early > 0 { "\\*" } else { "" };
            Some(format!("{mean:.1} %{early} ({}{p})", interval(&reached.success)))
        });
        let cells: Vec<_> = cells.collect();
        let _ = writeln!(text, "| {} | {} |", reached.arm.title, cells.join(" | "));
    }
    let ended = |equal: &Equal<'_>| equal.arms.iter().any(|reached| reached.early > 0);
    if equal.iter().any(ended) {
        text.push_str("\n\\* Some runs of this arm ended before they had used this much. Their success at the end counts.\n");
    }
}

#[cfg(test)]
mod tests {
    use super::replaced;

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let page = "a\n<!-- results: x -->\nold\n<!-- end of results -->\nb\n<!-- results: y -->\n\
                    <!-- end of results -->\n";
        let new = replaced(page, "x", "new\n").unwrap_or_default();
        let expected = page.replace("\nold\n", "\n\nnew\n\n");
        assert_eq!(new, expected);
        assert_eq!(replaced(&new, "x", "new\n").as_deref(), Ok(&*new));
        assert!(replaced(page, "z", "").is_err_and(|e| e.contains("results: z")));
    }
}

//! `nlac import`: a file of logged episodes into a dataset, piece by piece. Stopped and started again,
//! what is there already is skipped.

use std::{
    io::{BufRead, BufReader, Read},
    process::ExitCode,
};

use indicatif::{ProgressBar, ProgressStyle};

use super::{
    Failure,
    args::ImportArgs,
    client::{Api, named},
    report,
};

/// Bytes per request, about; a line is never cut.
const PIECE: usize = 4 << 20;

/// Runs the command.
pub async fn run(args: ImportArgs) -> Result<ExitCode, Failure> {
    let shown = args.file.display().to_string();
    let failed = |e: std::io::Error| format!("cannot read {shown}: {e}");
    let (reader, size): (Box<dyn Read>, u64) = if args.file.as_os_str() == "-" {
        (Box::new(std::io::stdin()), 0)
    } else {
        let file = std::fs::File::open(&args.file).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        (Box::new(file), size)
    };
    let mut reader = BufReader::new(reader);
    let api = Api::of(&args.service)?;
    let remedy = "use lower-case letters, digits and dashes, 63 at most";
    let path = format!("{}/episodes", named("/v1/datasets", &args.dataset, remedy)?);
    let style = ProgressStyle::with_template("  {bytes:>10} {bar:30.cyan} {total_bytes} {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar());
    let bar = ProgressBar::new(size).with_style(style);
    let (mut stored, mut repeated, mut refused, mut before) = (0, 0, 0, 0);
    loop {
        let (mut piece, mut lines) = (String::new(), 0);
        while piece.len() < PIECE {
            if reader.read_line(&mut piece).map_err(failed)? == 0 {
                break;
            }
            lines += 1;
        }
        if lines == 0 {
            break;
        }
        bar.inc(piece.len() as u64);
        let answer = api.post_lines(&path, piece).await?;
        stored += answer["stored"].as_u64().unwrap_or(0);
        repeated += answer["repeated"].as_u64().unwrap_or(0);
        for line in answer["refused"].as_array().into_iter().flatten() {
            refused += 1;
            let number = before + line["line"].as_u64().unwrap_or(0);
            let reason = line["reason"].as_str().unwrap_or_default();
            bar.suspend(|| report::error(&format!("{shown}:{number}: refused: {reason}")));
        }
        before += lines;
    }
    bar.finish_and_clear();
    if args.output.json {
        report::json(&serde_json::json!({
            "dataset": args.dataset, "stored": stored, "repeated": repeated, "refused": refused,
        }))?;
    } else {
        report::line(&format!(
            "dataset {}: {stored} episodes stored, {repeated} were there already, {refused} refused",
            args.dataset
        ));
    }
    let nothing = stored + repeated == 0;
    Ok(if nothing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

//! `nlac export`: what a job learned from, as JSON lines or Parquet.

use std::{
    fs,
    io::{BufWriter, IsTerminal},
    path::Path,
    process::ExitCode,
};

use clap::ValueEnum;

use super::{
    Failure,
    args::{ExportArgs, ExportFormat},
    client::Api,
    report,
};

/// Runs the command.
pub async fn run(args: ExportArgs) -> Result<ExitCode, Failure> {
    let api = Api::of(&args.service)?;
    let out = &args.out;
    let by_name = || {
        let parquet = out.extension().is_some_and(|ending| ending == "parquet");
        if parquet { ExportFormat::Parquet } else { ExportFormat::Jsonl }
    };
    let format = args.format.unwrap_or_else(by_name);
    let path =
        format!("/v1/jobs/{}/export?form={}&format={}", args.id, name(&args.form), name(&format));
    if out.as_os_str() == "-" {
        let mut output = std::io::stdout();
        if format == ExportFormat::Parquet && output.is_terminal() {
            return Err("Parquet cannot be printed on a terminal; give a file with --out".into());
        }
        api.save(&path, &mut output).await?;
        return Ok(ExitCode::SUCCESS);
    }
    // An interrupted export must not get the final file name.
    let mut partial = out.clone().into_os_string();
    partial.push(".part");
    let partial = Path::new(&partial);
    let cannot =
        |e: std::io::Error| format!("cannot write {}: {e}; choose another --out", out.display());
    let mut file = BufWriter::new(fs::File::create(partial).map_err(cannot)?);
    let saved = api.save(&path, &mut file).await;
    let saved = saved
        .and_then(|bytes| fs::rename(partial, out).map(|()| bytes).map_err(|e| cannot(e).into()));
    if saved.is_err() {
        let _ = fs::remove_file(partial);
    }
    report::line(&format!("{} bytes in {}", saved?, out.display()));
    Ok(ExitCode::SUCCESS)
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

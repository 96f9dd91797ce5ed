//! `nlac export`: what a job learnt from, as lines of JSON.

use std::{io::Write, process::ExitCode};

use clap::ValueEnum;

use super::{Failure, args::ExportArgs, client::Api, report};

/// Runs the command.
pub async fn run(args: ExportArgs) -> Result<ExitCode, Failure> {
    let api = Api::of(&args.service)?;
    let form = args.form.to_possible_value().map(|form| form.get_name().to_owned());
    let path = format!("/v1/jobs/{}/export?form={}", args.id, form.unwrap_or_default());
    let lines = api.get_bytes(&path).await?;
    let count = lines.iter().filter(|byte| **byte == b'\n').count();
    if args.out.as_os_str() == "-" {
        std::io::stdout().write_all(&lines)?;
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::write(&args.out, lines)
        .map_err(|e| format!("cannot write {}: {e}; choose another --out", args.out.display()))?;
    report::line(&format!("{count} lines in {}", args.out.display()));
    Ok(ExitCode::SUCCESS)
}

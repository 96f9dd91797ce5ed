//! `nlac export`: what a job learned from, as JSON lines or Parquet.

use std::process::ExitCode;

use clap::ValueEnum;

use super::{
    Failure,
    args::{ExportArgs, ExportFormat},
    client::Api,
    saving::Target,
};

/// Runs the command.
pub async fn run(args: ExportArgs) -> Result<ExitCode, Failure> {
    let api = Api::of(&args.service)?;
    let by_name = || {
        let parquet = args.out.extension().is_some_and(|ending| ending == "parquet");
        if parquet { ExportFormat::Parquet } else { ExportFormat::Jsonl }
    };
    let format = args.format.unwrap_or_else(by_name);
    let route =
        format!("/v1/jobs/{}/export?form={}&format={}", args.id, name(&args.form), name(&format));
    let binary = (format == ExportFormat::Parquet).then_some("Parquet");
    Target { out: &args.out, binary, json: false }.save(&api, &route).await?;
    Ok(ExitCode::SUCCESS)
}

fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

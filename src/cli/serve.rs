//! `nlac serve` and `nlac migrate`.

use std::{process::ExitCode, str::FromStr};

use tokio::signal::unix::{SignalKind, signal};

use super::{Failure, args::ServeArgs, report};
use crate::{
    app::{App, ServiceSettings},
    embedded::postgres::Postgres,
    store::Store,
    telemetry,
};

/// Serves until it is told to stop.
pub async fn run(args: ServeArgs) -> Result<ExitCode, Failure> {
    let traces = telemetry::init("warn,nlac=info");
    let settings = ServiceSettings::from(args);
    let app = App::start(&settings).await?;
    report::line(&format!(
        "nlac serves http://{} (data in {})",
        app.address,
        settings.data_dir.display()
    ));
    if app.own_key.is_some() {
        report::line(
            "one signs in with an API key; `nlac keys create` makes them, --sign-in off asks for none",
        );
    }
    until_told().await?;
    report::line("stopping: what is under way finishes or is given back");
    app.stop().await;
    traces.flush().await;
    Ok(ExitCode::SUCCESS)
}

/// Resolves at SIGINT or SIGTERM.
pub(super) async fn until_told() -> Result<(), Failure> {
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

/// Brings the schema up to date.
pub async fn migrate(args: ServeArgs) -> Result<ExitCode, Failure> {
    let settings = ServiceSettings::from(args);
    let postgres = match &settings.database_url {
        Some(_) => None,
        None => Some(Postgres::start(&settings.data_dir.join("postgres"), settings.durable).await?),
    };
    let options = match (&postgres, &settings.database_url) {
        (Some(postgres), _) => postgres.options().clone(),
        (None, Some(url)) => sqlx::postgres::PgConnectOptions::from_str(url)?,
        (None, None) => return Err("there is no database".into()),
    };
    Store::connect(options).await?.close().await;
    if let Some(postgres) = postgres {
        postgres.stop().await?;
    }
    report::line("the schema is up to date");
    Ok(ExitCode::SUCCESS)
}

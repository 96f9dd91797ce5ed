//! What it costs to be looked at: first bytes of every page with a full database and many viewers, and what
//! one viewer takes from a running job.
//!
//! `cargo bench --bench viewers -- [--transitions 1000000] [--viewers 20] [--seconds 60] [--data-dir DIR]`

#![expect(clippy::unwrap_used, reason = "a measurement that fails says where")]

mod fill;
mod job;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use clap::Parser;
use nlac::app::{App, ServiceSettings};
use rand::Rng;

#[derive(Parser)]
struct Args {
    /// Transitions in the database.
    #[arg(long, default_value_t = 1_000_000)]
    transitions: i64,
    /// Viewers at a time, each with a second between two pages.
    #[arg(long, default_value_t = 20)]
    viewers: usize,
    /// How long they look.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Where the database lies; kept if it is named, and filled only once.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// How often a job is run alone and with a viewer.
    #[arg(long, default_value_t = 4)]
    repeats: usize,
    /// What cargo says to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

type Times = Arc<Mutex<Vec<(&'static str, Duration)>>>;

#[tokio::main]
async fn main() {
    let args = Args::parse();
    let temporary = tempfile::tempdir().unwrap();
    let data_dir = args.data_dir.clone().unwrap_or_else(|| temporary.path().join("data"));
    // Postgres' own user must reach it.
    std::fs::set_permissions(temporary.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .unwrap();
    let listen = ([127, 0, 0, 1], 0).into();
    let settings = ServiceSettings { listen, data_dir, threads: 1, ..ServiceSettings::default() };
    let app = App::start(&settings).await.unwrap();
    let url = format!("http://{}", app.address);
    let transitions = fill::fill(&app, &url, args.transitions).await;
    println!("{transitions} transitions");

    let pages = fill::pages(&app).await;
    let times = Times::default();
    let until = Instant::now() + Duration::from_secs(args.seconds);
    let viewers = (0..args.viewers).map(|_| {
        let (pages, url, times) = (pages.clone(), url.clone(), times.clone());
        tokio::spawn(async move { look(&url, &pages, &times, until).await })
    });
    for viewer in viewers.collect::<Vec<_>>() {
        viewer.await.unwrap();
    }
    report(&times.lock().unwrap(), args.viewers);

    if args.repeats > 0 {
        job::cost_of_a_viewer(&url, args.repeats).await;
    }
    app.stop().await;
}

/// A client that waits for no answer for ever.
fn client() -> reqwest::Client {
    reqwest::Client::builder().read_timeout(Duration::from_secs(60)).build().unwrap()
}

/// A viewer: a page, a second, another one.
async fn look(url: &str, pages: &[(&'static str, String)], times: &Times, until: Instant) {
    let http = client();
    while Instant::now() < until {
        let (name, path) = &pages[rand::rng().random_range(0..pages.len())];
        let begun = Instant::now();
        let answer = http.get(format!("{url}{path}")).send().await.unwrap();
        let first_byte = begun.elapsed();
        assert_eq!(answer.status(), 200, "{path}");
        answer.bytes().await.unwrap();
        times.lock().unwrap().push((name, first_byte));
        let pause = rand::rng().random_range(0.5..1.5);
        tokio::time::sleep(Duration::from_secs_f64(pause)).await;
    }
}

fn report(times: &[(&'static str, Duration)], viewers: usize) {
    let mut names: Vec<_> = times.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names.dedup();
    println!(
        "{viewers} viewers, first byte in ms\n{:24} {:>6} {:>8} {:>8}",
        "page", "asked", "median", "p99"
    );
    for name in names.into_iter().chain(["all"]) {
        let chosen = times.iter().filter(|(of, _)| name == "all" || *of == name);
        let mut chosen: Vec<f64> = chosen.map(|(_, time)| time.as_secs_f64() * 1e3).collect();
        chosen.sort_by(f64::total_cmp);
        let at = |share: f64| chosen[((chosen.len() - 1) as f64 * share).round() as usize];
        println!("{name:24} {:>6} {:>8.1} {:>8.1}", chosen.len(), at(0.5), at(0.99));
    }
}

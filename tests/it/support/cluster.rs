//! A cluster with the schema in it, made once per test process and copied for each test: making one takes a second, and
//! copying one a twentieth of that.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use nlac::{embedded::postgres::Postgres, store::Store};
use tokio::sync::OnceCell;

use super::Place;

static MADE: OnceCell<PathBuf> = OnceCell::const_new();

/// Lays a cluster out where a service will look for its own, unless there is one.
pub async fn lay_out(root: &Path) {
    if root.exists() {
        return;
    }
    let made = MADE.get_or_init(make).await.clone();
    let root = root.to_owned();
    fs::create_dir_all(root.parent().unwrap()).unwrap();
    tokio::task::spawn_blocking(move || copy(&made, &root)).await.unwrap();
}

async fn make() -> PathBuf {
    let place = Place::new();
    let root = place.path().join("postgres");
    let postgres = Postgres::start(&root, false).await.unwrap();
    Store::connect(postgres.options().clone()).await.unwrap().close().await;
    postgres.stop().await.unwrap();
    // No destructor runs at a test process' end, so each one takes away what dead ones left.
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in fs::read_dir(all).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        let dead = |pid: &str| !Path::new("/proc").join(pid).exists();
        if name.strip_prefix("cluster-").is_some_and(dead) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let made = all.join(format!("cluster-{}", std::process::id()));
    copy(&root, &made);
    made
}

/// With its owner and modes: root runs Postgres as somebody else.
fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").args(["-a", "--"]).args([from, to]).status().unwrap();
    assert!(copied.success());
}

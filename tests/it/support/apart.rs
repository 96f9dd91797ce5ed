//! Tests in namespaces of their own: they change links and mounts, and no other process notices.

use std::process::{Command, Stdio};

/// Set in the process that runs in them.
const INSIDE: &str = "NLAC_TEST_APART";

/// Whether this process is in such namespaces. If it is not, the test `name` runs again in a process that is, and has
/// ended with it. Where no namespaces can be had, the test is skipped, and says so.
pub fn apart(name: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        run("ip", &["link", "set", "lo", "up"]);
        return true;
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount"]);
        command
    };
    let mut trial = unshare();
    let trial = trial.args(["ip", "link", "set", "lo", "up"]).stderr(Stdio::null()).status();
    if !trial.is_ok_and(|status| status.success()) {
        eprintln!("skipped: {name} needs root, `unshare` and `ip`");
        return false;
    }
    let status = unshare()
        .arg(std::env::current_exe().unwrap())
        .args([name, "--exact", "--include-ignored", "--nocapture", "--test-threads", "1"])
        .env(INSIDE, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{name} failed in namespaces of its own");
    false
}

/// Runs a command that must succeed.
pub fn run(program: &str, words: &[&str]) {
    let output = Command::new(program).args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {words:?}: {said}");
}

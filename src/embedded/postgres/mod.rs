//! A private Postgres cluster: its own data directory, a Unix socket and nothing else, fsync on. A
//! server that survived its parent is adopted; another cluster is never touched.

mod account;
mod binaries;
mod error;
mod initialise;
mod package;

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};
use tokio_util::sync::CancellationToken;

use self::{
    account::{Account, account, command, make_dir, reachable},
    binaries::find_binaries,
    error::io,
    initialise::initialise,
};
pub use self::{error::PostgresError, package::provide};

/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a stop in a hurry may take, with a last checkpoint and then without one.
const BRIEFLY: Duration = Duration::from_secs(3);
/// How long nlac waits for a server that first repeats its write-ahead log, as after a crash.
const RECOVERY: Duration = Duration::from_secs(3600);
/// Pause between two messages about that.
const TOLD: Duration = Duration::from_secs(10);
/// SQLSTATE of a server that starts or stops.
const CANNOT_CONNECT_NOW: &str = "57P03";
/// Socket paths may not be longer than this, `.s.PGSQL.5432.lock` included.
const LONGEST_SOCKET: usize = 107;

/// A running cluster.
pub struct Postgres {
    child: Option<Child>,
    pid: Pid,
    options: PgConnectOptions,
    adopted: bool,
    root: PathBuf,
    durable: bool,
    lock: fs::File,
}

impl Postgres {
    /// Starts the cluster under `root`, making it first if need be. `durable` off is for throw-away
    /// clusters of tests.
    ///
    /// # Errors
    /// See [`PostgresError`].
    pub async fn start(root: &Path, durable: bool) -> Result<Self, PostgresError> {
        let account = account()?;
        let (data, socket) = (root.join("data"), socket_dir(root));
        for (directory, mode) in [(root, 0o755), (&socket, 0o700)] {
            make_dir(directory, &account, mode)?;
        }
        let lock = lock(root)?;
        reachable(root, &account)?;
        let bin = find_binaries(root, &account)?;
        let password = initialise(root, &data, &bin, &account, durable)?;
        let options = PgConnectOptions::new_without_pgpass()
            .socket(&socket)
            .port(5432)
            .username("nlac")
            .password(&password)
            .database("postgres");
        let root = root.to_owned();
        if let Some(pid) = surviving(&data)
            && is_there(&options).await
        {
            let mut server = Self { child: None, pid, options, adopted: true, root, durable, lock };
            server.wait_until_ready().await?;
            return Ok(server);
        }
        let child = launch(&root, &bin, &account, durable)?;
        let pid = Pid::from_raw(child.id().cast_signed());
        // From here on an early return stops the server: the guard is the value itself.
        let child = Some(child);
        let mut server = Self { child, pid, options, adopted: false, root, durable, lock };
        let ready = server.wait_until_ready().await;
        if matches!(ready, Err(PostgresError::Recovering(_))) {
            // If nlac stopped it, the next start would recover from the beginning. So it keeps running, and the next start adopts it.
            server.child = None;
        }
        ready.map(|()| server)
    }

    /// Starts it again if it has ended. Returns whether it had.
    ///
    /// # Errors
    /// A server that does not start, such as while processes of the one before are still there.
    pub async fn revive(&mut self) -> Result<bool, PostgresError> {
        let runs = match &mut self.child {
            Some(child) => matches!(child.try_wait(), Ok(None)),
            None => kill(self.pid, None).is_ok(),
        };
        if runs {
            return Ok(false);
        }
        let account = account()?;
        let bin = find_binaries(&self.root, &account)?;
        let child = launch(&self.root, &bin, &account, self.durable)?;
        self.pid = Pid::from_raw(child.id().cast_signed());
        self.child = Some(child);
        self.wait_until_ready().await?;
        Ok(true)
    }

    /// How to connect to its maintenance database.
    #[must_use]
    pub const fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// It was running already.
    #[must_use]
    pub const fn adopted(&self) -> bool {
        self.adopted
    }

    /// Stops it and waits until it has written everything.
    ///
    /// # Errors
    /// A server that does not stop in time.
    pub async fn stop(self) -> Result<(), PostgresError> {
        self.stop_until(&CancellationToken::new()).await
    }

    /// Stops it, and gives it only seconds after `hurry`. If it has not written everything by then, the next start
    /// repeats its write-ahead log.
    ///
    /// # Errors
    /// A server that does not stop in time.
    pub async fn stop_until(mut self, hurry: &CancellationToken) -> Result<(), PostgresError> {
        // SIGINT is Postgres' fast shutdown: clients are cut off, everything is flushed.
        let flushed = self.end(Signal::SIGINT, PATIENCE);
        if let Some(ended) = hurry.run_until_cancelled(flushed).await {
            return ended;
        }
        if self.end(Signal::SIGINT, BRIEFLY).await.is_ok() {
            return Ok(());
        }
        // The immediate shutdown flushes nothing.
        self.end(Signal::SIGQUIT, BRIEFLY).await
    }

    /// Sends it a signal, and waits for its end.
    async fn end(&mut self, signal: Signal, patience: Duration) -> Result<(), PostgresError> {
        let started = Instant::now();
        let _ = kill(self.pid, signal);
        while started.elapsed() < patience {
            let gone = match &mut self.child {
                Some(child) => matches!(child.try_wait(), Ok(Some(_))),
                None => kill(self.pid, None).is_err(),
            };
            if gone {
                self.child = None;
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err(PostgresError::Program { program: "postgres", output: "it does not stop".into() })
    }

    /// Waits until it serves, and longer than usual while it recovers.
    async fn wait_until_ready(&mut self) -> Result<(), PostgresError> {
        let (data, log) = (self.root.join("data"), log_file(&self.root));
        let (started, mut told, mut last_starting) =
            (Instant::now(), Instant::now(), Instant::now());
        while last_starting.elapsed() < PATIENCE {
            self.check_running()?;
            match status(&data, self.pid).as_deref() {
                Some("ready") if ask(&self.options).await.is_ok() => return Ok(()),
                Some("starting" | "standby") => {
                    if started.elapsed() >= RECOVERY {
                        return Err(PostgresError::Recovering(log.display().to_string()));
                    }
                    last_starting = Instant::now();
                    if told.elapsed() >= TOLD {
                        told = Instant::now();
                        let (seconds, log) = (started.elapsed().as_secs(), tail(&log, 1));
                        tracing::warn!(seconds, log, "waiting for Postgres, which recovers");
                    }
                }
                _ => {}
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(PostgresError::Late(log.display().to_string()))
    }

    /// Fails if it has ended.
    fn check_running(&mut self) -> Result<(), PostgresError> {
        let output = match &mut self.child {
            Some(child) => match child.try_wait() {
                Ok(Some(status)) => format!("{status}: {}", tail(&log_file(&self.root), 5)),
                _ => return Ok(()),
            },
            None if kill(self.pid, None).is_ok() => return Ok(()),
            None => "the server of an earlier start has just ended; start nlac again".to_owned(),
        };
        Err(PostgresError::Program { program: "postgres", output })
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.child.is_some() {
            // An error before the end, or a panic: no orphan is left behind.
            let _ = kill(self.pid, Signal::SIGINT);
        }
        // A program that is being started at this moment holds a copy of the file until its `exec`.
        // Closing ours would leave the lock with that copy; unlocking takes it from both.
        let _ = self.lock.unlock();
    }
}

/// The directory of the programs that the cluster under `root` runs with, `psql` among them.
///
/// # Errors
/// No programs that fit.
pub fn bin_dir(root: &Path) -> Result<PathBuf, PostgresError> {
    find_binaries(root, &account()?)
}

fn log_file(root: &Path) -> PathBuf {
    root.join("postgres.log")
}

/// Starts the server of a cluster.
fn launch(
    root: &Path,
    bin: &Path,
    account: &Account,
    durable: bool,
) -> Result<Child, PostgresError> {
    let log = log_file(root);
    let file = fs::OpenOptions::new().create(true).append(true).open(&log).map_err(io(&log))?;
    let errors = file.try_clone().map_err(io(&log))?;
    let mut command = command(bin, "postgres", account);
    command
        .arg("-D")
        .arg(root.join("data"))
        .args(["-c", "listen_addresses=", "-c"])
        // A throw-away server has the services of many tests.
        .arg(if durable { "max_connections=60" } else { "max_connections=600" })
        // No disk has heads that move: to jump in an index costs hardly more than to read on.
        .args(["-c", "random_page_cost=1.1"])
        .args(["-c", if durable { "fsync=on" } else { "fsync=off" }])
        .arg("-c")
        .arg(format!("unix_socket_directories={}", socket_dir(root).display()))
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        // Ctrl-C in the terminal must not reach it before nlac has drained.
        .process_group(0);
    command.spawn().map_err(io(&bin.join("postgres")))
}

/// Beside the data, or under /tmp where that path would be too long for a socket.
fn socket_dir(root: &Path) -> PathBuf {
    let beside = root.join("run");
    if beside.as_os_str().len() + "/.s.PGSQL.5432.lock".len() <= LONGEST_SOCKET {
        return beside;
    }
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
    PathBuf::from(format!("/tmp/nlac-{}", hex::encode(&digest[..6])))
}

/// Held as long as the process lives: a kill -9 releases it.
fn lock(root: &Path) -> Result<fs::File, PostgresError> {
    let path = root.join("lock");
    let file = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .map_err(io(&path))?;
    file.try_lock().map_err(|error| match error {
        fs::TryLockError::WouldBlock => PostgresError::InUse(root.display().to_string()),
        fs::TryLockError::Error(source) => io(&path)(source),
    })?;
    Ok(file)
}

/// The server that an earlier process left running on this directory.
fn surviving(data: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid = Pid::from_raw(text.lines().next()?.trim().parse().ok()?);
    kill(pid, None).is_ok().then_some(pid)
}

/// What the server with this id says about itself. The file of an earlier server may still say that it is ready.
fn status(data: &Path, pid: Pid) -> Option<String> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let mut lines = text.lines();
    (lines.next()?.trim() == pid.to_string()).then_some(())?;
    Some(lines.nth(6)?.trim().to_owned())
}

/// The last lines of a log, in one.
fn tail(log: &Path, lines: usize) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let mut tail: Vec<_> = text.lines().rev().take(lines).collect();
    tail.reverse();
    tail.join(" | ")
}

async fn ask(options: &PgConnectOptions) -> Result<(), sqlx::Error> {
    let question = async {
        let mut conn = PgConnection::connect_with(options).await?;
        sqlx::query("select 1").execute(&mut conn).await?;
        conn.close().await
    };
    let late = Err(sqlx::Error::PoolTimedOut);
    tokio::time::timeout(Duration::from_secs(5), question).await.unwrap_or(late)
}

/// Whether a server answers, even one that cannot serve yet.
async fn is_there(options: &PgConnectOptions) -> bool {
    match ask(options).await {
        Ok(()) => true,
        Err(error) => {
            let code = error.as_database_error().and_then(|error| error.code());
            code.as_deref() == Some(CANNOT_CONNECT_NOW)
        }
    }
}

//! A private Postgres cluster: its own data directory, a Unix socket and nothing else, fsync on. A
//! server that survived its parent is adopted; another cluster is never touched.

use std::{
    fs,
    io::Write,
    os::unix::{
        fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::{Pid, Uid, User},
};
use sqlx::{Connection, PgConnection, postgres::PgConnectOptions};

/// How long a start or a stop may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Socket paths may not be longer than this, `.s.PGSQL.5432.lock` included.
const LONGEST_SOCKET: usize = 107;

/// A cluster that is being made.
const PARTIAL: &str = "partial-";

/// Why there is no Postgres.
#[derive(Debug, thiserror::Error)]
pub enum PostgresError {
    /// No binaries.
    #[error(
        "Postgres is not installed: run `apt-get install postgresql` (or your system's package), or set \
         PG_BIN_DIR to the directory of `initdb`, or set DATABASE_URL to a database that you have"
    )]
    NoBinaries,
    /// The data directory was made by another major version.
    #[error(
        "{path} was made by Postgres {found}, but only {present} is installed: install Postgres {found}, \
         or choose another --data-dir"
    )]
    Version {
        /// The data directory.
        path: String,
        /// Its major version.
        found: String,
        /// The one that is installed.
        present: String,
    },
    /// Another process uses the directory.
    #[error("{0} is used by another nlac that is running: stop it, or choose another --data-dir")]
    InUse(String),
    /// Postgres refuses to run as root, and the user it runs as cannot reach the directory.
    #[error(
        "as root, Postgres runs as user {user}, who cannot reach {path}: choose a --data-dir outside \
         private directories, such as /var/lib/nlac"
    )]
    Unreachable {
        /// The user.
        user: String,
        /// The directory.
        path: String,
    },
    /// Root, and nobody to run as.
    #[error("Postgres does not run as root, and there is neither a user postgres nor nobody")]
    NoUser,
    /// A program failed.
    #[error("{program} failed: {output}")]
    Program {
        /// Which.
        program: &'static str,
        /// What it said.
        output: String,
    },
    /// The server did not come up in time.
    #[error("Postgres was not ready within a minute; its log is {0}")]
    Late(String),
    /// Files.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

/// Whom the server runs as.
struct Account {
    name: String,
    /// Set when root steps down.
    ids: Option<(u32, u32)>,
}

/// A running cluster.
pub struct Postgres {
    child: Option<Child>,
    pid: Pid,
    options: PgConnectOptions,
    adopted: bool,
    _lock: fs::File,
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
        let bin = find_binaries(&data)?;
        let password = initialise(root, &data, &bin, &account)?;
        let options = PgConnectOptions::new_without_pgpass()
            .socket(&socket)
            .port(5432)
            .username("nlac")
            .password(&password)
            .database("postgres");
        if let Some(pid) = surviving(&data)
            && answers(&options).await
        {
            return Ok(Self { child: None, pid, options, adopted: true, _lock: lock });
        }
        let log = root.join("postgres.log");
        let file = fs::OpenOptions::new().create(true).append(true).open(&log).map_err(io(&log))?;
        let errors = file.try_clone().map_err(io(&log))?;
        let mut command = command(&bin, "postgres", &account);
        command
            .arg("-D")
            .arg(&data)
            .args(["-c", "listen_addresses=", "-c", "max_connections=60"])
            // No disk has heads that move: to jump in an index costs hardly more than to read on.
            .args(["-c", "random_page_cost=1.1"])
            .args(["-c", if durable { "fsync=on" } else { "fsync=off" }])
            .arg("-c")
            .arg(format!("unix_socket_directories={}", socket.display()))
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            // Ctrl-C in the terminal must not reach it before nlac has drained.
            .process_group(0);
        let child = command.spawn().map_err(io(&bin.join("postgres")))?;
        let pid = Pid::from_raw(child.id().cast_signed());
        // From here on an early return stops the server: the guard is the value itself.
        let mut server = Self { child: Some(child), pid, options, adopted: false, _lock: lock };
        server.wait_until_ready(&data, &log).await?;
        Ok(server)
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
    pub async fn stop(mut self) -> Result<(), PostgresError> {
        let started = Instant::now();
        // SIGINT is Postgres' fast shutdown: clients are cut off, everything is flushed.
        let _ = kill(self.pid, Signal::SIGINT);
        while started.elapsed() < PATIENCE {
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

    async fn wait_until_ready(&mut self, data: &Path, log: &Path) -> Result<(), PostgresError> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            if let Some(child) = &mut self.child
                && let Ok(Some(status)) = child.try_wait()
            {
                let text = fs::read_to_string(log).unwrap_or_default();
                let tail: Vec<_> = text.lines().rev().take(5).collect();
                let said = tail.into_iter().rev().collect::<Vec<_>>().join(" | ");
                let output = format!("{status}: {said}");
                return Err(PostgresError::Program { program: "postgres", output });
            }
            // The pid file of an earlier run may still say ready: it must be this child's.
            let text = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
            let mut lines = text.lines();
            let ours = lines.next().is_some_and(|pid| pid.trim() == self.pid.to_string());
            let ready = lines.nth(6).is_some_and(|line| line.trim() == "ready");
            if ours && ready && answers(&self.options).await {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(PostgresError::Late(log.display().to_string()))
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if self.child.is_some() {
            // An error before the end, or a panic: no orphan is left behind.
            let _ = kill(self.pid, Signal::SIGINT);
        }
    }
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> PostgresError + '_ {
    move |source| PostgresError::Io { path: path.display().to_string(), source }
}

fn account() -> Result<Account, PostgresError> {
    if !Uid::effective().is_root() {
        return Ok(Account { name: "yourself".into(), ids: None });
    }
    for name in ["postgres", "nobody"] {
        if let Ok(Some(user)) = User::from_name(name) {
            let ids = Some((user.uid.as_raw(), user.gid.as_raw()));
            return Ok(Account { name: name.into(), ids });
        }
    }
    Err(PostgresError::NoUser)
}

/// Beside the data, or under /tmp where that path would be too long for a socket.
fn socket_dir(root: &Path) -> PathBuf {
    let beside = root.join("run");
    if beside.as_os_str().len() + "/.s.PGSQL.5432.lock".len() <= LONGEST_SOCKET {
        return beside;
    }
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
    let hash: String = digest[..6].iter().map(|b| format!("{b:02x}")).collect();
    PathBuf::from(format!("/tmp/nlac-{hash}"))
}

fn make_dir(directory: &Path, account: &Account, mode: u32) -> Result<(), PostgresError> {
    if !directory.exists() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o755).create(directory).map_err(io(directory))?;
    }
    if let Some((uid, gid)) = account.ids {
        chown(directory, Some(uid), Some(gid)).map_err(io(directory))?;
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(mode)).map_err(io(directory))
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

fn reachable(data: &Path, account: &Account) -> Result<(), PostgresError> {
    let mut test = Command::new("test");
    test.arg("-w").arg(data).current_dir("/");
    if let Some((uid, gid)) = account.ids {
        test.uid(uid).gid(gid);
    }
    if test.status().map_err(io(data))?.success() {
        return Ok(());
    }
    let (user, path) = (account.name.clone(), data.display().to_string());
    Err(PostgresError::Unreachable { user, path })
}

/// PG_BIN_DIR, then those of the cluster's own major version, then PATH, then the newest installed.
fn find_binaries(data: &Path) -> Result<PathBuf, PostgresError> {
    let complete = |bin: &PathBuf| bin.join("initdb").exists() && bin.join("postgres").exists();
    let mut found: Vec<PathBuf> = Vec::new();
    found.extend(std::env::var_os("PG_BIN_DIR").map(PathBuf::from));
    for path in std::env::var_os("PATH").iter().flat_map(std::env::split_paths) {
        // Distributions put links on the PATH whose siblings are elsewhere.
        let real = fs::canonicalize(path.join("initdb")).ok();
        found.extend(real.and_then(|p| Some(p.parent()?.to_owned())));
    }
    let mut installed: Vec<(u32, PathBuf)> =
        ["/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt"]
            .into_iter()
            .filter_map(|root| fs::read_dir(root).ok())
            .flatten()
            .flatten()
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                let digits: String = name.chars().filter(char::is_ascii_digit).collect();
                (digits.parse().unwrap_or(0), entry.path().join("bin"))
            })
            .collect();
    installed.sort();
    found.extend(installed.into_iter().rev().map(|(_, bin)| bin));
    found.retain(complete);

    let Ok(wanted) = fs::read_to_string(data.join("PG_VERSION")) else {
        return found.into_iter().next().ok_or(PostgresError::NoBinaries);
    };
    let wanted = wanted.trim().to_owned();
    let mut present = Vec::new();
    for bin in found {
        match major(&bin) {
            Some(version) if version == wanted => return Ok(bin),
            Some(version) => present.push(version),
            None => {}
        }
    }
    if present.is_empty() {
        return Err(PostgresError::NoBinaries);
    }
    present.dedup();
    let path = data.display().to_string();
    Err(PostgresError::Version { path, found: wanted, present: present.join(", ") })
}

/// `postgres (PostgreSQL) 15.18 …` to `15`.
fn major(bin: &Path) -> Option<String> {
    let output = Command::new(bin.join("postgres")).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(2)?;
    Some(version.split('.').next()?.to_owned())
}

fn command(bin: &Path, program: &str, account: &Account) -> Command {
    let mut command = Command::new(bin.join(program));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
    command.current_dir("/");
    if let Some((uid, gid)) = account.ids {
        command.uid(uid).gid(gid);
    }
    command
}

/// Makes the cluster unless it is there; returns its password. It is made under another name and
/// renamed when it is whole: an `initdb` that outlives a killed parent works on something that nobody
/// will use.
fn initialise(
    root: &Path,
    data: &Path,
    bin: &Path,
    account: &Account,
) -> Result<String, PostgresError> {
    let file = root.join("password");
    if data.join("PG_VERSION").exists() {
        return fs::read_to_string(&file).map_err(io(&file));
    }
    for entry in fs::read_dir(root).map_err(io(root))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
            // What an orphan is still writing stays until the next start.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let password: String =
        rand::random::<[u8; 16]>().iter().map(|byte| format!("{byte:02x}")).collect();
    let partial = root.join(format!("{PARTIAL}{}", &password[..8]));
    make_dir(&partial, account, 0o700)?;
    let mut options = fs::OpenOptions::new();
    let mut out = options
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&file)
        .map_err(io(&file))?;
    out.write_all(password.as_bytes()).map_err(io(&file))?;
    if let Some((uid, gid)) = account.ids {
        chown(&file, Some(uid), Some(gid)).map_err(io(&file))?;
    }
    let output = command(bin, "initdb", account)
        .args(["-U", "nlac", "-A", "scram-sha-256", "-E", "UTF8", "--locale=C.UTF-8"])
        .arg("--pwfile")
        .arg(&file)
        .arg("-D")
        .arg(&partial)
        .output()
        .map_err(io(&bin.join("initdb")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', " | ");
        return Err(PostgresError::Program { program: "initdb", output: said });
    }
    fs::rename(&partial, data).map_err(io(data))?;
    Ok(password)
}

/// The server that an earlier process left running on this directory.
fn surviving(data: &Path) -> Option<Pid> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let pid = Pid::from_raw(text.lines().next()?.trim().parse().ok()?);
    kill(pid, None).is_ok().then_some(pid)
}

async fn answers(options: &PgConnectOptions) -> bool {
    let probe = async {
        let mut conn = PgConnection::connect_with(options).await?;
        sqlx::query("select 1").execute(&mut conn).await?;
        conn.close().await
    };
    matches!(tokio::time::timeout(Duration::from_secs(5), probe).await, Ok(Ok(())))
}

//! Where adapters lie: in a directory, or in S3-compatible storage with a local cache of bounded size before it.
//!
//! A path goes in and a path comes out: engines, trainers and the average of two adapters read plain files.

mod cache;
mod remote;
mod settings;

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::{fs, sync::Mutex};

use self::{cache::Cache, remote::Remote};
use crate::domain::fault::Fault;

pub use settings::{BucketSettings, Place, StorageKey};

/// Why an adapter cannot be stored, read or deleted.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The settings name no bucket that can be used.
    #[error("--bucket: {0}")]
    Settings(String),
    /// Files on this machine.
    #[error("{path}: {source}")]
    Io {
        /// Where.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The storage does not answer, or not as it should.
    #[error("{url}: {reason}")]
    Away {
        /// The bucket.
        url: String,
        /// Why.
        reason: String,
    },
    /// No such adapter.
    #[error("{location} does not exist; restore it from a backup, or use another checkpoint")]
    Missing {
        /// Where it should lie.
        location: String,
    },
    /// Other files than those that were stored.
    #[error("{location} has the hash {found}, not {expected}; restore it from a backup")]
    Changed {
        /// Where it lies.
        location: String,
        /// Hash of what lies there.
        found: String,
        /// Hash of what was stored.
        expected: String,
    },
    /// It lies in a place that this process does not use.
    #[error("{location} is not in {place}; set --bucket to where it lies")]
    Elsewhere {
        /// Where it lies.
        location: String,
        /// The place that this process uses.
        place: String,
    },
}

impl BucketError {
    fn at(path: &Path) -> impl Fn(io::Error) -> Self + use<> {
        let path = path.display().to_string();
        move |source| Self::Io { path: path.clone(), source }
    }

    /// What it asks of the queue: work waits for storage that is away.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Away { url, reason } => Fault::away("bucket", url, reason),
            Self::Io { .. } => Fault::retry(self),
            _ => Fault::fail(self),
        }
    }
}

impl From<BucketError> for Fault {
    fn from(error: BucketError) -> Self {
        error.fault()
    }
}

/// The adapters of a service.
#[derive(Debug, Clone)]
pub struct Bucket(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The adapters' own directory, or the cache of those in the storage.
    local: PathBuf,
    remote: Option<Cached>,
}

#[derive(Debug)]
struct Cached {
    storage: Remote,
    cache: Cache,
    most: u64,
    /// One download at a time: work that needs the same adapter waits for it.
    arriving: Mutex<()>,
}

impl Bucket {
    /// Opens the bucket of the settings. Without one, adapters lie in the data directory.
    ///
    /// # Errors
    /// Settings that name no usable bucket; a directory that cannot be made.
    pub fn open(settings: &BucketSettings, data: &Path) -> Result<Self, BucketError> {
        let bucket = match &settings.place {
            None => Self::directory(&data.join("adapters")),
            Some(Place::Directory(directory)) => Self::directory(directory),
            Some(Place::S3 { bucket, prefix }) => {
                let remote = Cached {
                    storage: Remote::open(bucket, prefix, settings)?,
                    cache: Cache::default(),
                    most: settings.cache,
                    arriving: Mutex::default(),
                };
                Self(Arc::new(Inner { local: data.join("cache"), remote: Some(remote) }))
            }
        };
        let local = &bucket.0.local;
        std::fs::create_dir_all(local).map_err(BucketError::at(local))?;
        Ok(bucket)
    }

    /// The adapters of a directory.
    #[must_use]
    pub fn directory(local: &Path) -> Self {
        Self(Arc::new(Inner { local: local.to_owned(), remote: None }))
    }

    /// A directory for files that are being made. Its name is the caller's own.
    #[must_use]
    pub fn incoming(&self, name: impl std::fmt::Display) -> PathBuf {
        self.0.local.join(format!(".incoming-{name}"))
    }

    /// Stores a finished directory under a name that never had other content. Returns where it lies.
    ///
    /// # Errors
    /// See [`BucketError`].
    pub async fn put(&self, incoming: &Path, name: &str) -> Result<String, BucketError> {
        let Inner { local, remote } = &*self.0;
        let to = local.join(name);
        if let Some(remote) = remote {
            remote.cache.touch(name);
        }
        settle(incoming, &to).await?;
        let Some(remote) = remote else { return Ok(to.display().to_string()) };
        remote.storage.upload(&to, name).await?;
        self.trim().await?;
        Ok(remote.storage.location(name))
    }

    /// The directory of an adapter on this machine, with the files that were stored.
    ///
    /// # Errors
    /// See [`BucketError`].
    pub async fn fetch(&self, location: &str, sha256: &str) -> Result<PathBuf, BucketError> {
        let Inner { local, remote } = &*self.0;
        if !location.contains("://") {
            return Ok(PathBuf::from(location));
        }
        let found = remote.as_ref().and_then(|r| Some((r, r.storage.name_of(location)?)));
        let (remote, name) = found.ok_or_else(|| self.elsewhere(location))?;
        let here = local.join(name);
        remote.cache.touch(name);
        if here.is_dir() {
            return Ok(here);
        }
        // A caller that stops waiting, such as a request, leaves the download to the next one.
        let (bucket, name, sha256) = (self.clone(), name.to_owned(), sha256.to_owned());
        let arriving = tokio::spawn(async move { bucket.arrive(&name, &sha256).await });
        arriving.await.map_err(|e| BucketError::at(&here)(io::Error::other(e)))??;
        Ok(here)
    }

    /// Downloads an adapter that is not here.
    async fn arrive(&self, name: &str, sha256: &str) -> Result<(), BucketError> {
        let Inner { local, remote: Some(remote) } = &*self.0 else { return Ok(()) };
        let _one = remote.arriving.lock().await;
        let here = local.join(name);
        if here.is_dir() {
            return Ok(());
        }
        let partial = self.incoming(uuid::Uuid::now_v7());
        match remote.storage.download(name, sha256, &partial).await {
            Ok(()) => settle(&partial, &here).await?,
            Err(error) => {
                remove(&partial).await?;
                return Err(error);
            }
        }
        self.trim().await
    }

    /// Deletes an adapter; one that is gone is no error.
    ///
    /// # Errors
    /// See [`BucketError`].
    pub async fn delete(&self, location: &str) -> Result<(), BucketError> {
        let Inner { local, remote } = &*self.0;
        let path = Path::new(location);
        let name = match remote {
            Some(remote) if location.contains("://") => remote.storage.name_of(location),
            _ => path.file_name().and_then(|name| name.to_str()).filter(|name| {
                // Only what lies in the adapters' own directory is deleted.
                plain(name) && path.parent() == Some(local)
            }),
        };
        let name = name.ok_or_else(|| self.elsewhere(location))?;
        if let Some(remote) = remote {
            remote.storage.delete(name).await?;
        }
        remove(&local.join(name)).await
    }

    /// Removes what attempts that died left half-written, from some age on.
    ///
    /// # Errors
    /// A directory that cannot be read or removed.
    pub fn clear_incoming(&self, age: Duration) -> Result<(), BucketError> {
        let local = &self.0.local;
        let clear = || {
            for entry in std::fs::read_dir(local)?.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let written = entry.metadata()?.modified()?;
                let old = written.elapsed().is_ok_and(|since| since >= age);
                if old && !plain(&name) {
                    std::fs::remove_dir_all(entry.path())?;
                }
            }
            Ok(())
        };
        clear().map_err(BucketError::at(local))
    }

    async fn trim(&self) -> Result<(), BucketError> {
        let bucket = self.clone();
        let trimming = tokio::task::spawn_blocking(move || match &bucket.0.remote {
            Some(remote) => remote.cache.trim(&bucket.0.local, remote.most),
            None => Ok(()),
        });
        let trimmed = trimming.await.map_err(io::Error::other).flatten();
        trimmed.map_err(BucketError::at(&self.0.local))
    }

    fn elsewhere(&self, location: &str) -> BucketError {
        let Inner { local, remote } = &*self.0;
        let place = remote
            .as_ref()
            .map_or_else(|| local.display().to_string(), |remote| remote.storage.location(""));
        BucketError::Elsewhere { location: location.to_owned(), place }
    }
}

/// Whether it is the name of an adapter: no path, and nothing half-written, which is hidden.
fn plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\'])
}

/// Moves a finished directory to its name; one that lies there already has the same content.
async fn settle(from: &Path, to: &Path) -> Result<(), BucketError> {
    match fs::rename(from, to).await {
        Err(_) if to.is_dir() => remove(from).await,
        moved => moved.map_err(BucketError::at(to)),
    }
}

async fn remove(directory: &Path) -> Result<(), BucketError> {
    match fs::remove_dir_all(directory).await {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(BucketError::at(directory)(error))
        }
        _ => Ok(()),
    }
}

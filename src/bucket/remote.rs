//! Adapters in S3-compatible storage: one object per file, under the adapter's name.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use object_store::{
    ObjectStore, ObjectStoreExt as _, RetryConfig, aws::AmazonS3Builder, buffered::BufWriter,
    path::Path as Key,
};
use sha2::{Digest as _, Sha256};
use tokio::{
    fs,
    io::{AsyncWriteExt as _, copy},
};

use super::{BucketError, BucketSettings};
use crate::{net::Objects, trainer::adapter::TENSORS};

/// Bytes of one part of an upload. Four are on their way at a time.
const PART: usize = 8 << 20;
/// Deadline of the next piece of a download.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a request is repeated.
const REPEATED: Duration = Duration::from_secs(60);

/// A bucket, or a part of it.
#[derive(Debug)]
pub(super) struct Remote {
    objects: Arc<dyn ObjectStore>,
    prefix: Key,
    /// `s3://BUCKET/PREFIX`.
    url: String,
}

impl Remote {
    /// A client. It sends nothing yet.
    pub fn open(
        bucket: &str,
        prefix: &str,
        settings: &BucketSettings,
    ) -> Result<Self, BucketError> {
        let mut builder = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_http_connector(Objects)
            .with_retry(RetryConfig {
                max_retries: 8,
                retry_timeout: REPEATED,
                ..RetryConfig::default()
            });
        if let Some(region) = &settings.region {
            builder = builder.with_region(region);
        }
        if let Some(endpoint) = &settings.endpoint {
            builder =
                builder.with_endpoint(endpoint).with_allow_http(endpoint.starts_with("http://"));
        }
        if let Some(key) = &settings.key {
            builder =
                builder.with_access_key_id(&key.id).with_secret_access_key(key.secret.reveal());
        }
        let url = match prefix {
            "" => format!("s3://{bucket}"),
            prefix => format!("s3://{bucket}/{prefix}"),
        };
        let settings = |e: object_store::Error| BucketError::Settings(e.to_string());
        let prefix = Key::parse(prefix).map_err(|e| BucketError::Settings(e.to_string()))?;
        Ok(Self { objects: Arc::new(builder.build().map_err(settings)?), prefix, url })
    }

    /// Where an adapter lies.
    pub fn location(&self, name: &str) -> String {
        format!("{}/{name}", self.url)
    }

    /// The name of an adapter that lies here.
    pub fn name_of<'a>(&self, location: &'a str) -> Option<&'a str> {
        location.strip_prefix(&self.url)?.strip_prefix('/').filter(|name| super::plain(name))
    }

    /// Uploads the files of a directory.
    pub async fn upload(&self, directory: &Path, name: &str) -> Result<(), BucketError> {
        let mut files = fs::read_dir(directory).await.map_err(BucketError::at(directory))?;
        while let Some(entry) = files.next_entry().await.map_err(BucketError::at(directory))? {
            let path = entry.path();
            let file = entry.file_name().to_string_lossy().into_owned();
            let mut content = fs::File::open(&path).await.map_err(BucketError::at(&path))?;
            let key = self.prefix.clone().join(name).join(file);
            let mut writer =
                BufWriter::with_capacity(self.objects.clone(), key, PART).with_max_concurrency(4);
            let written = async {
                copy(&mut content, &mut writer).await?;
                writer.shutdown().await
            };
            if let Err(error) = written.await {
                // Parts without an end cost room until the bucket's own rule removes them.
                let _ = writer.abort().await;
                return Err(self.away(&error));
            }
        }
        Ok(())
    }

    /// Downloads an adapter into a new directory, and checks the hash of its tensors on the way.
    pub async fn download(&self, name: &str, sha256: &str, into: &Path) -> Result<(), BucketError> {
        fs::create_dir_all(into).await.map_err(BucketError::at(into))?;
        let mut found = None;
        let mut listed = self.objects.list(Some(&self.prefix.clone().join(name)));
        while let Some(object) = self.next(&mut listed).await? {
            let Some(file) = object.location.filename() else { continue };
            let mut hash = Sha256::new();
            let got = self.objects.get(&object.location).await;
            let mut content = got.map_err(|e| self.away(&e))?.into_stream();
            let path = into.join(file);
            let mut written = fs::File::create(&path).await.map_err(BucketError::at(&path))?;
            while let Some(piece) = self.next(&mut content).await? {
                hash.update(&piece);
                written.write_all(&piece).await.map_err(BucketError::at(&path))?;
            }
            written.sync_all().await.map_err(BucketError::at(&path))?;
            if file == TENSORS {
                found =
                    Some(hash.finalize().iter().map(|b| format!("{b:02x}")).collect::<String>());
            }
        }
        let location = self.location(name);
        match found {
            None => Err(BucketError::Missing { location }),
            Some(found) if found != sha256 => {
                Err(BucketError::Changed { location, found, expected: sha256.to_owned() })
            }
            Some(_) => Ok(()),
        }
    }

    /// Deletes an adapter; one that is gone is no error.
    pub async fn delete(&self, name: &str) -> Result<(), BucketError> {
        let listed = self.objects.list(Some(&self.prefix.clone().join(name)));
        let keys = listed.map_ok(|object| object.location).boxed();
        let deleted = self.objects.delete_stream(keys);
        let deleting = deleted.try_for_each(|_| std::future::ready(Ok(())));
        match deleting.await {
            Err(object_store::Error::NotFound { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(self.away(&error)),
        }
    }

    async fn next<T>(
        &self,
        stream: &mut (impl Stream<Item = object_store::Result<T>> + Unpin),
    ) -> Result<Option<T>, BucketError> {
        let next = tokio::time::timeout(PATIENCE, stream.try_next()).await;
        next.map_err(|late| self.away(&late))?.map_err(|e| self.away(&e))
    }

    fn away(&self, error: &dyn std::error::Error) -> BucketError {
        BucketError::Away { url: self.url.clone(), reason: error.to_string() }
    }
}

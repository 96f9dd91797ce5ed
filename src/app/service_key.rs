//! The key that webhooks' secrets are made of: given, or made once and kept in the data directory.

use std::{
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
};

use rand::RngCore;

use super::{AppError, ServiceSettings};
use crate::domain::service_key::ServiceKey;

/// The key of the settings, of the data directory, or a new one.
pub(super) fn service_key(settings: &ServiceSettings) -> Result<ServiceKey, AppError> {
    if let Some(given) = &settings.service_key {
        return ServiceKey::new(given.clone().into_bytes()).ok_or(AppError::ServiceKey);
    }
    let path = settings.data_dir.join("service.key");
    let failed = |source| AppError::Data { path: path.display().to_string(), source };
    let mut bytes = vec![0; 32];
    rand::rng().fill_bytes(&mut bytes);
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    match file.and_then(|mut file| file.write_all(&bytes)) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bytes = std::fs::read(&path).map_err(failed)?;
        }
        Err(error) => return Err(failed(error)),
    }
    ServiceKey::new(bytes).ok_or_else(|| failed(ErrorKind::UnexpectedEof.into()))
}

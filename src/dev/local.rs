//! The local engine and trainer inside this process, each an ordinary server on a loopback port. The
//! loop reaches them over HTTP like any other.

use std::{net::SocketAddr, path::Path};

use nlac_local::{
    engine::{self, EngineError, EngineOptions},
    trainer::{self, TrainerOptions},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

/// Running servers.
pub struct LocalPeers {
    /// The engine's URL.
    pub engine_url: String,
    /// The trainer's URL.
    pub trainer_url: String,
    shutdown: CancellationToken,
    tasks: Vec<JoinHandle<Result<(), EngineError>>>,
}

impl LocalPeers {
    /// Serves a model directory under a name; checkpoints of the trainer lie under `data_dir`.
    ///
    /// # Errors
    /// No port to be had.
    pub async fn start(
        model_dir: &Path,
        name: &str,
        data_dir: &Path,
        threads: usize,
    ) -> std::io::Result<Self> {
        let shutdown = CancellationToken::new();
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let (engine_socket, trainer_socket) =
            (TcpListener::bind(any).await?, TcpListener::bind(any).await?);
        let engine_url = format!("http://{}", engine_socket.local_addr()?);
        let trainer_url = format!("http://{}", trainer_socket.local_addr()?);
        let mut options = EngineOptions::new(model_dir.to_owned(), name);
        options.threads = threads;
        let token = shutdown.clone();
        let engine = engine::serve(engine_socket, options, token.cancelled_owned());
        let checkpoints = data_dir.join("trainer");
        let mut options = TrainerOptions::new(model_dir.to_owned(), name, checkpoints);
        options.threads = threads;
        let token = shutdown.clone();
        let trainer = trainer::serve(trainer_socket, options, token.cancelled_owned());
        let tasks = vec![tokio::spawn(engine), tokio::spawn(trainer)];
        Ok(Self { engine_url, trainer_url, shutdown, tasks })
    }

    /// Stops both.
    pub async fn stop(self) {
        self.shutdown.cancel();
        for task in self.tasks {
            let stopped = tokio::time::timeout(std::time::Duration::from_secs(5), task).await;
            if let Ok(Ok(Err(error))) = stopped {
                tracing::warn!(%error, "a local server ended with an error");
            }
        }
    }
}

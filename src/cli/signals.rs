//! SIGINT (Ctrl-C) and SIGTERM: the first one stops a service in order, the second one at once.

use std::{
    pin::pin,
    time::{Duration, Instant},
};

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{Failure, report};
use crate::app::App;

/// Signals that follow each other faster count as one: `timeout` signals a process and then its group.
const REPEATED: Duration = Duration::from_millis(200);

/// The signals that tell this process to stop.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    last: Option<Instant>,
}

impl Signals {
    /// Listens for the signals. From here on they do not end the process by themselves.
    ///
    /// # Errors
    /// The system allows no handlers.
    pub fn listen() -> Result<Self, Failure> {
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        Ok(Self { interrupt, terminate, last: None })
    }

    /// Resolves at the next signal.
    pub async fn next(&mut self) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => {}
                _ = self.terminate.recv() => {}
            }
            if self.last.is_none_or(|last| last.elapsed() >= REPEATED) {
                self.last = Some(Instant::now());
                return;
            }
        }
    }

    /// Stops a service in order. If another signal arrives meanwhile, stops it at once.
    ///
    /// # Errors
    /// It was stopped at once.
    pub async fn stop(mut self, app: App) -> Result<(), Failure> {
        if self.last.is_some() {
            report::line(
                "stopping: running work is finished or returned to the queue; press Ctrl-C again to stop at once",
            );
        }
        let hurry = CancellationToken::new();
        let mut stopping = pin!(app.stop_until(&hurry));
        tokio::select! {
            () = &mut stopping => return Ok(()),
            () = self.next() => hurry.cancel(),
        }
        stopping.await;
        Err("stopped at once; jobs continue when nlac starts again".into())
    }
}

//! Background tasks: one that ends before its time, with an error or by a panic, starts again after a pause.

use std::{
    any::Any,
    collections::BTreeMap,
    fmt::Display,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{task::JoinError, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{net::pause_after, telemetry::Meters};

/// Pause before the first restart. The next ones are longer, up to a minute.
const PAUSE: Duration = Duration::from_secs(1);
/// Failures in a row after which the pause grows no more.
const LONGEST_PAUSE: u32 = 7;
/// A task that has run for so long is well again.
const WELL: Duration = Duration::from_secs(10);

/// Starts tasks and restarts them until the service stops.
#[derive(Clone)]
pub struct Supervisor(Arc<Inner>);

struct Inner {
    meters: Meters,
    shutdown: CancellationToken,
    tasks: TaskTracker,
    /// Why each task that failed a short time ago did so.
    troubled: Mutex<BTreeMap<&'static str, String>>,
}

impl Supervisor {
    /// No tasks yet; those to come run until `shutdown`.
    #[must_use]
    pub fn new(meters: Meters, shutdown: CancellationToken) -> Self {
        let (tasks, troubled) = (TaskTracker::new(), Mutex::default());
        Self(Arc::new(Inner { meters, shutdown, tasks, troubled }))
    }

    /// Runs a task, and makes it again whenever it ends before the shutdown.
    pub fn run<F, E>(&self, name: &'static str, make: impl Fn() -> F + Send + 'static)
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Display + Send + 'static,
    {
        let supervisor = self.clone();
        // It exists from the start: an alert on a missing series stays silent.
        let restarts = self.0.meters.counter("nlac_task_restarts_total", &[("task", name)]);
        restarts.increment(0);
        self.0.tasks.spawn(async move {
            let mut failures = 0;
            loop {
                let begun = Instant::now();
                let ended = supervisor.watch(name, make()).await;
                if supervisor.0.shutdown.is_cancelled() {
                    if let Err(why) = ended {
                        tracing::warn!(task = name, why, "a background task ended with an error");
                    }
                    return;
                }
                let why = ended.err().unwrap_or_else(|| "it ended".into());
                tracing::error!(task = name, why, "a background task failed and starts again");
                supervisor.troubled().insert(name, why);
                restarts.increment(1);
                failures = if begun.elapsed() < WELL { failures + 1 } else { 1 };
                let pause = pause_after(failures.min(LONGEST_PAUSE), PAUSE);
                if supervisor.0.shutdown.run_until_cancelled(pause).await.is_none() {
                    return;
                }
            }
        });
    }

    /// The end of a task, and why, if it failed. On the way the task may become well again.
    async fn watch<E: Display + Send + 'static>(
        &self,
        name: &'static str,
        task: impl Future<Output = Result<(), E>> + Send + 'static,
    ) -> Result<(), String> {
        // Its own task, so that a panic is an outcome too.
        let mut running = tokio::spawn(task);
        let ended = tokio::select! {
            ended = &mut running => ended,
            () = tokio::time::sleep(WELL) => {
                self.troubled().remove(name);
                running.await
            }
        };
        match ended {
            Ok(outcome) => outcome.map_err(|error| error.to_string()),
            Err(panic) => Err(format!("it panicked: {}", message(panic))),
        }
    }

    /// Names of the tasks that failed and have not run well since.
    #[must_use]
    pub fn failing(&self) -> Vec<&'static str> {
        self.troubled().keys().copied().collect()
    }

    /// Waits until all tasks have ended, after the shutdown.
    pub async fn ended(&self) {
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }

    fn troubled(&self) -> MutexGuard<'_, BTreeMap<&'static str, String>> {
        self.0.troubled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a task said when it panicked.
fn message(panic: JoinError) -> String {
    let Ok(said) = panic.try_into_panic() else { return "it was aborted".into() };
    let said: &(dyn Any + Send) = &*said;
    let text = said.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| said.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

//! A replica that takes as long as a GPU would: it reads prompts one after the other, and writes all answers at a time.

use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};

use super::engine::Speed;

/// How often the replica looks at its clock.
const TICK: Duration = Duration::from_millis(2);

/// Tokens per second of one replica.
#[derive(Clone, Copy)]
pub struct Rates {
    /// Prompt tokens.
    pub reads: f64,
    /// Answer tokens of all requests together.
    pub writes: f64,
    /// Answer tokens of one request at most.
    pub writes_alone: f64,
}

/// A request that is being answered.
struct Request {
    /// Tokens that are left.
    prompt: f64,
    answer: f64,
    answered: oneshot::Sender<()>,
}

/// The replica's queue.
pub struct Replica {
    queue: mpsc::UnboundedSender<Request>,
}

impl Replica {
    /// Starts one.
    pub fn start(rates: Rates) -> Self {
        let (queue, requests) = mpsc::unbounded_channel();
        tokio::spawn(work(rates, requests));
        Self { queue }
    }
}

impl Speed for Replica {
    async fn wait(&self, prompt: usize, answer: usize) {
        let (answered, answer_came) = oneshot::channel();
        let request = Request { prompt: prompt as f64, answer: answer as f64, answered };
        self.queue.send(request).unwrap_or_else(|_| panic!("the replica has ended"));
        answer_came.await.unwrap();
    }
}

async fn work(rates: Rates, mut queue: mpsc::UnboundedReceiver<Request>) {
    let mut requests: Vec<Request> = Vec::new();
    loop {
        // Nothing to do costs nothing.
        if requests.is_empty() {
            let Some(request) = queue.recv().await else { return };
            requests.push(request);
        }
        let before = Instant::now();
        tokio::time::sleep(TICK).await;
        while let Ok(request) = queue.try_recv() {
            requests.push(request);
        }
        // A clock that was late is caught up.
        rates.advance(&mut requests, before.elapsed().as_secs_f64());
        for request in requests.extract_if(.., |request| request.answer <= 0.0) {
            let _ = request.answered.send(());
        }
    }
}

impl Rates {
    /// Lets so many seconds pass.
    fn advance(self, requests: &mut [Request], seconds: f64) {
        let mut left = seconds;
        for request in requests.iter_mut().filter(|request| request.prompt > 0.0) {
            let read = request.prompt.min(left * self.reads);
            request.prompt -= read;
            left -= read / self.reads;
        }
        let writing = requests.iter().filter(|request| request.prompt <= 0.0).count().max(1);
        let each = (left * self.writes / writing as f64).min(seconds * self.writes_alone);
        for request in requests.iter_mut().filter(|request| request.prompt <= 0.0) {
            request.answer -= each;
        }
    }
}

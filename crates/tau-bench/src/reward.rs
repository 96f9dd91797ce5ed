//! What an episode earns, and what repeated episodes say about an agent.

use crate::{
    database::Database,
    domain::Domain,
    tools::{self, Call, TRANSFER},
};

/// The state after a task's own actions. The call that would end the episode is left out; an action
/// that fails changes nothing, and the benchmark's tasks hold some.
pub(crate) fn gold_state(domain: Domain, mut database: Database, actions: &[Call]) -> Database {
    for action in actions.iter().filter(|action| action.name != TRANSFER) {
        tools::call(domain, &mut database, action);
    }
    database
}

/// Whether a message tells the user an output. Commas in the message do not count, so `1,234` tells
/// `1234`; the case of letters does not count either.
pub(crate) fn tells(message: &str, output: &str) -> bool {
    message.to_lowercase().replace(',', "").contains(&output.to_lowercase())
}

/// The outcome of several episodes of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trials {
    /// Episodes with reward 1.
    pub successes: u64,
    /// All episodes.
    pub episodes: u64,
}

/// pass^k: the chance that `k` episodes of a task all succeed, as the mean over tasks of
/// C(successes, k) / C(episodes, k). `None` without tasks, or if a task has fewer than `k` episodes.
#[expect(clippy::cast_precision_loss, reason = "counts of episodes are far below 2^53")]
pub fn pass_hat_k(tasks: &[Trials], k: u64) -> Option<f64> {
    if tasks.is_empty() || tasks.iter().any(|task| task.episodes < k) {
        return None;
    }
    let chance = |task: &Trials| -> f64 {
        // C(c, k) / C(n, k) is the product of (c - i) / (n - i).
        (0..k)
            .map(|i| task.successes.saturating_sub(i) as f64 / (task.episodes - i) as f64)
            .product()
    };
    Some(tasks.iter().map(chance).sum::<f64>() / tasks.len() as f64)
}

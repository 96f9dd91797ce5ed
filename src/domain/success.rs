//! What repeated episodes of a task say about an agent.

/// The outcome of several episodes of one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trials {
    /// Episodes that solved the task.
    pub successes: u64,
    /// All episodes.
    pub episodes: u64,
}

/// pass^k: the chance that `k` episodes of a task all succeed, as the mean over tasks of
/// C(successes, k) / C(episodes, k). `None` without tasks, or if a task has fewer than `k` episodes.
#[must_use]
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

#[cfg(test)]
mod tests {
    use super::{Trials, pass_hat_k};

    #[test]
    fn pass_hat_k_is_the_chance_that_k_episodes_succeed() {
        let trials = |successes, episodes| Trials { successes, episodes };
        assert_eq!(pass_hat_k(&[trials(2, 4)], 1), Some(0.5));
        // C(2, 2) / C(4, 2) = 1 / 6
        let pairs = pass_hat_k(&[trials(2, 4)], 2);
        assert!(pairs.is_some_and(|chance| (chance - 1.0 / 6.0).abs() < 1e-12));
        assert_eq!(pass_hat_k(&[trials(2, 4), trials(4, 4)], 3), Some(0.5));
        assert_eq!(pass_hat_k(&[trials(4, 4)], 5), None);
        assert_eq!(pass_hat_k(&[], 1), None);
    }
}

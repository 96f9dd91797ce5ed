//! How the policy moved and how well the critic knew, over the steps of an iteration.

use crate::domain::{metric::names, training::PolicyGradient};

/// Sums over tokens, each as often as it was learnt.
#[derive(Debug, Default)]
pub struct Tally {
    tokens: f64,
    clipped: f64,
    divergence: f64,
    values: f64,
    value_loss: f64,
}

impl Tally {
    /// Counts the tokens of an example of a step, by their log-probabilities before the step.
    pub fn add_policy(&mut self, gradient: &PolicyGradient, logprobs: &[f32]) {
        let PolicyGradient { advantages, old_logprobs, clip } = gradient;
        for ((new, old), advantage) in logprobs.iter().zip(old_logprobs).zip(advantages) {
            let gap = f64::from(new - old).clamp(-20.0, 20.0);
            let ratio = gap.exp();
            let beyond = clip.is_some_and(|clip| {
                (*advantage > 0.0 && ratio > f64::from(clip.high))
                    || (*advantage < 0.0 && ratio < f64::from(clip.low))
            });
            self.tokens += 1.0;
            self.clipped += f64::from(u8::from(beyond));
            self.divergence += ratio - 1.0 - gap;
        }
    }

    /// Counts the values of a step: of each example its mean loss and its tokens. Returns the mean over the tokens.
    pub fn add_values(&mut self, step: impl Iterator<Item = (f32, usize)>) -> Option<f32> {
        let (mut sum, mut tokens) = (0.0, 0.0);
        for (loss, count) in step {
            sum += f64::from(loss) * count as f64;
            tokens += count as f64;
        }
        self.value_loss += sum;
        self.values += tokens;
        (tokens > 0.0).then_some((sum / tokens) as f32)
    }

    /// Names of metrics with their values; none of what was not learnt.
    #[must_use]
    pub fn metrics(&self) -> Vec<(&'static str, f64)> {
        let sums = [
            (names::CLIP_FRACTION, self.clipped, self.tokens),
            (names::APPROXIMATE_KL, self.divergence, self.tokens),
            (names::VALUE_LOSS, self.value_loss, self.values),
        ];
        let known = sums.into_iter().filter(|(_, _, count)| *count > 0.0);
        known.map(|(name, sum, count)| (name, sum / count)).collect()
    }
}

/// Share of the returns' variance that the values explain: 1 knows all, 0 is as good as their mean, and less is worse.
/// None where all returns are the same.
#[must_use]
pub fn explained_variance(values: &[f32], returns: &[f32]) -> Option<f64> {
    let variance = |of: &dyn Fn(f64, f64) -> f64| {
        let all = || values.iter().zip(returns).map(|(v, r)| of(f64::from(*v), f64::from(*r)));
        let count = returns.len().max(1) as f64;
        let mean = all().sum::<f64>() / count;
        all().map(|x| (x - mean).powi(2)).sum::<f64>() / count
    };
    let total = variance(&|_, r| r);
    (total > 1e-12).then(|| 1.0 - variance(&|v, r| r - v) / total)
}

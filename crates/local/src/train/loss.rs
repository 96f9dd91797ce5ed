//! What a sequence's loss is made of, position by position, as the Tinker API defines it.

use super::Example;

/// How the loss of a position follows from the log-probability of its target. Each is multiplied by the position's
/// weight and summed over all positions, in nats (tinker-docs.thinkingmachines.ai/losses).
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Loss {
    /// −log p.
    #[default]
    CrossEntropy,
    /// −ρA with ρ = p / p_old: the policy gradient, corrected for the policy that sampled.
    ImportanceSampling(Sampled),
    /// −min(ρA, clip(ρ)A): no gain from going further from the policy that sampled than the clip allows (PPO).
    Ppo(Sampled, Clip),
}

/// What is known of the policy that sampled a sequence: one value per position.
#[derive(Debug, Clone, PartialEq)]
pub struct Sampled {
    /// log p_old: log-probability that it gave to each target, natural log.
    pub logprobs: Vec<f32>,
    /// A: how much better than expected the target turned out.
    pub advantages: Vec<f32>,
}

/// Bounds of ρ between which an example may still pull.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clip {
    /// Lower bound, below 1.
    pub low: f32,
    /// Upper bound, above 1.
    pub high: f32,
}

impl Default for Clip {
    fn default() -> Self {
        Self { low: 0.8, high: 1.2 }
    }
}

impl Sampled {
    /// A and ρ at a position. The exponent is bounded, so that no ratio overflows.
    fn at(&self, position: usize, logprob: f32) -> (f32, f32) {
        let gap = (logprob - self.logprobs[position]).clamp(-20.0, 20.0);
        (self.advantages[position], libm::expf(gap))
    }
}

impl Example {
    /// Loss of a position whose target has this log-probability.
    #[must_use]
    pub fn loss_at(&self, position: usize, logprob: f32) -> f32 {
        let weight = self.weights[position];
        match &self.loss {
            Loss::CrossEntropy => -logprob * weight,
            Loss::ImportanceSampling(sampled) => {
                let (advantage, ratio) = sampled.at(position, logprob);
                -ratio * advantage * weight
            }
            Loss::Ppo(sampled, clip) => {
                let (advantage, ratio) = sampled.at(position, logprob);
                let clipped = ratio.clamp(clip.low, clip.high);
                -(ratio * advantage).min(clipped * advantage) * weight
            }
        }
    }

    /// How fast that loss falls as the log-probability grows: minus its derivative.
    pub(super) fn pull_at(&self, position: usize, logprob: f32) -> f32 {
        let weight = self.weights[position];
        match &self.loss {
            Loss::CrossEntropy => weight,
            Loss::ImportanceSampling(sampled) => {
                let (advantage, ratio) = sampled.at(position, logprob);
                ratio * advantage * weight
            }
            Loss::Ppo(sampled, clip) => {
                let (advantage, ratio) = sampled.at(position, logprob);
                let beyond =
                    (advantage > 0.0 && ratio > clip.high) || (advantage < 0.0 && ratio < clip.low);
                if beyond { 0.0 } else { ratio * advantage * weight }
            }
        }
    }
}

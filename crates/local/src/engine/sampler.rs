//! From logits to a token. What is drawn depends on the logits, the parameters and the request's own
//! seed, never on what else is in the batch.

use rand::Rng;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::model::argmax;

/// How a request is sampled.
#[derive(Debug, Clone)]
pub struct Sampling {
    pub temperature: f32,
    pub top_p: f32,
    pub top_k: Option<usize>,
    pub min_p: f32,
}

/// One request's own stream of chance.
pub struct Sampler {
    sampling: Sampling,
    rng: ChaCha8Rng,
}

impl Sampler {
    pub fn new(sampling: Sampling, seed: u64) -> Self {
        Self { sampling, rng: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Draws a token.
    pub fn sample(&mut self, logits: &[f32]) -> u32 {
        let Sampling { temperature, top_p, top_k, min_p } = self.sampling;
        if temperature <= 0.0 {
            return argmax(logits) as u32;
        }
        let highest = logits[argmax(logits)];
        let mut weighted: Vec<(f64, usize)> = logits
            .iter()
            .enumerate()
            .map(|(i, l)| (libm::exp(f64::from((l - highest) / temperature)), i))
            .collect();
        if top_p < 1.0 || min_p > 0.0 || top_k.is_some() {
            weighted.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            if let Some(k) = top_k {
                weighted.truncate(k.max(1));
            }
            let best = weighted[0].0;
            weighted.retain(|(w, _)| *w >= f64::from(min_p) * best);
            let total: f64 = weighted.iter().map(|(w, _)| w).sum();
            let mut mass = 0.0;
            let kept = weighted
                .iter()
                .take_while(|(w, _)| {
                    let before = mass;
                    mass += w;
                    before < f64::from(top_p) * total
                })
                .count();
            weighted.truncate(kept.max(1));
        }
        let total: f64 = weighted.iter().map(|(w, _)| w).sum();
        let mut draw = self.rng.random::<f64>() * total;
        for (weight, index) in &weighted {
            draw -= weight;
            if draw < 0.0 {
                return *index as u32;
            }
        }
        weighted[weighted.len() - 1].1 as u32
    }
}

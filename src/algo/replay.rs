//! Which transitions are replayed: by the critic's loss, with a uniform share and a floor on endings
//! (NLAC §4: weight by critic loss; algorithms sheet §1.4).

use rand::Rng;

use crate::domain::{ids::TransitionId, spec::ReplaySpec};

/// What selection knows of a stored transition.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// The transition.
    pub transition_id: TransitionId,
    /// It ends its episode.
    pub done: bool,
    /// Critic loss per token when it was last learnt from; none if never.
    pub loss: Option<f32>,
}

/// Keeps a transition whose loss is 0 reachable.
const FLOOR: f64 = 1e-3;

/// Draws up to `spec.batch` different entries, as indices into `entries`, in an order that depends on
/// nothing but the entries and the generator.
///
/// Endings are drawn first, up to their least share; the rest comes from everything that is left.
/// Within each draw the chance is proportional to `priority ^ exponent`, or uniform for the uniform
/// share. A transition that was never learnt from has the largest priority seen.
pub fn select(entries: &[Entry], spec: &ReplaySpec, rng: &mut impl Rng) -> Vec<usize> {
    let batch = (spec.batch as usize).min(entries.len());
    let priorities = priorities(entries, spec.priority_exponent);
    let mut left: Vec<usize> = (0..entries.len()).collect();
    let mut drawn = Vec::with_capacity(batch);

    let endings: Vec<usize> = left.iter().copied().filter(|&i| entries[i].done).collect();
    let wanted = ((batch as f64) * f64::from(spec.terminal_share)).round() as usize;
    draw(&endings, wanted.min(endings.len()), &priorities, spec.uniform_share, rng, &mut drawn);
    let mut taken = vec![false; entries.len()];
    for &i in &drawn {
        taken[i] = true;
    }
    left.retain(|&i| !taken[i]);
    let missing = batch - drawn.len();
    draw(&left, missing, &priorities, spec.uniform_share, rng, &mut drawn);
    drawn
}

/// `(loss + floor) ^ exponent`, the never learnt at the maximum.
fn priorities(entries: &[Entry], exponent: f32) -> Vec<f64> {
    let raw = |loss: f32| (f64::from(loss.max(0.0)) + FLOOR).powf(f64::from(exponent));
    let highest = entries.iter().filter_map(|e| e.loss).map(raw).fold(FLOOR, f64::max);
    entries.iter().map(|e| e.loss.map_or(highest, raw)).collect()
}

/// Draws `count` different members of `pool` and appends them: weighted sampling without replacement
/// by exponential keys (Efraimidis and Spirakis 2006), for the uniform share with equal weights.
fn draw(
    pool: &[usize],
    count: usize,
    priorities: &[f64],
    uniform_share: f32,
    rng: &mut impl Rng,
    drawn: &mut Vec<usize>,
) {
    let uniform = ((count as f64) * f64::from(uniform_share)).round() as usize;
    let mut keyed: Vec<(f64, f64, usize)> = pool
        .iter()
        .map(|&i| {
            let u: f64 = rng.random_range(f64::MIN_POSITIVE..1.0);
            (-u.ln() / priorities[i], -u.ln(), i)
        })
        .collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.2.cmp(&b.2)));
    let rest = keyed.split_off(count.saturating_sub(uniform).min(keyed.len()));
    drawn.extend(keyed.iter().map(|&(_, _, i)| i));
    // Fresh numbers: the left-over keys are conditioned on having lost.
    let mut rest: Vec<(f64, usize)> =
        rest.into_iter().map(|(_, _, i)| (rng.random::<f64>(), i)).collect();
    rest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    drawn.extend(rest.iter().take(uniform.min(count)).map(|&(_, i)| i));
}

#[cfg(test)]
mod tests {
    use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

    use super::{Entry, select};
    use crate::domain::{ids::TransitionId, spec::ReplaySpec};

    fn entry(done: bool, loss: Option<f32>) -> Entry {
        Entry { transition_id: TransitionId::new(), done, loss }
    }

    fn spec(batch: u32, exponent: f32, uniform: f32, terminal: f32) -> ReplaySpec {
        ReplaySpec {
            batch,
            capacity: 1000,
            priority_exponent: exponent,
            uniform_share: uniform,
            terminal_share: terminal,
        }
    }

    #[test]
    fn draws_without_repetition_and_never_more_than_there_are() {
        let entries: Vec<_> = (0..20).map(|i| entry(i % 4 == 0, Some(i as f32))).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for batch in [1, 7, 20, 50] {
            let drawn = select(&entries, &spec(batch, 0.6, 0.1, 0.45), &mut rng);
            let mut unique = drawn.clone();
            unique.sort_unstable();
            unique.dedup();
            assert_eq!(unique.len(), drawn.len());
            assert_eq!(drawn.len(), (batch as usize).min(20));
        }
    }

    #[test]
    fn endings_reach_their_least_share() {
        let entries: Vec<_> = (0..100).map(|i| entry(i < 30, Some(1.0))).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let drawn = select(&entries, &spec(40, 0.6, 0.0, 0.5), &mut rng);
        assert!(drawn.iter().filter(|&&i| entries[i].done).count() >= 20);
    }

    #[test]
    fn chance_follows_the_priority() {
        // One draw of one: frequency ∝ (loss + 0.001)^0.6, within 4σ over 20,000 draws.
        let losses = [0.1_f32, 0.5, 1.0, 4.0];
        let entries: Vec<_> = losses.iter().map(|&l| entry(false, Some(l))).collect();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let n = 20_000;
        let mut counts = [0_u32; 4];
        for _ in 0..n {
            counts[select(&entries, &spec(1, 0.6, 0.0, 0.0), &mut rng)[0]] += 1;
        }
        let p: Vec<f64> = losses.iter().map(|&l| (f64::from(l) + 1e-3).powf(0.6)).collect();
        let total: f64 = p.iter().sum();
        for (count, p) in counts.iter().zip(p) {
            let p = p / total;
            let sigma = (f64::from(n) * p * (1.0 - p)).sqrt();
            assert!((f64::from(*count) - f64::from(n) * p).abs() < 4.0 * sigma, "{counts:?}");
        }
    }

    #[test]
    fn the_never_learnt_come_at_the_highest_priority() {
        let mut entries: Vec<_> = (0..50).map(|_| entry(false, Some(0.01))).collect();
        entries[0].loss = Some(5.0);
        entries[1].loss = None;
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let mut hits = [0_u32; 2];
        for _ in 0..2000 {
            let drawn = select(&entries, &spec(1, 1.0, 0.0, 0.0), &mut rng);
            if drawn[0] < 2 {
                hits[drawn[0]] += 1;
            }
        }
        assert!(hits.iter().sum::<u32>() > 1600, "{hits:?}");
        assert!((f64::from(hits[0]) / f64::from(hits[1]) - 1.0).abs() < 0.2, "{hits:?}");
    }
}

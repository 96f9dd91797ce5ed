//! Seeds by name: every random choice of a job is a function of the job's seed and of what the choice
//! is for, never of timing. A resumed or re-leased unit of work draws the same numbers again.

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use sha2::{Digest, Sha256};

/// A path of labels and numbers under a job's seed, e.g. `seed / "annotate" / iteration / "critique" / 17`.
#[derive(Debug, Clone)]
pub struct SeedPath {
    here: Sha256,
    /// The path without its last part.
    above: Sha256,
}

impl SeedPath {
    /// The root: the seed that the job's spec names.
    #[must_use]
    pub fn root(seed: u64) -> Self {
        let here = Sha256::new().chain_update(seed.to_le_bytes());
        Self { above: here.clone(), here }
    }

    /// The branch for a named purpose.
    #[must_use]
    pub fn label(&self, label: &str) -> Self {
        self.below(self.here.clone().chain_update([0]).chain_update(label.as_bytes()))
    }

    /// The branch for the `index`-th of its kind.
    #[must_use]
    pub fn index(&self, index: u64) -> Self {
        self.below(self.here.clone().chain_update([1]).chain_update(index.to_le_bytes()))
    }

    fn below(&self, here: Sha256) -> Self {
        Self { here, above: self.here.clone() }
    }

    /// A number that paths share which differ in their last part only: the turns of an episode, the
    /// samples of one prompt.
    #[must_use]
    pub fn siblings(&self) -> u64 {
        u64::from_le_bytes(first_eight(&self.above))
    }

    /// A sampling seed for an engine: positive and within 53 bits, so that JSON and int64 keep it exact.
    #[must_use]
    pub fn sampling_seed(&self) -> i64 {
        i64::from_le_bytes(first_eight(&self.here)) & ((1 << 53) - 1)
    }

    /// A generator for choices made on our side.
    #[must_use]
    pub fn rng(&self) -> ChaCha8Rng {
        ChaCha8Rng::from_seed(self.here.clone().finalize().into())
    }
}

fn first_eight(path: &Sha256) -> [u8; 8] {
    let digest: [u8; 32] = path.clone().finalize().into();
    let mut head = [0; 8];
    head.copy_from_slice(&digest[..8]);
    head
}

#[cfg(test)]
mod tests {
    use super::SeedPath;

    #[test]
    fn branches_differ_and_repeat() {
        let root = SeedPath::root(7);
        let a = root.label("annotate").index(1);
        assert_eq!(a.sampling_seed(), root.label("annotate").index(1).sampling_seed());
        assert_ne!(a.sampling_seed(), root.label("annotate").index(2).sampling_seed());
        assert_ne!(a.sampling_seed(), root.label("collect").index(1).sampling_seed());
        assert!(a.sampling_seed() >= 0);
    }
}

//! Memory for what a pass computes on the way. Each thread uses its buffers again in the next pass: fresh memory costs
//! more than the arithmetic that fills it.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    ops::{Deref, DerefMut},
};

/// Numbers that a thread keeps at most, 64 MiB.
const MOST_KEPT: usize = 1 << 24;

thread_local! {
    static SPARE: RefCell<Spare> = const { RefCell::new(Spare { of_size: BTreeMap::new(), kept: 0 }) };
}

/// Buffers that nobody uses, by size.
struct Spare {
    of_size: BTreeMap<usize, Vec<Vec<f32>>>,
    kept: usize,
}

/// Numbers in memory that returns to the thread that drops it.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    /// A few more numbers, such that buffers of a similar length have the same size.
    memory: Vec<f32>,
    length: usize,
}

impl Buffer {
    /// Numbers of any kind, for whoever writes all of them.
    pub fn unset(length: usize) -> Self {
        if length == 0 {
            return Self::default();
        }
        let size = length.next_multiple_of(1 << length.ilog2().saturating_sub(2));
        let spare = SPARE.try_with(|spare| {
            let spare = &mut *spare.borrow_mut();
            let memory = spare.of_size.get_mut(&size)?.pop()?;
            spare.kept -= size;
            Some(memory)
        });
        let memory = spare.ok().flatten().unwrap_or_else(|| vec![0.0; size]);
        Self { memory, length }
    }

    /// Zeros.
    pub fn zeros(length: usize) -> Self {
        let mut buffer = Self::unset(length);
        buffer.fill(0.0);
        buffer
    }

    /// Drops what comes after the first `length` numbers.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }
}

impl From<&[f32]> for Buffer {
    fn from(numbers: &[f32]) -> Self {
        let mut buffer = Self::unset(numbers.len());
        buffer.copy_from_slice(numbers);
        buffer
    }
}

impl Clone for Buffer {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.memory[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.memory.is_empty() {
            return;
        }
        let memory = std::mem::take(&mut self.memory);
        // A thread that ends keeps nothing.
        let _ = SPARE.try_with(|spare| {
            let spare = &mut *spare.borrow_mut();
            if spare.kept + memory.len() <= MOST_KEPT {
                spare.kept += memory.len();
                spare.of_size.entry(memory.len()).or_default().push(memory);
            }
        });
    }
}

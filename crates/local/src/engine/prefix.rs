//! Prefixes that several prompts share: blocks of positions in a tree, the least recently used leaves
//! evicted first. A key is exact (parent and tokens), so a hit is never a collision.

use std::collections::HashMap;

use crate::model::KvBlock;

/// Positions per block.
pub const BLOCK: usize = 8;

/// A node of the tree; what weights and salt it belongs to is its root's business.
pub type Node = u64;

struct Entry {
    node: Node,
    block: KvBlock,
    used: u64,
}

/// The tree.
pub struct PrefixCache {
    entries: HashMap<(Node, [u32; BLOCK]), Entry>,
    roots: HashMap<(u64, Option<String>), Node>,
    capacity: usize,
    next: Node,
    clock: u64,
    /// Tokens asked for and found, for the metrics.
    pub queries: u64,
    /// Tokens found.
    pub hits: u64,
}

impl PrefixCache {
    pub fn new(capacity_tokens: usize) -> Self {
        Self {
            entries: HashMap::new(),
            roots: HashMap::new(),
            capacity: capacity_tokens / BLOCK,
            next: 0,
            clock: 0,
            queries: 0,
            hits: 0,
        }
    }

    /// The root of everything computed with these weights under this salt.
    pub fn root(&mut self, weights: u64, salt: Option<&str>) -> Node {
        let next = &mut self.next;
        *self.roots.entry((weights, salt.map(ToOwned::to_owned))).or_insert_with(|| {
            *next += 1;
            *next
        })
    }

    /// The block that follows `parent` with these tokens.
    pub fn get(&mut self, parent: Node, tokens: [u32; BLOCK]) -> Option<(Node, KvBlock)> {
        self.clock += 1;
        self.queries += BLOCK as u64;
        let entry = self.entries.get_mut(&(parent, tokens))?;
        entry.used = self.clock;
        self.hits += BLOCK as u64;
        Some((entry.node, entry.block.clone()))
    }

    /// Adds a block unless it is there; returns its node.
    pub fn put(
        &mut self,
        parent: Node,
        tokens: [u32; BLOCK],
        block: impl FnOnce() -> KvBlock,
    ) -> Node {
        self.clock += 1;
        let used = self.clock;
        if let Some(entry) = self.entries.get_mut(&(parent, tokens)) {
            entry.used = used;
            return entry.node;
        }
        if self.entries.len() >= self.capacity {
            self.evict();
        }
        self.next += 1;
        let node = self.next;
        self.entries.insert((parent, tokens), Entry { node, block: block(), used });
        node
    }

    /// Forgets everything computed with these weights.
    pub fn forget(&mut self, weights: u64) {
        self.roots.retain(|(w, _), _| *w != weights);
    }

    /// Drops the older half at once: eviction stays rare, and what is orphaned below goes with age.
    fn evict(&mut self) {
        let mut ages: Vec<_> = self.entries.values().map(|e| e.used).collect();
        let middle = ages.len() / 2;
        let (_, median, _) = ages.select_nth_unstable(middle);
        let median = *median;
        self.entries.retain(|_, e| e.used > median);
    }

    /// Share of the room that is taken.
    pub fn usage(&self) -> f64 {
        self.entries.len() as f64 / self.capacity.max(1) as f64
    }
}

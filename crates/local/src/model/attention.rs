//! Causal attention of one sequence over its key-value cache, forward and backward.

use std::ops::Range;

use super::{
    config::Config,
    kernel::{Strided, WIDEST, product},
    math::{softmax, softmax_backward},
};

/// Queries that are attended from at once. No query sees what comes after it, so a block of them leaves out what comes
/// after all of them.
const BLOCK: usize = 16;

/// Keys and values of one layer of one sequence. Keys lie transposed, so that scores are computed
/// across positions.
#[derive(Debug, Clone)]
pub(crate) struct LayerCache {
    /// `[kv_heads, head_dim, capacity]`, rotated.
    pub keys: Vec<f32>,
    /// `[kv_heads, capacity, head_dim]`.
    pub values: Vec<f32>,
    /// A multiple of the kernel's tile width, so that scores need no ragged columns.
    pub capacity: usize,
}

impl LayerCache {
    pub fn new(config: &Config, length: usize) -> Self {
        let capacity = length.next_multiple_of(WIDEST);
        let size = config.key_width() * capacity;
        Self { keys: vec![0.0; size], values: vec![0.0; size], capacity }
    }

    /// Writes the keys and values of positions from `start` on; both are `[positions, kv_heads, head_dim]`.
    pub fn put(&mut self, config: &Config, start: usize, keys: &[f32], values: &[f32]) {
        let (width, capacity, all) = (config.head_dim, self.capacity, config.key_width());
        for i in 0..all {
            let row = self.keys[i * capacity + start..].iter_mut();
            for (to, keys) in row.zip(keys.chunks_exact(all)) {
                *to = keys[i];
            }
        }
        for (offset, values) in values.chunks_exact(all).enumerate() {
            for (head, value) in values.chunks_exact(width).enumerate() {
                let at = (head * capacity + start + offset) * width;
                self.values[at..at + width].copy_from_slice(value);
            }
        }
    }

    /// Takes over the first positions of another sequence.
    pub fn take_first(&mut self, config: &Config, from: &Self, positions: usize) {
        let mut taken = Vec::with_capacity(2 * config.key_width() * positions);
        from.export(config, 0..positions, &mut taken);
        self.import(config, 0, positions, &taken);
    }

    /// Appends keys and values of positions to `out`, as they lie here.
    pub fn export(&self, config: &Config, positions: Range<usize>, out: &mut Vec<f32>) {
        let (width, capacity) = (config.head_dim, self.capacity);
        for i in 0..config.key_width() {
            out.extend_from_slice(&self.keys[i * capacity..][positions.clone()]);
        }
        for head in 0..config.num_key_value_heads {
            let values = &self.values[head * capacity * width..];
            out.extend_from_slice(&values[positions.start * width..positions.end * width]);
        }
    }

    /// Writes what [`Self::export`] has read of `count` positions to the positions from `start` on.
    pub fn import(&mut self, config: &Config, start: usize, count: usize, exported: &[f32]) {
        let (width, capacity) = (config.head_dim, self.capacity);
        let (keys, values) = exported.split_at(config.key_width() * count);
        for (i, keys) in keys.chunks_exact(count).enumerate() {
            self.keys[i * capacity + start..][..count].copy_from_slice(keys);
        }
        for (head, values) in values.chunks_exact(count * width).enumerate() {
            let at = (head * capacity + start) * width;
            self.values[at..][..count * width].copy_from_slice(values);
        }
    }
}

/// Attends from `rows` new queries (`[rows, query_width]`, at positions `start..`) over the cache.
/// Writes `[rows, query_width]`; returns the probabilities `[heads, rows, capacity]` when kept.
pub(crate) fn attend(
    config: &Config,
    queries: &[f32],
    start: usize,
    cache: &LayerCache,
    out: &mut [f32],
    keep: bool,
) -> Vec<f32> {
    let (width, capacity) = (config.head_dim, cache.capacity);
    let heads = config.num_attention_heads;
    let group = heads / config.num_key_value_heads;
    let rows = queries.len() / config.query_width();
    let scale = 1.0 / (width as f32).sqrt();
    let visible = (start + rows).next_multiple_of(WIDEST);
    // Of a query that is alone, the heads that share keys are the rows of one product.
    let alone = rows == 1;
    let (together, rows_each, stride) =
        if alone { (group, group, width) } else { (1, rows, config.query_width()) };
    let mut scores = vec![0.0; visible * if keep { heads * rows } else { rows_each }];
    for head in (0..heads).step_by(together) {
        let of_head = (head / group) * width * capacity..(head / group + 1) * width * capacity;
        let (keys, values) = (&cache.keys[of_head.clone()], &cache.values[of_head]);
        let scores = &mut scores[if keep { head * rows * visible } else { 0 }..];
        for first in (0..rows_each).step_by(BLOCK) {
            let count = BLOCK.min(rows_each - first);
            let seen = if alone { start + 1 } else { start + first + count };
            let columns = seen.next_multiple_of(WIDEST);
            let scores = &mut scores[first * visible..(first + count) * visible];
            let at = head * width + first * stride;
            let q = Strided::rows(&queries[at..], stride);
            product(q, (keys, capacity), (scores, visible), count, width, columns);
            for (row, scores) in scores.chunks_exact_mut(visible).enumerate() {
                let seen = if alone { start + 1 } else { start + first + row + 1 };
                softmax(&mut scores[..columns], seen, scale);
            }
            let p = Strided::rows(scores, visible);
            product(p, (values, width), (&mut out[at..], stride), count, seen, width);
        }
    }
    if keep { scores } else { Vec::new() }
}

/// Gradients of [`attend`] over a whole sequence of n positions, from the queries at `start..n`: adds to
/// `dk` and `dv` (`[n, key_width]`), writes `dq` (`[n - start, query_width]`). The probabilities are those of
/// the queries at `begin..n`.
#[expect(
    clippy::too_many_arguments,
    reason = "inputs, saved values and three outputs of one formula"
)]
pub(crate) fn attend_backward(
    config: &Config,
    queries: &[f32],
    start: usize,
    begin: usize,
    cache: &LayerCache,
    probabilities: &[f32],
    dout: &[f32],
    dq: &mut [f32],
    dk: &mut [f32],
    dv: &mut [f32],
) {
    let (width, capacity) = (config.head_dim, cache.capacity);
    let (stride, key_stride) = (config.query_width(), config.key_width());
    let rows = queries.len() / stride;
    if rows == 0 {
        return;
    }
    let n = start + rows;
    let visible = n.next_multiple_of(WIDEST);
    let group = config.num_attention_heads / config.num_key_value_heads;
    let scale = 1.0 / (width as f32).sqrt();
    let mut ds = vec![0.0; rows * visible];
    let mut keys_in = vec![0.0; n * width];
    let mut values_in = vec![0.0; width * visible];
    let mut keys_out = vec![0.0; n * width];
    for head in 0..config.num_attention_heads {
        let source = head / group;
        if head % group == 0 {
            let of_head = source * width * capacity..(source + 1) * width * capacity;
            transpose(&cache.values[of_head.clone()], width, &mut values_in, visible, n, width);
            transpose(&cache.keys[of_head], capacity, &mut keys_in, width, width, n);
        }
        let p = &probabilities[(head * (n - begin) + start - begin) * visible..][..rows * visible];
        for first in (0..rows).step_by(BLOCK) {
            let count = BLOCK.min(rows - first);
            let seen = start + first + count;
            let columns = seen.next_multiple_of(WIDEST);
            let (block, at) = (first * visible.., first * stride + head * width);
            let (p, ds) = (&p[block.clone()], &mut ds[block]);

            // dP = dO · Vᵀ, then through the softmax.
            let d_out = Strided::rows(&dout[at..], stride);
            product(d_out, (&values_in, visible), (ds, visible), count, width, columns);
            for row in 0..count {
                let row = row * visible..row * visible + columns;
                softmax_backward(&p[row.clone()], &mut ds[row], scale);
            }

            // dQ = dS · K
            let d_scores = Strided::rows(ds, visible);
            product(d_scores, (&keys_in, width), (&mut dq[at..], stride), count, seen, width);
        }
        // dK = dSᵀ · Q and dV = Pᵀ · dO, of each key from the first query on that sees it.
        for (weights, from, to) in [(&ds[..], queries, &mut *dk), (p, dout, &mut *dv)] {
            for first in (0..n).step_by(BLOCK) {
                let count = BLOCK.min(n - first);
                let row = first.saturating_sub(start);
                let weights = Strided::transposed(&weights[row * visible + first..], visible);
                let from = (&from[row * stride + head * width..], stride);
                let to = (&mut keys_out[first * width..], width);
                product(weights, from, to, count, rows - row, width);
            }
            let to = to[source * width..].chunks_mut(key_stride);
            for (to, from) in to.zip(keys_out.chunks_exact(width)) {
                for (to, from) in to.iter_mut().zip(from) {
                    *to += from;
                }
            }
        }
    }
}

/// From `[rows, columns]` to `[columns, rows]`; rows lie as far apart as the numbers behind the slices say.
fn transpose(
    from: &[f32],
    from_stride: usize,
    to: &mut [f32],
    to_stride: usize,
    rows: usize,
    columns: usize,
) {
    for row in 0..rows {
        for (column, value) in from[row * from_stride..][..columns].iter().enumerate() {
            to[column * to_stride + row] = *value;
        }
    }
}

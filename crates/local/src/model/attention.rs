//! Causal attention of one sequence over its key-value cache, forward and backward.

use super::{
    config::Config,
    kernel::{Strided, matmul},
    math::{softmax, softmax_backward},
};

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
        let capacity = length.next_multiple_of(32);
        let size = config.key_width() * capacity;
        Self { keys: vec![0.0; size], values: vec![0.0; size], capacity }
    }

    /// Writes the keys and values of one position; both are `[kv_heads, head_dim]`.
    pub fn put(&mut self, config: &Config, position: usize, keys: &[f32], values: &[f32]) {
        let (width, capacity) = (config.head_dim, self.capacity);
        for (i, key) in keys.iter().enumerate() {
            self.keys[i * capacity + position] = *key;
        }
        for (head, value) in values.chunks_exact(width).enumerate() {
            let at = (head * capacity + position) * width;
            self.values[at..at + width].copy_from_slice(value);
        }
    }

    /// Takes over the first positions of another sequence.
    pub fn take_first(&mut self, config: &Config, from: &Self, positions: usize) {
        let (width, capacity) = (config.head_dim, self.capacity);
        for i in 0..config.key_width() {
            let keys = &from.keys[i * from.capacity..][..positions];
            self.keys[i * capacity..][..positions].copy_from_slice(keys);
        }
        for head in 0..config.num_key_value_heads {
            let values = &from.values[head * from.capacity * width..][..positions * width];
            self.values[head * capacity * width..][..positions * width].copy_from_slice(values);
        }
    }

    /// Reads back what [`Self::put`] wrote: keys, then values.
    pub fn get(&self, config: &Config, position: usize, out: &mut Vec<f32>) {
        let (width, capacity) = (config.head_dim, self.capacity);
        out.extend((0..config.key_width()).map(|i| self.keys[i * capacity + position]));
        for head in 0..config.num_key_value_heads {
            let at = (head * capacity + position) * width;
            out.extend_from_slice(&self.values[at..at + width]);
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
    let stride = config.query_width();
    let rows = queries.len() / stride;
    if rows == 0 {
        return Vec::new();
    }
    let group = config.num_attention_heads / config.num_key_value_heads;
    let scale = 1.0 / (width as f32).sqrt();
    // Columns beyond the last visible position need not be computed, but whole tiles are cheaper.
    let visible = (start + rows).next_multiple_of(32).min(capacity);
    let mut kept = Vec::new();
    let mut scores = vec![0.0; rows * capacity];
    let mut keys = vec![0.0; width * visible];
    let mut mixed = vec![0.0; rows * width];
    for head in 0..config.num_attention_heads {
        let source = head / group;
        let cached = &cache.keys[source * width * capacity..][..width * capacity];
        let dense: &[f32] = if visible == capacity {
            cached
        } else {
            if head % group == 0 {
                for d in 0..width {
                    keys[d * visible..][..visible]
                        .copy_from_slice(&cached[d * capacity..][..visible]);
                }
            }
            &keys
        };
        let scores = &mut scores[..rows * visible];
        scores.fill(0.0);
        let q = Strided::rows(&queries[head * width..], stride);
        matmul(q, dense, scores, rows, width, visible);
        for row in 0..rows {
            softmax(&mut scores[row * visible..][..visible], start + row + 1, scale);
        }
        mixed.fill(0.0);
        let values = &cache.values[source * width * capacity..][..width * capacity];
        matmul(Strided::rows(scores, visible), values, &mut mixed, rows, start + rows, width);
        for row in 0..rows {
            out[row * stride + head * width..][..width]
                .copy_from_slice(&mixed[row * width..][..width]);
        }
        if keep {
            kept.extend_from_slice(scores);
        }
    }
    kept
}

/// Gradients of [`attend`] over a whole sequence of n positions, from the queries at `start..n`: adds to
/// `dq` (`[n - start, query_width]`), `dk` and `dv` (`[n, key_width]`). The probabilities are those of
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
    let visible = n.next_multiple_of(32).min(capacity);
    let group = config.num_attention_heads / config.num_key_value_heads;
    let scale = 1.0 / (width as f32).sqrt();
    let mut ds = vec![0.0; rows * visible];
    let mut keys_in = vec![0.0; n * width];
    let mut rows_in = vec![0.0; rows * width];
    let mut rows_out = vec![0.0; rows * width];
    let mut keys_out = vec![0.0; n * width];
    let mut transposed = vec![0.0; width * visible];
    for head in 0..config.num_attention_heads {
        let source = head / group;
        let p = &probabilities[(head * (n - begin) + start - begin) * visible..][..rows * visible];
        let values = &cache.values[source * width * capacity..][..width * capacity];
        let keys = &cache.keys[source * width * capacity..][..width * capacity];

        // dP = dO · Vᵀ, then through the softmax.
        transposed.fill(0.0);
        for position in 0..n {
            for d in 0..width {
                transposed[d * visible + position] = values[position * width + d];
            }
        }
        ds.fill(0.0);
        let d_out = Strided::rows(&dout[head * width..], stride);
        matmul(d_out, &transposed, &mut ds, rows, width, visible);
        for row in 0..rows {
            let at = row * visible..(row + 1) * visible;
            softmax_backward(&p[at.clone()], &mut ds[at], scale);
        }

        // dQ = dS · K
        for position in 0..n {
            for d in 0..width {
                keys_in[position * width + d] = keys[d * capacity + position];
            }
        }
        rows_out.fill(0.0);
        matmul(Strided::rows(&ds, visible), &keys_in, &mut rows_out, rows, n, width);
        scatter(&rows_out, dq, stride, head * width, width);

        // dK = dSᵀ · Q
        gather(queries, &mut rows_in, stride, head * width, width);
        keys_out.fill(0.0);
        matmul(Strided::transposed(&ds, visible), &rows_in, &mut keys_out, n, rows, width);
        scatter(&keys_out, dk, key_stride, source * width, width);

        // dV = Pᵀ · dO
        gather(dout, &mut rows_in, stride, head * width, width);
        keys_out.fill(0.0);
        matmul(Strided::transposed(p, visible), &rows_in, &mut keys_out, n, rows, width);
        scatter(&keys_out, dv, key_stride, source * width, width);
    }
}

fn gather(from: &[f32], to: &mut [f32], stride: usize, offset: usize, width: usize) {
    for (row, to) in to.chunks_exact_mut(width).enumerate() {
        to.copy_from_slice(&from[row * stride + offset..][..width]);
    }
}

fn scatter(from: &[f32], to: &mut [f32], stride: usize, offset: usize, width: usize) {
    for (row, from) in from.chunks_exact(width).enumerate() {
        for (to, from) in to[row * stride + offset..][..width].iter_mut().zip(from) {
            *to += from;
        }
    }
}

//! The backward pass, by hand: gradients of every linear map and, for pre-training, of the norms and
//! the embedding. A batch is cut into shards of a fixed size whose gradients are added in order, so
//! that threads change nothing.

use std::sync::Mutex;

use super::Loss;
use crate::model::{
    Config, KvCache, Layer, LayerTape, Linear, Strided, Tape, Weights, attend_backward, forward,
    log_softmax_at, matmul, rms_norm_backward, rope_backward, silu_backward,
};
use crate::model::{Segment, apply};

/// One sequence to learn: `targets[i]` is to follow `input[..=i]`, with `weights[i]` in the loss. The
/// loss is the sum over positions of weight times the position's loss, in nats, as Tinker sums.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// Token ids read.
    pub input: Vec<u32>,
    /// The token that should follow each of them.
    pub targets: Vec<u32>,
    /// Weight of each position; 0 masks it.
    pub weights: Vec<f32>,
    /// What each position's loss is.
    pub loss: Loss,
}

impl Example {
    /// A sequence that is learnt by cross entropy.
    #[must_use]
    pub const fn said(input: Vec<u32>, targets: Vec<u32>, weights: Vec<f32>) -> Self {
        Self { input, targets, weights, loss: Loss::CrossEntropy }
    }
}

/// Sequences per shard. Part of the definition of a gradient's rounding, not of the machine.
const SHARD: usize = 8;

/// Gradients of a loss with respect to a model's weights.
#[derive(Debug, Clone)]
pub struct Gradients {
    /// Per layer, the seven linear maps, `[outputs, inputs]`.
    pub(crate) linears: Vec<[Vec<f32>; 7]>,
    /// The rest, for training from scratch.
    pub(crate) rest: Option<Rest>,
}

/// Gradients beside the linear maps.
#[derive(Debug, Clone)]
pub(crate) struct Rest {
    pub embed: Vec<f32>,
    /// Empty where the output layer is the embedding.
    pub head: Vec<f32>,
    pub final_norm: Vec<f32>,
    /// Per layer: input, post-attention, query and key norms.
    pub norms: Vec<[Vec<f32>; 4]>,
}

impl Gradients {
    /// Zeros for the linear maps, or for every weight.
    #[must_use]
    pub fn zeros(config: &Config, everything: bool) -> Self {
        let layers = config.num_hidden_layers;
        let head_norm = if config.qk_norm { config.head_dim } else { 0 };
        let d = config.hidden_size;
        let rest = everything.then(|| Rest {
            embed: vec![0.0; config.vocab_size * d],
            head: vec![0.0; if config.tie_word_embeddings { 0 } else { config.vocab_size * d }],
            final_norm: vec![0.0; d],
            norms: (0..layers)
                .map(|_| [d, d, head_norm, head_norm].map(|n| vec![0.0; n]))
                .collect(),
        });
        let linears = (0..layers)
            .map(|_| config.linear_shapes().map(|(outputs, inputs)| vec![0.0; outputs * inputs]))
            .collect();
        Self { linears, rest }
    }

    /// Every gradient tensor: the linear maps by layer, then embedding, output layer and final norm, then
    /// the norms by layer.
    pub fn tensors_mut(&mut self) -> Vec<&mut Vec<f32>> {
        let mut all: Vec<_> = self.linears.iter_mut().flatten().collect();
        if let Some(rest) = &mut self.rest {
            all.extend([&mut rest.embed, &mut rest.head, &mut rest.final_norm]);
            all.extend(rest.norms.iter_mut().flatten());
        }
        all
    }

    fn add(&mut self, other: &mut Self) {
        for (to, from) in self.tensors_mut().into_iter().zip(other.tensors_mut()) {
            for (to, from) in to.iter_mut().zip(from) {
                *to += *from;
            }
        }
    }
}

/// Log-probability of every target, natural log.
#[must_use]
pub fn logprobs(
    config: &Config,
    weights: &Weights,
    examples: &[Example],
    threads: usize,
) -> Vec<Vec<f32>> {
    over_shards(examples, threads, |shard| {
        let (mut caches, _) = prepare(config, shard);
        let mut segments = segments(shard, &mut caches);
        let hidden = forward(config, weights, &mut segments, None);
        let logits = apply(&weights.head, &hidden, hidden.len() / config.hidden_size);
        split_logprobs(config, shard, &logits)
    })
    .into_iter()
    .flatten()
    .collect()
}

/// Adds the gradients of the examples' loss; returns the log-probability of every target.
pub fn forward_backward(
    config: &Config,
    weights: &Weights,
    examples: &[Example],
    gradients: &mut Gradients,
    threads: usize,
) -> Vec<Vec<f32>> {
    let everything = gradients.rest.is_some();
    let mut all = Vec::with_capacity(examples.len());
    let results = over_shards(examples, threads, |shard| {
        let mut gradients = Gradients::zeros(config, everything);
        let logprobs = shard_backward(config, weights, shard, &mut gradients);
        (logprobs, gradients)
    });
    for (logprobs, mut shard) in results {
        gradients.add(&mut shard);
        all.extend(logprobs);
    }
    all
}

/// Runs a function over the shards, on up to `threads` threads; results in shard order.
fn over_shards<T: Send>(
    examples: &[Example],
    threads: usize,
    run: impl Fn(&[Example]) -> T + Sync,
) -> Vec<T> {
    let shards: Vec<_> = examples.chunks(SHARD).collect();
    if threads <= 1 || shards.len() <= 1 {
        return shards.into_iter().map(run).collect();
    }
    let queue = Mutex::new(shards.iter().enumerate());
    let mut results: Vec<Option<T>> = std::iter::repeat_with(|| None).take(shards.len()).collect();
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads.min(shards.len()))
            .map(|_| {
                scope.spawn(|| {
                    let mut mine = Vec::new();
                    loop {
                        let next = queue.lock().ok().and_then(|mut queue| queue.next());
                        let Some((index, shard)) = next else { return mine };
                        mine.push((index, run(shard)));
                    }
                })
            })
            .collect();
        for thread in running {
            let mine = thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            for (index, result) in mine {
                results[index] = Some(result);
            }
        }
    });
    results.into_iter().flatten().collect()
}

fn prepare(config: &Config, shard: &[Example]) -> (Vec<KvCache>, usize) {
    let caches = shard.iter().map(|e| KvCache::new(config, e.input.len())).collect();
    (caches, shard.iter().map(|e| e.input.len()).sum())
}

fn segments<'a>(shard: &'a [Example], caches: &'a mut [KvCache]) -> Vec<Segment<'a>> {
    shard
        .iter()
        .zip(caches)
        .map(|(example, cache)| Segment {
            tokens: &example.input,
            start: 0,
            wanted: example.input.len(),
            layers: cache.layers_mut(),
        })
        .collect()
}

fn split_logprobs(config: &Config, shard: &[Example], logits: &[f32]) -> Vec<Vec<f32>> {
    let mut rows = logits.chunks_exact(config.vocab_size);
    shard
        .iter()
        .map(|example| {
            example
                .targets
                .iter()
                .zip(rows.by_ref())
                .map(|(target, row)| log_softmax_at(row, *target as usize))
                .collect()
        })
        .collect()
}

fn shard_backward(
    config: &Config,
    weights: &Weights,
    shard: &[Example],
    gradients: &mut Gradients,
) -> Vec<Vec<f32>> {
    let d = config.hidden_size;
    let (mut caches, rows) = prepare(config, shard);
    let mut tape = Tape::default();
    let mut segments = segments(shard, &mut caches);
    let hidden = forward(config, weights, &mut segments, Some(&mut tape));
    let logits = apply(&weights.head, &hidden, rows);
    let logprobs = split_logprobs(config, shard, &logits);

    // Through the output layer, only where the loss is; through the top layer, only from there on.
    let v = config.vocab_size;
    let live = LiveRows::of_loss(shard);
    let (mut dlogits, mut read, mut at) = (Vec::new(), Vec::new(), Vec::new());
    let positions = shard.iter().flat_map(|e| (0..e.targets.len()).map(move |i| (e, i)));
    for (row, ((example, i), logprob)) in positions.zip(logprobs.iter().flatten()).enumerate() {
        let (target, pull) = (&example.targets[i], example.pull_at(i, *logprob));
        if pull != 0.0 {
            let row_logits = &logits[row * v..(row + 1) * v];
            let normaliser = row_logits[*target as usize] - logprob;
            let start = dlogits.len();
            dlogits.extend(row_logits.iter().map(|l| pull * libm::expf(l - normaliser)));
            dlogits[start + *target as usize] -= pull;
            read.extend_from_slice(&hidden[row * d..(row + 1) * d]);
            at.push(row);
        }
    }
    let mut dread = vec![0.0; at.len() * d];
    matmul(Strided::rows(&dlogits, v), &weights.head.w, &mut dread, at.len(), v, d);
    let mut dhidden = vec![0.0; rows * d];
    for (row, dread) in at.iter().zip(dread.chunks_exact(d)) {
        dhidden[row * d..(row + 1) * d].copy_from_slice(dread);
    }
    if let Some(rest) = &mut gradients.rest {
        let to = if rest.head.is_empty() { &mut rest.embed } else { &mut rest.head };
        matmul(Strided::transposed(&dlogits, v), &read, to, v, at.len(), d);
    }

    for (values, width) in [(&mut dhidden, d), (&mut tape.x_final, d), (&mut tape.inverse_final, 1)]
    {
        live.keep(values, width);
    }
    let mut dx = vec![0.0; dhidden.len()];
    rms_norm_backward(
        &tape.x_final,
        &weights.final_norm,
        &tape.inverse_final,
        &dhidden,
        &mut dx,
        gradients.rest.as_mut().map(|rest| rest.final_norm.as_mut_slice()),
    );
    let all = LiveRows::all(shard);
    for index in (0..weights.layers.len()).rev() {
        let Some(tape) = tape.layers.pop() else { break };
        let live = if index + 1 == weights.layers.len() { &live } else { &all };
        dx = LayerPass { config, weights, index, tape, live, caches: &caches }
            .backward(dx, gradients);
    }
    if let Some(rest) = &mut gradients.rest {
        for (token, dx) in shard.iter().flat_map(|e| &e.input).zip(dx.chunks_exact(d)) {
            let row = *token as usize * d;
            for (to, from) in rest.embed[row..row + d].iter_mut().zip(dx) {
                *to += from;
            }
        }
    }
    logprobs
}

/// The rows of a shard whose output carries gradient: of each sequence, all from a position on. The
/// rest would only add zeros.
struct LiveRows {
    /// Per sequence, the first live position and the length.
    spans: Vec<(usize, usize)>,
}

impl LiveRows {
    fn all(shard: &[Example]) -> Self {
        Self { spans: shard.iter().map(|e| (0, e.input.len())).collect() }
    }

    /// From the first position that has a weight in the loss.
    fn of_loss(shard: &[Example]) -> Self {
        let spans = shard.iter().map(|e| {
            let length = e.input.len();
            (e.weights.iter().position(|w| *w != 0.0).unwrap_or(length), length)
        });
        Self { spans: spans.collect() }
    }

    /// Where each sequence's live rows lie among all rows.
    fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.spans.iter().scan(0, |row, (first, length)| {
            let start = *row;
            *row += length;
            Some((start + first, start + length))
        })
    }

    /// Drops the other rows, where there are any.
    fn keep(&self, rows: &mut Vec<f32>, width: usize) {
        if rows.is_empty() {
            return;
        }
        let mut kept = 0;
        for (from, to) in self.ranges() {
            rows.copy_within(from * width..to * width, kept);
            kept += (to - from) * width;
        }
        rows.truncate(kept);
    }

    /// Adds zeros for the other rows.
    fn spread(&self, kept: &[f32], width: usize) -> Vec<f32> {
        let mut rows = Vec::with_capacity(self.ranges().last().map_or(0, |(_, to)| to * width));
        let mut at = 0;
        for (from, to) in self.ranges() {
            rows.resize(from * width, 0.0);
            rows.extend_from_slice(&kept[at..at + (to - from) * width]);
            at += (to - from) * width;
        }
        rows
    }
}

/// One layer's backward pass over a shard.
struct LayerPass<'a> {
    config: &'a Config,
    weights: &'a Weights,
    index: usize,
    tape: LayerTape,
    live: &'a LiveRows,
    caches: &'a [KvCache],
}

impl LayerPass<'_> {
    /// From the gradient of the live rows' output to that of all rows' input. In the lowest layer the
    /// input's gradient is wanted for the embedding only.
    fn backward(self, dout: Vec<f32>, gradients: &mut Gradients) -> Vec<f32> {
        let Self { config, weights, index, mut tape, live, caches } = self;
        let layer: &Layer = &weights.layers[index];
        let (d, qw, kw) = (config.hidden_size, config.query_width(), config.key_width());
        let rows = dout.len() / d;
        let mut live_h = tape.h.clone();
        for (values, width) in [
            (&mut live_h, d),
            (&mut tape.q_raw, qw),
            (&mut tape.inverse_q, config.num_attention_heads),
            (&mut tape.q, qw),
            (&mut tape.mixed, qw),
            (&mut tape.x_mid, d),
            (&mut tape.inverse_post, 1),
            (&mut tape.h_post, d),
            (&mut tape.gate, config.intermediate_size),
            (&mut tape.up, config.intermediate_size),
            (&mut tape.act, config.intermediate_size),
        ] {
            live.keep(values, width);
        }
        let [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj] = &layer.linears;
        let [gq, gk, gv, go, ggate, gup, gdown] = &mut gradients.linears[index];
        let mut norms = gradients.rest.as_mut().map(|rest| &mut rest.norms[index]);

        // The gated layer.
        let mut dact = vec![0.0; tape.act.len()];
        through(down_proj, &dout, rows, &mut dact);
        outer(down_proj, &dout, &tape.act, rows, gdown);
        silu_backward(&mut tape.gate, &mut tape.up, &dact);
        let mut dh = vec![0.0; tape.h_post.len()];
        through(gate_proj, &tape.gate, rows, &mut dh);
        through(up_proj, &tape.up, rows, &mut dh);
        outer(gate_proj, &tape.gate, &tape.h_post, rows, ggate);
        outer(up_proj, &tape.up, &tape.h_post, rows, gup);
        let mut dx_mid = dout;
        rms_norm_backward(
            &tape.x_mid,
            &layer.post_norm,
            &tape.inverse_post,
            &dh,
            &mut dx_mid,
            norms.as_mut().map(|n| n[1].as_mut_slice()),
        );

        // Attention.
        let mut dmixed = vec![0.0; tape.mixed.len()];
        through(o_proj, &dx_mid, rows, &mut dmixed);
        outer(o_proj, &dx_mid, &tape.mixed, rows, go);
        let all_rows = tape.h.len() / d;
        let mut dq = vec![0.0; rows * qw];
        let mut dk = vec![0.0; all_rows * kw];
        let mut dv = vec![0.0; all_rows * kw];
        let (mut live_row, mut row) = (0, 0);
        for (number, &(first, length)) in live.spans.iter().enumerate() {
            let queries = live_row * qw..(live_row + length - first) * qw;
            let keys = row * kw..(row + length) * kw;
            attend_backward(
                config,
                &tape.q[queries.clone()],
                first,
                caches[number].layer(index),
                &tape.probabilities[number],
                &dmixed[queries.clone()],
                &mut dq[queries.clone()],
                &mut dk[keys.clone()],
                &mut dv[keys.clone()],
            );
            for (heads, width, start) in [(&mut dq[queries], qw, first), (&mut dk[keys], kw, 0)] {
                for (offset, heads) in heads.chunks_exact_mut(width).enumerate() {
                    let (cosines, sines) = weights.angles(config, start + offset);
                    for head in heads.chunks_exact_mut(config.head_dim) {
                        rope_backward(head, cosines, sines);
                    }
                }
            }
            live_row += length - first;
            row += length;
        }
        if config.qk_norm {
            let [_, _, nq, nk] = match norms.as_mut() {
                Some(n) => n.each_mut().map(|n| Some(n.as_mut_slice())),
                None => [None, None, None, None],
            };
            dq = head_norm_backward(&tape.q_raw, &layer.q_norm, &tape.inverse_q, &dq, nq);
            dk = head_norm_backward(&tape.k_raw, &layer.k_norm, &tape.inverse_k, &dk, nk);
        }
        outer(q_proj, &dq, &live_h, rows, gq);
        outer(k_proj, &dk, &tape.h, all_rows, gk);
        outer(v_proj, &dv, &tape.h, all_rows, gv);
        let mut dx = live.spread(&dx_mid, d);
        if index == 0 && norms.is_none() {
            return dx;
        }
        let mut dh = vec![0.0; live_h.len()];
        through(q_proj, &dq, rows, &mut dh);
        let mut dh = live.spread(&dh, d);
        through(k_proj, &dk, all_rows, &mut dh);
        through(v_proj, &dv, all_rows, &mut dh);
        rms_norm_backward(
            &tape.x,
            &layer.input_norm,
            &tape.inverse_input,
            &dh,
            &mut dx,
            norms.as_mut().map(|n| n[0].as_mut_slice()),
        );
        dx
    }
}

fn head_norm_backward(
    raw: &[f32],
    weight: &[f32],
    inverse: &[f32],
    dy: &[f32],
    dweight: Option<&mut [f32]>,
) -> Vec<f32> {
    let mut dx = vec![0.0; raw.len()];
    rms_norm_backward(raw, weight, inverse, dy, &mut dx, dweight);
    dx
}

/// `dx += dy · W`.
fn through(linear: &Linear, dy: &[f32], rows: usize, dx: &mut [f32]) {
    let dy = Strided::rows(dy, linear.outputs);
    matmul(dy, &linear.w, dx, rows, linear.outputs, linear.inputs);
}

/// `dW += dyᵀ · x`.
fn outer(linear: &Linear, dy: &[f32], x: &[f32], rows: usize, to: &mut [f32]) {
    matmul(Strided::transposed(dy, linear.outputs), x, to, linear.outputs, rows, linear.inputs);
}

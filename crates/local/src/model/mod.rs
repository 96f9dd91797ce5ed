//! The transformer: configuration, weights, LoRA, and one forward pass that serves and trains.

mod attention;
mod buffer;
mod cache;
mod config;
mod forward;
mod kernel;
mod lora;
mod math;
mod weights;

pub(crate) use buffer::Buffer;
pub use cache::{KvBlock, KvCache};
pub use config::{Config, LoadError};
pub use forward::{Extend, extend};
pub(crate) use forward::{LayerTape, Segment, Tape, apply, forward};
pub(crate) use kernel::{Strided, matmul, product};
pub use lora::{AdapterError, LINEARS, Lora, LoraConfig};
pub use math::{argmax, log_softmax};
pub(crate) use math::{log_softmax_at, log_sum_exp};
pub(crate) use weights::{Layer, bytes_of, floats, write_safetensors};
pub use weights::{Linear, Precision, Weights};
pub(crate) use {
    attention::attend_backward,
    math::{rms_norm_backward, rope_backward, silu_backward},
};

//! Protobuf messages of the Tinker API, as its SDK 0.38 sends and reads them (package `tinker_public`).
//!
//! The SDK sends `forward_backward` in protobuf only, with `forward_only` for a forward pass, and it reads the results
//! of both in protobuf only. Everything else is JSON. Arrays are little-endian bytes.

mod messages;
mod values;

pub use messages::{
    ArrayRecord, BatchedTensor, Chunk, ChunkKind, DType, Datum, EncodedTextChunk, Encoding,
    ForwardBackwardOutput, ForwardBackwardRequest, LossConfigValue, Number, Opaque, SparseCsr,
    Tensor,
};
pub use prost::Message;
pub use values::Malformed;

/// Content type of the messages.
pub const CONTENT_TYPE: &str = "application/x-protobuf";

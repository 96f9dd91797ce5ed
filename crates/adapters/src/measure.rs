//! What is asked of an adapter's files: a hash, how far training moved it, whether it is whole.

use std::{fs::File, path::Path};

use sha2::{Digest, Sha256};

use crate::{
    AdapterError, TENSORS,
    error::io,
    tensors::{self, Tensors},
};

/// `sha256` of the adapter's tensor file, hex.
///
/// # Errors
/// A file that cannot be read.
pub fn sha256(directory: &Path) -> Result<String, AdapterError> {
    let mut file = File::open(directory.join(TENSORS)).map_err(io(directory))?;
    let mut hash = Sha256::new();
    let mut block = vec![0; 1 << 20];
    loop {
        match std::io::Read::read(&mut file, &mut block).map_err(io(directory))? {
            0 => break,
            read => hash.update(&block[..read]),
        }
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

/// Largest absolute entry of the adapter's B matrices, which begin at 0: how far training has moved it.
///
/// # Errors
/// A file that cannot be read or is no adapter.
pub fn largest_update(directory: &Path) -> Result<f32, AdapterError> {
    let (mut largest, mut bytes) = (0.0_f32, Vec::new());
    for (name, tensor) in tensors::of(directory)? {
        if name.ends_with(".lora_B.weight") {
            for block in tensor.blocks() {
                tensor.read(block, &mut bytes).map_err(io(directory))?;
                largest = tensor.float.read(&bytes).fold(largest, |l, value| value.abs().max(l));
            }
        }
    }
    Ok(largest)
}

/// Why tensors make no adapter: every A needs its B, and every number must be finite.
pub(crate) fn fault(tensors: &Tensors) -> std::io::Result<Option<String>> {
    if tensors.is_empty() {
        return Ok(Some("it contains no tensors".into()));
    }
    for (name, a) in tensors {
        let Some(prefix) = name.strip_suffix(".lora_A.weight") else { continue };
        let pair = tensors.get(&format!("{prefix}.lora_B.weight"));
        if pair.is_none_or(|b| b.shape.last() != a.shape.first()) {
            return Ok(Some(format!("{name} has no matching lora_B")));
        }
    }
    let mut bytes = Vec::new();
    for (name, tensor) in tensors {
        for block in tensor.blocks() {
            tensor.read(block, &mut bytes)?;
            if !tensor.float.read(&bytes).all(f32::is_finite) {
                return Ok(Some(format!("{name} has a value that is not finite")));
            }
        }
    }
    Ok(None)
}

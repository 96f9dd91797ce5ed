//! PEFT adapter files: the exchange format between trainers and engines, and what the target's moving
//! average is computed on, so that it works with every trainer.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Read,
    path::Path,
};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use sha2::{Digest, Sha256};

const CONFIG: &str = "adapter_config.json";
const TENSORS: &str = "adapter_model.safetensors";
/// Most bytes that an archive unpacks to.
const MOST_BYTES: u64 = 4 << 30;
/// Most bytes that a byte of an archive unpacks to, beside [`SLACK`]: random numbers hardly shrink, but half of a new
/// adapter is zeros. A bomb has a thousand.
const MOST_GAIN: u64 = 16;
/// Bytes that any archive may unpack to.
const SLACK: u64 = 64 << 20;
/// Most files and directories in an archive.
const MOST_ENTRIES: usize = 64;

/// Why adapter files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AdapterError {
    /// Files cannot be read or written.
    #[error("adapter files at {path}: {source}")]
    Io {
        /// Where.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// Files are not what they should be.
    #[error("adapter files at {path} are not valid: {reason}")]
    Invalid {
        /// Where.
        path: String,
        /// Why.
        reason: String,
    },
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> AdapterError + '_ {
    move |source| AdapterError::Io { path: path.display().to_string(), source }
}

fn invalid(path: &Path, reason: impl std::fmt::Display) -> AdapterError {
    AdapterError::Invalid { path: path.display().to_string(), reason: reason.to_string() }
}

/// Named float32 tensors.
type Tensors = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

/// Unpacks a trainer's archive (`tar.gz` with the two PEFT files) into a new directory, all at once,
/// after checking it.
///
/// # Errors
/// An archive that is damaged or holds no valid adapter; a directory that exists.
pub fn unpack(archive: &[u8], into: &Path) -> Result<(), AdapterError> {
    let files = files_of(archive, into)?;
    let config = files.get(CONFIG).ok_or_else(|| invalid(into, "the archive lacks the config"))?;
    let bytes = files.get(TENSORS).ok_or_else(|| invalid(into, "the archive lacks the tensors"))?;
    let tensors = read_tensors(bytes).map_err(|reason| invalid(into, reason))?;
    let config = complete_config(config, &tensors).map_err(|reason| invalid(into, reason))?;
    write(into, &config, bytes)
}

/// The two files of an archive. Everything else in it is skipped, but counts.
fn files_of(archive: &[u8], into: &Path) -> Result<BTreeMap<String, Vec<u8>>, AdapterError> {
    let most = (archive.len() as u64).saturating_mul(MOST_GAIN).saturating_add(SLACK);
    let mut unpacked = flate2::read::GzDecoder::new(archive).take(most.min(MOST_BYTES) + 1);
    let mut files = BTreeMap::new();
    let mut tar = tar::Archive::new(&mut unpacked);
    let read = tar.entries().map_err(io(into))?.enumerate().try_for_each(|(number, entry)| {
        let mut entry = entry.map_err(io(into))?;
        if number >= MOST_ENTRIES {
            return Err(invalid(into, format!("the archive has more than {MOST_ENTRIES} entries")));
        }
        let path = entry.path().map_err(io(into))?.into_owned();
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        // By file name only: no entry can leave the directory.
        if [CONFIG, TENSORS].contains(&name.as_str()) {
            if !entry.header().entry_type().is_file() {
                return Err(invalid(into, format!("{name} is not a file")));
            }
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(io(into))?;
            if files.insert(name.clone(), bytes).is_some() {
                return Err(invalid(into, format!("the archive has {name} twice")));
            }
        }
        Ok(())
    });
    // Where the archive was cut, it looks damaged: the cause comes first.
    if unpacked.limit() == 0 {
        return Err(invalid(into, format!("the archive unpacks to more than {most} bytes")));
    }
    read.map(|()| files)
}

/// `sha256` of the adapter's tensors, hex.
///
/// # Errors
/// A file that cannot be read.
pub fn sha256(directory: &Path) -> Result<String, AdapterError> {
    let bytes = std::fs::read(directory.join(TENSORS)).map_err(io(directory))?;
    Ok(Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect())
}

/// Largest absolute entry of the adapter's B matrices, which begin at 0: how far training has moved it.
///
/// # Errors
/// A file that cannot be read or is no adapter.
pub fn largest_update(directory: &Path) -> Result<f32, AdapterError> {
    let bytes = std::fs::read(directory.join(TENSORS)).map_err(io(directory))?;
    let tensors = read_tensors(&bytes).map_err(|reason| invalid(directory, reason))?;
    let updates = tensors.iter().filter(|(name, _)| name.ends_with(".lora_B.weight"));
    let entries = updates.flat_map(|(_, (_, values))| values);
    Ok(entries.fold(0.0, |largest, value| value.abs().max(largest)))
}

/// Writes `(1 − rate) · target + rate · online` into a new directory, each of A and B on its own.
/// That is not the average of the products B·A, which has a higher rank; it follows them closely while
/// the two adapters are close, which is what a lagging target is.
///
/// # Errors
/// Adapters of different shapes; files that cannot be read or written.
pub fn interpolate(
    target: &Path,
    online: &Path,
    rate: f32,
    out: &Path,
) -> Result<(), AdapterError> {
    let read = |directory: &Path| {
        let bytes = std::fs::read(directory.join(TENSORS)).map_err(io(directory))?;
        read_tensors(&bytes).map_err(|reason| invalid(directory, reason))
    };
    let (mut mixed, newer) = (read(target)?, read(online)?);
    if mixed.len() != newer.len() {
        return Err(invalid(online, "its tensors differ from those of the target"));
    }
    for (name, (shape, values)) in &mut mixed {
        let (_, newer) = newer
            .get(name)
            .filter(|(other, _)| other == shape)
            .ok_or_else(|| invalid(online, format!("{name} is missing or has another shape")))?;
        for (value, newer) in values.iter_mut().zip(newer) {
            *value = rate.mul_add(*newer, (1.0 - rate) * *value);
        }
    }
    let config = std::fs::read(online.join(CONFIG)).map_err(io(online))?;
    let bytes = serialise(&mixed).map_err(|reason| invalid(out, reason))?;
    write(out, &config, &bytes)
}

/// Reads float32 tensors and checks that every pair is whole and finite.
fn read_tensors(bytes: &[u8]) -> Result<Tensors, String> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| e.to_string())?;
    let mut tensors = Tensors::new();
    for (name, view) in file.tensors() {
        if view.dtype() != Dtype::F32 {
            return Err(format!("{name} is {:?}, not F32", view.dtype()));
        }
        let (entries, _) = view.data().as_chunks();
        let values: Vec<f32> = entries.iter().map(|entry| f32::from_le_bytes(*entry)).collect();
        if values.iter().any(|v| !v.is_finite()) {
            return Err(format!("{name} has a value that is not finite"));
        }
        tensors.insert(name, (view.shape().to_vec(), values));
    }
    for (name, (shape, _)) in &tensors {
        let Some(prefix) = name.strip_suffix(".lora_A.weight") else { continue };
        let pair = tensors.get(&format!("{prefix}.lora_B.weight"));
        if pair.is_none_or(|(b, _)| b.last() != shape.first()) {
            return Err(format!("{name} has no matching lora_B"));
        }
    }
    if tensors.is_empty() {
        return Err("it contains no tensors".into());
    }
    Ok(tensors)
}

/// Fills in `target_modules`, which some trainers leave out and some engines need.
fn complete_config(bytes: &[u8], tensors: &Tensors) -> Result<Vec<u8>, String> {
    let mut config: serde_json::Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    if config.get("peft_type").and_then(serde_json::Value::as_str) != Some("LORA") {
        return Err("peft_type is not LORA".into());
    }
    if config.get("target_modules").is_none_or(serde_json::Value::is_null) {
        let modules: BTreeSet<_> = tensors
            .keys()
            .filter_map(|name| name.split(".lora_").next()?.rsplit('.').next())
            .collect();
        config["target_modules"] = modules.into_iter().collect();
    }
    serde_json::to_vec_pretty(&config).map_err(|e| e.to_string())
}

fn serialise(tensors: &Tensors) -> Result<Vec<u8>, String> {
    let bytes: Vec<(String, Vec<usize>, Vec<u8>)> = tensors
        .iter()
        .map(|(name, (shape, values))| {
            let mut bytes = Vec::with_capacity(4 * values.len());
            for value in values {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            (name.clone(), shape.clone(), bytes)
        })
        .collect();
    let views = bytes
        .iter()
        .map(|(name, shape, bytes)| {
            TensorView::new(Dtype::F32, shape.clone(), bytes).map(|view| (name.clone(), view))
        })
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| e.to_string())?;
    safetensors::serialize(views, None).map_err(|e| e.to_string())
}

/// Writes a new directory: filled under another name, flushed, renamed.
fn write(directory: &Path, config: &[u8], tensors: &[u8]) -> Result<(), AdapterError> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let partial = directory.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let filled = || {
        if partial.exists() {
            std::fs::remove_dir_all(&partial)?;
        }
        std::fs::create_dir_all(&partial)?;
        for (name, bytes) in [(CONFIG, config), (TENSORS, tensors)] {
            let mut file = std::fs::File::create(partial.join(name))?;
            std::io::Write::write_all(&mut file, bytes)?;
            file.sync_all()?;
        }
        std::fs::rename(&partial, directory)
    };
    filled().map_err(io(directory))
}

//! An adapter's two files as a plain tar that is written nowhere: any range of it can be read from the files. Weights
//! hardly compress, so it is not compressed.

use std::{
    fs::{self, File},
    io::{Read, Seek, SeekFrom},
    ops::Range,
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use crate::{CONFIG, TENSORS};

/// Bytes of a record of a tar.
const RECORD: u64 = 512;
/// Beside the adapter's files: the archive's SHA-256, hex. Files of an adapter never change.
const DIGEST: &str = "archive.sha256";

/// The archive of one adapter.
#[derive(Debug, Clone)]
pub struct Packed {
    directory: PathBuf,
    /// The settings with their header, and the header of the tensors.
    head: Vec<u8>,
    tensors: u64,
    /// What fills the last record, and the two empty ones at an archive's end.
    tail: Vec<u8>,
}

impl Packed {
    /// The archive of the adapter in a directory.
    ///
    /// # Errors
    /// Files that are not there.
    pub fn of(directory: &Path) -> std::io::Result<Self> {
        let config = fs::read(directory.join(CONFIG))?;
        let tensors = fs::metadata(directory.join(TENSORS))?.len();
        let mut head = tar::Builder::new(Vec::new());
        head.append(&header(CONFIG, config.len() as u64)?, config.as_slice())?;
        let mut head = head.get_ref().clone();
        head.extend_from_slice(header(TENSORS, tensors)?.as_bytes());
        let filling = tensors.next_multiple_of(RECORD) - tensors;
        let tail = vec![0; usize::try_from(filling + 2 * RECORD).unwrap_or_default()];
        Ok(Self { directory: directory.to_owned(), head, tensors, tail })
    }

    /// Its bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.head.len() as u64 + self.tensors + self.tail.len() as u64
    }

    /// A part of it. The range must lie in it.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn read(&self, range: &Range<u64>) -> std::io::Result<impl Read + Send + use<>> {
        let (head, file) = (self.head.len() as u64, self.tensors);
        let after = |start: u64| range.start.saturating_sub(start);
        let part = |bytes: &[u8], skip: u64| {
            let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(bytes.len());
            std::io::Cursor::new(bytes[skip..].to_vec())
        };
        let mut tensors = File::open(self.directory.join(TENSORS))?;
        tensors.seek(SeekFrom::Start(after(head)))?;
        let tensors = tensors.take(file.saturating_sub(after(head)));
        let all = part(&self.head, range.start).chain(tensors);
        let all = all.chain(part(&self.tail, after(head + file)));
        Ok(all.take(range.end.saturating_sub(range.start)))
    }

    /// Its SHA-256, hex. The whole archive is read once; the hash is then kept beside the adapter's files.
    ///
    /// # Errors
    /// Files that cannot be read or written.
    pub fn sha256(&self) -> std::io::Result<String> {
        let kept = self.directory.join(DIGEST);
        if let Ok(known) = fs::read_to_string(&kept) {
            return Ok(known.trim().to_owned());
        }
        let (mut hash, mut block) = (Sha256::new(), vec![0; 1 << 20]);
        let mut all = self.read(&(0..self.size()))?;
        loop {
            match all.read(&mut block)? {
                0 => break,
                read => hash.update(&block[..read]),
            }
        }
        let found: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        // Under its name only when it is whole: another request may be reading.
        let partial = self.directory.join(format!(".{DIGEST}.{:?}", std::thread::current().id()));
        fs::write(&partial, format!("{found}\n"))?;
        fs::rename(&partial, &kept)?;
        Ok(found)
    }
}

/// The same for the same file, whenever and by whom it is packed.
fn header(name: &str, size: u64) -> std::io::Result<tar::Header> {
    let mut header = tar::Header::new_ustar();
    header.set_path(name)?;
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_entry_type(tar::EntryType::Regular);
    header.set_cksum();
    Ok(header)
}

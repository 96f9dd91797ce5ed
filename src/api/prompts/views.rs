//! Prompt sets as they are shown.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::{
    domain::{
        prompt::{PromptFiles, PromptHashes, PromptPart},
        text_enum::text_enum,
    },
    store::prompts::SetVersion,
};

/// All prompt sets.
#[derive(Serialize, ToSchema)]
pub struct PromptSetList {
    /// By name.
    pub(super) data: Vec<PromptSetSummary>,
}

/// A prompt set without its texts.
#[derive(Serialize, ToSchema)]
pub struct PromptSetSummary {
    /// Its name, as `model.prompts` of a job says it.
    name: String,
    /// Number of its newest version, which new jobs get.
    version: i32,
    /// It comes with the program and cannot be changed.
    shipped: bool,
    /// The key that pushed this version; `nlac` for a set that ships.
    created_by: String,
    /// When this version was stored.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    created_at: OffsetDateTime,
    /// The parts that it has.
    parts: Vec<PromptHash>,
}

/// A part and the hash of its text.
#[derive(Serialize, ToSchema)]
pub struct PromptHash {
    /// The part.
    part: PromptPart,
    /// SHA-256 of its text, hex: what generations name as `prompt_hash`.
    hash: String,
}

/// A prompt set.
#[derive(Serialize, ToSchema)]
pub struct PromptSetView {
    /// Its name, as `model.prompts` of a job says it.
    name: String,
    /// Number of its newest version, which new jobs get.
    version: i32,
    /// It comes with the program and cannot be changed.
    shipped: bool,
    /// The parts of the newest version.
    parts: Vec<PromptFile>,
    /// The versions that are kept, newest first: the newest, and those that a job was submitted with.
    versions: Vec<PromptSetVersion>,
}

/// A part of a prompt set.
#[derive(Serialize, ToSchema)]
pub struct PromptFile {
    /// The part.
    part: PromptPart,
    /// Name of its file.
    file: String,
    /// SHA-256 of its text, hex: what generations name as `prompt_hash`.
    hash: String,
    /// The text of the file.
    text: String,
}

/// A version of a prompt set.
#[derive(Serialize, ToSchema)]
pub struct PromptSetVersion {
    /// Its number, from 1.
    version: i32,
    /// The key that pushed it; `nlac` for a set that ships.
    created_by: String,
    /// When it was stored.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    created_at: OffsetDateTime,
    /// The parts that it has.
    parts: Vec<PromptHash>,
}

text_enum!(
    /// What a push did to a part.
    PartChange {
        /// The version before had no such part.
        Added = "added",
        /// Its text is another one.
        Changed = "changed",
        /// The new version has no such part.
        Removed = "removed",
        /// Its text is the same.
        Unchanged = "unchanged",
    }
);

/// What a push did to a part.
#[derive(Serialize, ToSchema)]
pub struct PromptChange {
    /// The part.
    part: PromptPart,
    /// What became of it.
    change: PartChange,
}

/// A set that was pushed.
#[derive(Serialize, ToSchema)]
pub struct PushedPromptSet {
    /// The set as it is now.
    #[serde(flatten)]
    pub(super) set: PromptSetView,
    /// What became of each part.
    pub(super) changes: Vec<PromptChange>,
}

fn hashes(parts: PromptHashes) -> Vec<PromptHash> {
    parts.into_iter().map(|(part, hash)| PromptHash { part, hash }).collect()
}

impl From<SetVersion> for PromptSetSummary {
    fn from(set: SetVersion) -> Self {
        let SetVersion { name, version, parts, shipped, created_by, created_at } = set;
        Self { name, version, shipped, created_by, created_at, parts: hashes(parts.0) }
    }
}

impl From<SetVersion> for PromptSetVersion {
    fn from(set: SetVersion) -> Self {
        let SetVersion { version, parts, created_by, created_at, .. } = set;
        Self { version, created_by, created_at, parts: hashes(parts.0) }
    }
}

impl PromptSetView {
    /// A set by its versions, newest first, and the texts of the newest; none if it has no version.
    pub(super) fn new(versions: Vec<SetVersion>, mut texts: PromptFiles) -> Option<Self> {
        let newest = versions.first()?;
        let (name, version, shipped) = (newest.name.clone(), newest.version, newest.shipped);
        let file = |(part, hash): (&PromptPart, &String)| PromptFile {
            part: *part,
            file: part.file().into(),
            hash: hash.clone(),
            text: texts.remove(part).unwrap_or_default(),
        };
        let parts = newest.parts.iter().map(file).collect();
        let versions = versions.into_iter().map(PromptSetVersion::from).collect();
        Some(Self { name, version, shipped, parts, versions })
    }
}

/// What became of each part between two versions.
pub(super) fn changes(before: &PromptHashes, after: &PromptHashes) -> Vec<PromptChange> {
    let change = |part: &PromptPart| {
        Some(match (before.get(part), after.get(part)) {
            (None, None) => return None,
            (None, Some(_)) => PartChange::Added,
            (Some(_), None) => PartChange::Removed,
            (Some(before), Some(after)) if before == after => PartChange::Unchanged,
            (Some(_), Some(_)) => PartChange::Changed,
        })
    };
    let changed = |part: &PromptPart| Some(PromptChange { part: *part, change: change(part)? });
    PromptPart::ALL.iter().filter_map(changed).collect()
}

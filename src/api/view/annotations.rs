//! Everything that was derived from one transition, as it is sent.

use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use super::views;
use crate::{
    domain::{
        annotation::{PredictionUse, TargetStatus, Verdict},
        generation::{FinishReason, Role, Weights},
        ids::{
            CheckpointId, ChoiceId, CritiqueId, GenerationId, PredictionId, RefinementId, TargetId,
        },
    },
    store::read::annotations::{
        AnnotationRows, ChoiceRow, CritiqueRow, PredictionRow, ProvenanceRow, RefinementRow,
        TargetRow,
    },
};

/// What made a text.
#[derive(Serialize, ToSchema)]
pub struct Provenance {
    /// The generation.
    pub generation_id: GenerationId,
    /// The part played.
    pub role: Role,
    /// The weights that played it.
    pub weights: Weights,
    /// The checkpoint behind them; null for the base model.
    pub checkpoint_id: Option<CheckpointId>,
    /// The model name that the engine echoed.
    pub model: String,
    /// The engine.
    pub engine: String,
    /// Content hash of the prompt template.
    pub prompt_hash: String,
    /// The request's seed; null where the engine drew one itself.
    pub seed: Option<i64>,
    /// Sampling temperature; null where the model takes none and samples by its own.
    pub temperature: Option<f32>,
    /// Tokens of the prompt.
    pub prompt_tokens: i32,
    /// Tokens written.
    pub token_ids: Vec<i32>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// When it was stored.
    #[serde(with = "time::serde::rfc3339")]
    #[schema(value_type = String, format = DateTime)]
    pub created_at: OffsetDateTime,
    /// The goal that its step was relabelled with; null where the step had its own.
    pub goal: Option<String>,
}

impl From<ProvenanceRow> for Provenance {
    fn from(row: ProvenanceRow) -> Self {
        Self {
            generation_id: row.generation_id,
            role: row.role,
            weights: row.weights,
            checkpoint_id: row.checkpoint_id,
            model: row.model,
            engine: row.engine,
            prompt_hash: row.prompt_hash,
            seed: row.seed,
            temperature: row.temperature,
            prompt_tokens: row.prompt_tokens,
            token_ids: row.token_ids,
            finish_reason: row.finish_reason,
            created_at: row.created_at,
            goal: row.goal,
        }
    }
}

/// A predicted future.
#[derive(Serialize, ToSchema)]
pub struct PredictionView {
    /// Its id.
    pub id: PredictionId,
    /// Number of the iteration that made it.
    pub iteration: i32,
    /// For a critique, or inside a target.
    pub purpose: PredictionUse,
    /// Refinement round.
    pub round: i32,
    /// Its number among the round's futures.
    pub ordinal: i32,
    /// The action whose future it is.
    pub action: String,
    /// The text.
    pub text: String,
    /// What made it.
    pub provenance: Provenance,
}

impl From<PredictionRow> for PredictionView {
    fn from(row: PredictionRow) -> Self {
        Self {
            id: row.id,
            iteration: row.iteration,
            purpose: row.purpose,
            round: row.round,
            ordinal: row.ordinal,
            action: row.action,
            text: row.text,
            provenance: row.provenance.into(),
        }
    }
}

/// What the successor is trained to write: a language Bellman target, or a language value.
#[derive(Serialize, ToSchema)]
pub struct TargetView {
    /// Its id.
    pub id: TargetId,
    /// Number of the iteration that made it.
    pub iteration: i32,
    /// a', sampled anew at the next state, of several the first; null where nothing was bootstrapped.
    pub next_action: Option<String>,
    /// The prediction it bootstraps from, of several the first; null where nothing was bootstrapped.
    pub next_prediction_id: Option<PredictionId>,
    /// Number of outcomes that its writer read: 1 for a language Bellman target.
    pub outcomes: i32,
    /// Whether it was trained on.
    pub status: TargetStatus,
    /// The text.
    pub text: String,
    /// What made it.
    pub provenance: Provenance,
}

impl From<TargetRow> for TargetView {
    fn from(row: TargetRow) -> Self {
        Self {
            id: row.id,
            iteration: row.iteration,
            next_action: row.next_action,
            next_prediction_id: row.next_prediction_id,
            outcomes: row.outcomes,
            status: row.status,
            text: row.text,
            provenance: row.provenance.into(),
        }
    }
}

/// A critique.
#[derive(Serialize, ToSchema)]
pub struct CritiqueView {
    /// Its id.
    pub id: CritiqueId,
    /// Number of the iteration that made it.
    pub iteration: i32,
    /// Refinement round.
    pub round: i32,
    /// The action judged.
    pub action: String,
    /// The futures it read.
    pub prediction_ids: Vec<PredictionId>,
    /// Optimal or not.
    pub verdict: Verdict,
    /// The text.
    pub text: String,
    /// What made it.
    pub provenance: Provenance,
}

impl From<CritiqueRow> for CritiqueView {
    fn from(row: CritiqueRow) -> Self {
        Self {
            id: row.id,
            iteration: row.iteration,
            round: row.round,
            action: row.action,
            prediction_ids: row.prediction_ids,
            verdict: row.verdict,
            text: row.text,
            provenance: row.provenance.into(),
        }
    }
}

/// A refined action.
#[derive(Serialize, ToSchema)]
pub struct RefinementView {
    /// Its id.
    pub id: RefinementId,
    /// Number of the iteration that made it.
    pub iteration: i32,
    /// Refinement round.
    pub round: i32,
    /// The critique it follows.
    pub critique_id: CritiqueId,
    /// The environment can read it.
    pub valid: bool,
    /// The environment would see another action than before.
    pub changed: bool,
    /// The text.
    pub text: String,
    /// What made it.
    pub provenance: Provenance,
}

impl From<RefinementRow> for RefinementView {
    fn from(row: RefinementRow) -> Self {
        Self {
            id: row.id,
            iteration: row.iteration,
            round: row.round,
            critique_id: row.critique_id,
            valid: row.valid,
            changed: row.changed,
            text: row.text,
            provenance: row.provenance.into(),
        }
    }
}

/// The best of several actions, by their language values.
#[derive(Serialize, ToSchema)]
pub struct ChoiceView {
    /// Its id.
    pub id: ChoiceId,
    /// Number of the iteration that made it.
    pub iteration: i32,
    /// The values that the chooser read, in the order of its prompt.
    pub prediction_ids: Vec<PredictionId>,
    /// The action; null where the choice could not be read.
    pub action: Option<String>,
    /// The environment would see another action than the transition's own.
    pub changed: bool,
    /// What the chooser wrote.
    pub text: String,
    /// What made it.
    pub provenance: Provenance,
}

impl From<ChoiceRow> for ChoiceView {
    fn from(row: ChoiceRow) -> Self {
        Self {
            id: row.id,
            iteration: row.iteration,
            prediction_ids: row.prediction_ids,
            action: row.action,
            changed: row.changed,
            text: row.text,
            provenance: row.provenance.into(),
        }
    }
}

/// Everything that a job derived from a transition, oldest first.
#[derive(Serialize, ToSchema)]
pub struct Annotations {
    /// Futures.
    pub predictions: Vec<PredictionView>,
    /// Bellman targets, and language values.
    pub targets: Vec<TargetView>,
    /// Verdicts.
    pub critiques: Vec<CritiqueView>,
    /// Rewritten actions.
    pub refinements: Vec<RefinementView>,
    /// Chosen actions.
    pub choices: Vec<ChoiceView>,
}

impl From<AnnotationRows> for Annotations {
    fn from(rows: AnnotationRows) -> Self {
        Self {
            predictions: views(rows.predictions),
            targets: views(rows.targets),
            critiques: views(rows.critiques),
            refinements: views(rows.refinements),
            choices: views(rows.choices),
        }
    }
}

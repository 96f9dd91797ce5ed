//! Natural Language Actor-Critic: a batch of stored transitions becomes Bellman targets, critiques,
//! refined actions and training examples.
//!
//! ```text
//! critic   a' ~ policy(s')   d' ~ successor(s', a')   d* ~ bellman(s, a, r, s', d')      → L1 example
//! actor    d1..dk ~ successor(s, x)   q ~ evaluator(s, x, d1..dk)   x ← refiner(s, x, q) → L2 example
//! ```
//! The trained prompts hold neither what the target knew (r, s', d') nor what the teacher knew (a, q).

mod advise;
mod best_of;
mod corrector;
mod critique;
mod forecast;
mod health;
mod hindsight;
mod refine;
pub(super) mod successor;
pub(super) mod target;

use async_trait::async_trait;
use rand::seq::SliceRandom;

pub use self::advise::{Advised, advise};
pub use self::health::{Foreseen, foresee, gains};
pub use super::Annotations;
use super::{
    Algorithm, Asked, Checkup, Draw, Forecast, Needs, Replayed,
    left_out::all_but_refused,
    lesson::{self, Lesson},
};
use crate::{
    domain::{
        annotation::{TargetStatus, Verdict},
        fault::Fault,
        seed::SeedPath,
        spec::{Ablation, NlacSpec, OnSameAction, OnYes, TargetUpdate},
        training::{ExampleSource, Objective, TrainingExample},
    },
    experience::message::Message,
};

/// What NLAC is handed beside the transitions.
pub type Setting<'a> = super::Setting<'a, NlacSpec>;

impl Setting<'_> {
    /// Only the critic learns; the policy rehearses what it did.
    const fn is_warmup(&self) -> bool {
        self.iteration <= self.spec.warmup_iterations
    }

    /// Verdicts are acted on.
    const fn refines(&self) -> bool {
        !self.is_warmup() && self.spec.rounds > 0
    }

    fn seed_of(&self, replayed: &Replayed, part: &str) -> SeedPath {
        self.seed.index(replayed.position).label(part)
    }
}

#[async_trait]
impl Algorithm for NlacSpec {
    fn needs(&self) -> Needs {
        forecast::needs(self)
    }

    fn draw(&self) -> Draw<'_> {
        Draw::Replay(&self.replay)
    }

    fn target(&self) -> TargetUpdate {
        self.target
    }

    fn forecast(&self, forecast: &Forecast<'_>) -> Option<Asked> {
        forecast::asked(self, forecast)
    }

    async fn annotate(
        &self,
        setting: &super::Setting<'_, ()>,
        batch: &[Replayed],
    ) -> Result<Annotations, Fault> {
        annotate(&setting.with(self), batch).await
    }

    async fn health(
        &self,
        setting: &super::Setting<'_, ()>,
        checkup: &Checkup,
    ) -> Result<Vec<(&'static str, f64)>, Fault> {
        health::measured(&setting.with(self), checkup).await
    }
}

/// The action under judgement, as it goes through the rounds.
struct Candidate<'a> {
    replayed: &'a Replayed,
    /// x: the action as it stands.
    action: Message,
    /// Its tokens as an engine wrote them.
    tokens: Vec<u32>,
    /// The token limit cut it.
    cut: bool,
    source: ExampleSource,
    /// It was judged wanting, and rewritten.
    wanting: bool,
    fate: Fate,
}

/// What becomes of a candidate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// Another round may change it.
    Open,
    /// Judged optimal.
    Accepted,
    /// No verdict or no valid action could be read, or had: it trains nothing.
    Dropped,
}

/// Annotates a batch. Everything that depends on nothing else is asked for at once, so that the engine
/// sees waves as wide as the batch. What the engine refuses of a transition leaves that one out.
///
/// # Errors
/// The first other fault of the engine, or of a prompt, or a refusal of every transition; then nothing of
/// the batch is to be kept.
pub async fn annotate(setting: &Setting<'_>, batch: &[Replayed]) -> Result<Annotations, Fault> {
    let mut annotations = Annotations::default();
    let ablation = setting.spec.ablation;
    let trains_critic = ablation != Ablation::UntrainedCritic;
    let targeted: Vec<_> = batch
        .iter()
        .filter(|r| match ablation {
            Ablation::RawRollouts => false,
            Ablation::TerminalTargets => r.transition.done,
            _ => true,
        })
        .collect();
    let targets =
        all_but_refused(targeted.iter().map(|r| target::bellman_target(setting, r))).await?;
    for (replayed, made) in targeted.into_iter().zip(targets) {
        let Some(made) = annotations.heard(replayed, made) else { continue };
        if trains_critic && made.target.status == TargetStatus::Accepted {
            annotations.examples.push(critic_example(setting, replayed, &made)?);
        }
        annotations.generations.extend(made.generations);
        annotations.predictions.extend(made.prediction);
        annotations.targets.push(made.target);
    }

    let mut candidates: Vec<_> = batch.iter().map(Candidate::of).collect();
    improve(setting, &mut candidates, &mut annotations).await?;
    for candidate in &candidates {
        annotations.examples.extend(policy_example(setting, candidate)?);
    }
    annotations.unless_all_are_left_out(batch)
}

/// Every round over all candidates.
async fn improve(
    setting: &Setting<'_>,
    candidates: &mut [Candidate<'_>],
    annotations: &mut Annotations,
) -> Result<(), Fault> {
    match setting.spec.ablation {
        Ablation::BestOfActions { candidates: count } if !setting.is_warmup() => {
            best_of::improve(setting, count, candidates, annotations).await
        }
        _ => {
            // Metrics and replay priorities read the first verdict, so it is asked for even where nothing acts on it.
            let rounds = if setting.refines() { setting.spec.rounds } else { 1 };
            for round in 0..rounds {
                play_round(setting, round, candidates, annotations).await?;
            }
            Ok(())
        }
    }
}

/// One refinement round: judge every open candidate, then rewrite those that were judged wanting.
async fn play_round(
    setting: &Setting<'_>,
    round: u32,
    candidates: &mut [Candidate<'_>],
    annotations: &mut Annotations,
) -> Result<(), Fault> {
    let asked: Vec<_> = candidates.iter_mut().filter(|c| c.fate == Fate::Open).collect();
    let judged = all_but_refused(
        asked.iter().map(|c| critique::judge(setting, c.replayed, &c.action, round)),
    )
    .await?;
    let (mut open, mut critiques) = (Vec::new(), Vec::new());
    for (candidate, made) in asked.into_iter().zip(judged) {
        if let Some(made) = candidate.heard(made, annotations) {
            critiques.push(made.critique.clone());
            made.record(annotations);
            open.push(candidate);
        }
    }
    if setting.spec.ablation == Ablation::ShuffledCritiques {
        critiques.shuffle(&mut setting.seed.label("shuffle").index(u64::from(round)).rng());
    }
    if !setting.refines() {
        return Ok(());
    }
    for (candidate, critique) in open.iter_mut().zip(&critiques) {
        candidate.fate = match critique.verdict {
            Verdict::Yes => Fate::Accepted,
            Verdict::No => Fate::Open,
            Verdict::Unparseable => Fate::Dropped,
        };
    }
    let wanting: Vec<_> =
        open.into_iter().zip(&critiques).filter(|(c, _)| c.fate == Fate::Open).collect();
    let refined = all_but_refused(
        wanting.iter().map(|(c, q)| refine::rewrite(setting, c.replayed, &c.action, q, round)),
    )
    .await?;
    for ((candidate, _), made) in wanting.into_iter().zip(refined) {
        if let Some(made) = candidate.heard(made, annotations) {
            candidate.take(&made, setting);
            annotations.generations.push(made.generation);
            annotations.refinements.push(made.refinement);
        }
    }
    Ok(())
}

impl<'a> Candidate<'a> {
    fn of(replayed: &'a Replayed) -> Self {
        Self {
            replayed,
            action: replayed.action.clone(),
            tokens: replayed.action_tokens.clone(),
            cut: replayed.action_cut,
            source: ExampleSource::Action,
            wanting: false,
            fate: Fate::Open,
        }
    }

    /// What was said of it; a refusal drops it.
    fn heard<T>(&mut self, said: Result<T, String>, annotations: &mut Annotations) -> Option<T> {
        if said.is_err() {
            self.fate = Fate::Dropped;
        }
        annotations.heard(self.replayed, said)
    }

    /// Goes on with a refined action. One that is the same to the environment stands for the rewritten reasoning, and is
    /// taken where that is distilled.
    fn take(&mut self, made: &refine::Refined, setting: &Setting<'_>) {
        if !made.refinement.valid {
            self.fate = Fate::Dropped;
            return;
        }
        self.wanting = true;
        let rewrites = setting.spec.on_same_action == OnSameAction::DistillRefinement;
        if made.refinement.changed || rewrites {
            self.action.clone_from(&made.action);
            self.tokens = made.generation.token_ids.iter().map(|t| t.cast_unsigned()).collect();
            // A refinement that was cut is not valid.
            self.cut = false;
            let state = &self.replayed.state;
            let same =
                setting.key(&self.action, state) == setting.key(&self.replayed.action, state);
            self.source =
                if same && !rewrites { ExampleSource::Action } else { ExampleSource::Refinement };
        }
    }
}

/// L1: the successor prompt of (s, a) alone, and d*. A cut action counts too: the environment answered it as it
/// was, and the critic predicts for the policy that acts, whose actions are sometimes cut.
fn critic_example(
    setting: &Setting<'_>,
    replayed: &Replayed,
    made: &target::Made,
) -> Result<TrainingExample, Fault> {
    let prompt = successor::prompt(setting, &replayed.state, &replayed.action)?;
    let lesson = Lesson {
        objective: Objective::Critic,
        source: ExampleSource::Target,
        transition_id: Some(replayed.transition.id),
        prompt_hash: setting.sampler.prompts.successor().hash(),
        prompt: &prompt,
        completion: made.d_star().token_ids.clone(),
        weight: setting.spec.critic_weight * replayed.importance,
    };
    lesson.encode(setting.sampler.encoder)
}

/// L2: the policy prompt of s alone, and the action that came out of the rounds. An action that the token limit cut
/// is no example: the policy would learn to stop without end-of-text.
fn policy_example(
    setting: &Setting<'_>,
    candidate: &Candidate<'_>,
) -> Result<Option<TrainingExample>, Fault> {
    let rehearses = if candidate.wanting {
        setting.spec.on_same_action != OnSameAction::Skip
    } else {
        setting.is_warmup() || setting.spec.on_yes == OnYes::DistillOriginal
    };
    let unchanged = candidate.source == ExampleSource::Action;
    let unreadable = setting.key(&candidate.action, &candidate.replayed.state).is_none();
    if candidate.fate == Fate::Dropped || candidate.cut || unreadable || (unchanged && !rehearses) {
        return Ok(None);
    }
    let model = (setting.sampler.prompts, setting.sampler.encoder);
    let (source, action) = (candidate.source, lesson::signed(&candidate.tokens));
    lesson::policy(model, candidate.replayed, source, action, setting.spec.policy_weight).map(Some)
}

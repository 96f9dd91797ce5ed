//! Time series of a job.

use serde::{Deserialize, Serialize};

/// One value of one series, at an iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Metric {
    /// Name of the series, such as `eval.success` or `critic.loss`. `names` lists all series.
    pub name: String,
    /// Iteration.
    pub iteration: i32,
    /// Sampling temperature of an evaluation; null for other series.
    pub temperature: Option<f32>,
    /// Value in the series' unit.
    pub value: f64,
}

/// The series that a job writes.
pub mod names {
    /// Share of held-out episodes solved, 0 to 1.
    pub const EVAL_SUCCESS: &str = "eval.success";
    /// Number of held-out episodes, except technical failures. A truncated episode counts as not solved.
    pub const EVAL_EPISODES: &str = "eval.episodes";
    /// Held-out episodes that were truncated.
    pub const EVAL_TRUNCATED: &str = "eval.truncated";
    /// Held-out episodes that failed technically. They count in no success rate.
    pub const EVAL_FAILED: &str = "eval.failed";
    /// Held-out success against the best earlier evaluation, on the episodes that both played: the difference, -1 to 1.
    pub const EVAL_CHANGE: &str = "eval.change";
    /// Half the width of its 95 % interval, paired by episode.
    pub const EVAL_CHANGE_ERROR: &str = "eval.change_error";
    /// Mean steps per held-out episode.
    pub const EVAL_TURNS: &str = "eval.turns";
    /// Share of unparseable replies in held-out episodes, 0 to 1.
    pub const EVAL_UNREADABLE: &str = "eval.unreadable";
    /// Mean return of the held-out episodes that were not truncated.
    pub const EVAL_RETURN: &str = "eval.return";
    /// Share of collected episodes that were solved, 0 to 1. Technical failures do not count; truncated
    /// episodes do.
    pub const COLLECT_SUCCESS: &str = "collect.success";
    /// Share of collected episodes that were truncated, 0 to 1.
    pub const COLLECT_TRUNCATED: &str = "collect.truncated";
    /// Share of unparseable replies in collected episodes, 0 to 1.
    pub const COLLECT_UNREADABLE: &str = "collect.unreadable";
    /// Share of groups whose episodes all have the same return, 0 to 1. Such groups allow no comparison.
    pub const COLLECT_LEVEL_GROUPS: &str = "collect.level_groups";
    /// Collected episodes that failed technically.
    pub const COLLECT_FAILED: &str = "collect.failed";
    /// Environment steps taken for training so far.
    pub const ENV_STEPS: &str = "collect.env_steps";
    /// Mean cross entropy per token of the successor on its targets before learning from them, nats.
    pub const CRITIC_LOSS: &str = "critic.loss";
    /// Mean cross entropy per token of the policy on its examples before learning from them, nats.
    pub const POLICY_LOSS: &str = "policy.loss";
    /// Share of tokens without a gradient because their ratio lay beyond the clip, or beyond the dual clip, in the
    /// direction of their advantage. Over all optimizer steps of the iteration, 0 to 1.
    pub const CLIP_FRACTION: &str = "policy.clip_fraction";
    /// Mean divergence per token (k3) of the policy from the one that sampled, over all optimizer steps, nats.
    pub const APPROXIMATE_KL: &str = "policy.approximate_kl";
    /// Half the mean squared error of the value critic's values, over all optimizer steps.
    pub const VALUE_LOSS: &str = "value.loss";
    /// Mean value that the critic gave to a token before the first step.
    pub const VALUE_MEAN: &str = "value.mean";
    /// Mean return that the critic learns to predict, over the same tokens.
    pub const RETURN_MEAN: &str = "value.mean_return";
    /// Mean Q of the action that was taken, over all updates.
    pub const CHOSEN_VALUE: &str = "value.chosen";
    /// Mean of the critic's target minus its prediction, over all updates.
    pub const TARGET_GAP: &str = "value.target_gap";
    /// Mean of Σ π (α log π − Q) of a policy that learns choices, over all updates after the warm-up.
    pub const CHOICE_LOSS: &str = "policy.choice_loss";
    /// Mean entropy of a policy that learns choices, over all updates after the warm-up, nats.
    pub const ENTROPY: &str = "policy.entropy";
    /// α, the weight of the policy's entropy, after the iteration.
    pub const ALPHA: &str = "policy.alpha";
    /// Share of the replayed steps that were relabeled with a goal that their episode reached, 0 to 1.
    pub const RELABELLED: &str = "replay.relabelled";
    /// Share of the returns' variance that the values explained before the first step. 1 is perfect, 0 is no
    /// better than the mean.
    pub const EXPLAINED_VARIANCE: &str = "value.explained_variance";
    /// Share of Bellman targets accepted, 0 to 1.
    pub const TARGETS_ACCEPTED: &str = "critic.targets_accepted";
    /// Share of targets dropped because they misquote the observation, 0 to 1.
    pub const TARGETS_MISQUOTED: &str = "critic.targets_misquoted";
    /// Share of targets dropped because the token limit cut them or they lack the prescribed form, 0 to 1.
    pub const TARGETS_UNPARSEABLE: &str = "critic.targets_unparseable";
    /// Share of first verdicts that are Yes, 0 to 1.
    pub const VERDICT_YES: &str = "evaluator.yes";
    /// Share of unparseable verdicts, 0 to 1.
    pub const VERDICT_UNPARSEABLE: &str = "evaluator.unparseable";
    /// Share of refined actions that differ from the original for the environment, 0 to 1.
    pub const REFINEMENT_CHANGED: &str = "refiner.changed";
    /// Share of refined actions that the environment can parse, 0 to 1.
    pub const REFINEMENT_VALID: &str = "refiner.valid";
    /// Share of targets dropped because they cite what only hindsight knows, 0 to 1.
    pub const TARGETS_LEAKED: &str = "critic.targets_leaked";
    /// Distinct word pairs per pair, over predictions.
    pub const DISTINCT_PAIRS: &str = "critic.distinct_pairs";
    /// Share of predictions that occurred earlier in the iteration, 0 to 1.
    pub const DUPLICATES: &str = "critic.duplicates";
    /// Mean number of words per prediction.
    pub const PREDICTION_WORDS: &str = "critic.prediction_words";
    /// Share of predictions without an ending, 0 to 1.
    pub const PREDICTIONS_ENDLESS: &str = "critic.predictions_endless";
    /// Probability that predictions of a step of a solved held-out episode end well more often than those of
    /// a failed one. 0.5 is random.
    pub const OUTCOME_AUC: &str = "critic.outcome_auc";
    /// Number of measured held-out steps.
    pub const OUTCOME_STATES: &str = "critic.outcome_states";
    /// Share of Yes among first verdicts on replayed steps of successful episodes, 0 to 1.
    pub const YES_ON_SUCCESS: &str = "evaluator.yes_on_success";
    /// The same on failed episodes.
    pub const YES_ON_FAILURE: &str = "evaluator.yes_on_failure";
    /// Share of Yes on held-out steps of successful episodes, 0 to 1.
    pub const HELD_OUT_YES_ON_SUCCESS: &str = "evaluator.held_out_yes_on_success";
    /// The same on failed episodes.
    pub const HELD_OUT_YES_ON_FAILURE: &str = "evaluator.held_out_yes_on_failure";
    /// Mean return that a refined action earns over the original, both played from the same state.
    pub const REFINER_GAIN: &str = "refiner.gain";
    /// Its standard error.
    pub const REFINER_GAIN_ERROR: &str = "refiner.gain_error";
    /// Number of measured pairs.
    pub const REFINER_PAIRS: &str = "refiner.pairs";
    /// Mean number of outcomes that the aggregator read for a language value.
    pub const VALUE_OUTCOMES: &str = "aggregator.outcomes";
    /// Share of unparseable choices, 0 to 1.
    pub const CHOICE_UNREADABLE: &str = "chooser.unreadable";
    /// Share of parseable choices that differ from the taken action for the environment, 0 to 1.
    pub const CHOICE_CHANGED: &str = "chooser.changed";
    /// Words of the base model's answers to general prompts that are lost, 0 to 1.
    pub const GENERAL_FORGOTTEN: &str = "policy.general_forgotten";
    /// Mean cross entropy per token on the base model's answers to general prompts, nats.
    pub const REHEARSAL_LOSS: &str = "rehearsal.loss";
    /// Median time in which the newest checkpoint answers agents, milliseconds.
    pub const LIVE_MILLISECONDS: &str = "live.milliseconds";
    /// Mean return of the newest checkpoint's last episodes with agents.
    pub const LIVE_RETURN: &str = "live.return";
    /// Share of the newest checkpoint's answers in the shadow of the stable one that are the same message, 0 to 1.
    pub const LIVE_AGREEMENT: &str = "live.agreement";
    /// Mean age of what was replayed: iterations since it was collected.
    pub const STALENESS: &str = "replay.staleness";
    /// Tokens generated in the iteration, all roles.
    pub const GENERATED_TOKENS: &str = "tokens.generated";
    /// Prompt tokens read in the iteration, all roles.
    pub const PROMPT_TOKENS: &str = "tokens.prompt";
    /// Tokens trained on in the iteration, prompts included.
    pub const TRAINED_TOKENS: &str = "tokens.trained";
    /// Optimizer steps taken in the iteration.
    pub const OPTIMIZER_STEPS: &str = "learn.steps";
    /// Wall time of the iteration, seconds.
    pub const ITERATION_SECONDS: &str = "time.iteration";
    /// Wall time of a phase, seconds: this prefix and the phase's name. What waited for something else
    /// counts.
    pub const PHASE_SECONDS_PREFIX: &str = "time.";

    /// Seconds of a phase with work. The rest of `time` is waiting.
    #[must_use]
    pub fn busy(phase: crate::domain::job::Phase) -> String {
        format!("busy.{phase}")
    }
}

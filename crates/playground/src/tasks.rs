//! The goal space: which goals there are, which are held out, and the scenes that they are set in.

use std::collections::BTreeMap;

use rand::{
    Rng,
    distr::{
        Distribution,
        weighted::{self, WeightedIndex},
    },
    seq::{IndexedRandom, SliceRandom},
};
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use sha2::{Digest, Sha256};

use crate::{
    game::Game,
    goal::{Goal, GoalKind, Subgoal, Target, Verb},
    needs::needs,
    settings::Settings,
    vocabulary::{Category, Kind, Vocabulary},
    world::World,
};

/// Which goals are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// To learn from.
    Train,
    /// To measure with. Training never draws these goals.
    HeldOut,
}

/// Why settings give no goal space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// Weights from which nothing can be drawn.
    #[error(
        "the weights of the goals cannot be used: {0}; give at least one kind of goal a weight"
    )]
    Weights(weighted::Error),
    /// One of the splits would be empty.
    #[error("held_out_percent is {0}; use 1 to 99")]
    HeldOut(usize),
    /// A kind with too few goals to split.
    #[error(
        "there are fewer than two goals of kind {0:?}; allow more objects or a longer horizon, or give the kind weight 0"
    )]
    TooFewGoals(GoalKind),
}

/// A goal that needs more objects than a scene has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{goal}` needs {needed} objects, but scenes have {objects}; allow more objects")]
pub struct TooManyObjects {
    /// The goal.
    pub goal: Goal,
    /// Objects that it needs.
    pub needed: usize,
    /// Objects of a scene.
    pub objects: usize,
}

/// The goals of one kind, by split.
#[derive(Debug, Clone)]
struct Goals {
    train: Vec<Goal>,
    held_out: Vec<Goal>,
}

impl Goals {
    fn of(&self, split: Split) -> &[Goal] {
        match split {
            Split::Train => &self.train,
            Split::HeldOut => &self.held_out,
        }
    }

    fn splits(&self) -> impl Iterator<Item = (Goal, Split)> {
        [Split::Train, Split::HeldOut]
            .into_iter()
            .flat_map(|split| self.of(split).iter().map(move |goal| (goal.clone(), split)))
    }
}

/// The goal space of a vocabulary.
#[derive(Debug, Clone)]
pub struct Tasks {
    vocabulary: Vocabulary,
    settings: Settings,
    /// The kinds that exist; none of their splits is empty.
    goals: Vec<(GoalKind, Goals)>,
    splits: BTreeMap<Goal, Split>,
    /// Draws an index of `goals`.
    kinds: WeightedIndex<u32>,
}

impl Tasks {
    /// Every goal that the settings allow, split by the hash of its words.
    ///
    /// # Errors
    /// Settings under which some kind of goal has nothing to draw in a split.
    pub fn new(vocabulary: Vocabulary, settings: Settings) -> Result<Self, SettingsError> {
        if !(1..100).contains(&settings.held_out_percent) {
            return Err(SettingsError::HeldOut(settings.held_out_percent));
        }
        let mut by_kind = BTreeMap::<_, Vec<_>>::new();
        for goal in all_goals(&vocabulary, settings.categories) {
            let fits = needs(&goal).len() <= settings.objects
                && settings.horizon(&goal) <= settings.longest_horizon;
            if fits {
                by_kind.entry(goal.kind()).or_default().push(goal);
            }
        }
        let mut goals = Vec::new();
        for kind in GoalKind::ALL.into_iter().filter(|&kind| settings.weights.of(kind) > 0) {
            let all = by_kind.remove(&kind).unwrap_or_default();
            if all.len() < 2 {
                return Err(SettingsError::TooFewGoals(kind));
            }
            goals.push((kind, split(all, settings.held_out_percent)));
        }
        let weights = goals.iter().map(|(kind, _)| settings.weights.of(*kind));
        let kinds = WeightedIndex::new(weights).map_err(SettingsError::Weights)?;
        let splits = goals.iter().flat_map(|(_, goals)| goals.splits()).collect();
        Ok(Self { vocabulary, settings, goals, splits, kinds })
    }

    /// The vocabulary.
    #[must_use]
    pub const fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The goals of a split. The order is fixed.
    pub fn goals(&self, split: Split) -> impl Iterator<Item = &Goal> {
        self.goals.iter().flat_map(move |(_, goals)| goals.of(split))
    }

    /// The split of a goal; none if the goal does not exist. Hindsight relabelling asks this, so that
    /// training meets no held-out goal.
    #[must_use]
    pub fn split_of(&self, goal: &Goal) -> Option<Split> {
        self.splits.get(goal).copied()
    }

    /// Draws a goal and a scene: first the kind by weight, then each goal of the kind equally often.
    #[must_use]
    pub fn draw(&self, split: Split, seed: u64) -> Game {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let kind = self.kinds.sample(&mut rng);
        let goals = self.goals[kind].1.of(split);
        let goal = goals[rng.random_range(0..goals.len())].clone();
        self.set(goal, &mut rng)
    }

    /// An episode of a goal. The seed decides the scene.
    ///
    /// # Errors
    /// A goal that needs more objects than a scene has.
    pub fn game(&self, goal: Goal, seed: u64) -> Result<Game, TooManyObjects> {
        let needed = needs(&goal).len();
        if needed > self.settings.objects {
            return Err(TooManyObjects { goal, needed, objects: self.settings.objects });
        }
        Ok(self.set(goal, &mut ChaCha8Rng::seed_from_u64(seed)))
    }

    fn set(&self, goal: Goal, rng: &mut ChaCha8Rng) -> Game {
        let world = World::new(self.scene(&goal, rng));
        let horizon = self.settings.horizon(&goal);
        Game::new(goal, world, horizon)
    }

    /// The objects that a goal needs and, while the vocabulary lasts, others of other kinds, shuffled.
    /// The agent starts on none of them; in the original, it happens to in about one scene in twenty.
    fn scene(&self, goal: &Goal, rng: &mut ChaCha8Rng) -> Vec<Kind> {
        let mut objects: Vec<Kind> = needs(goal)
            .iter()
            .filter_map(|target| match target {
                Target::Kind(kind) => Some(kind.clone()),
                Target::Category(category) => {
                    self.vocabulary.of_category(*category).choose(rng).map(|&kind| kind.clone())
                }
            })
            .collect();
        let mut others = self.vocabulary.kinds().to_vec();
        others.retain(|kind| !objects.contains(kind));
        let missing = self.settings.objects.saturating_sub(objects.len());
        objects.extend(others.choose_multiple(rng, missing).cloned());
        objects.shuffle(rng);
        objects
    }
}

/// Every single goal, and every pair of two different possible ones.
fn all_goals(vocabulary: &Vocabulary, categories: bool) -> Vec<Goal> {
    let kinds = vocabulary.kinds().iter().cloned().map(Target::Kind);
    let named = Category::ALL.into_iter().filter(|_| categories).map(Target::Category);
    let subgoals: Vec<_> = kinds
        .chain(named)
        .flat_map(|target| {
            [Verb::Grasp, Verb::Grow].map(|verb| Subgoal { verb, target: target.clone() })
        })
        // The original asks for the growth of furniture, not of water.
        .filter(|subgoal| {
            subgoal.verb == Verb::Grasp || subgoal.target.category() != Category::Supply
        })
        .collect();
    let possible = || subgoals.iter().filter(|subgoal| subgoal.possible());
    let pairs = possible().flat_map(|first| {
        possible()
            .filter(move |second| first != *second)
            .map(move |second| Goal::Sequential(first.clone(), second.clone()))
    });
    subgoals.iter().cloned().map(Goal::Single).chain(pairs).collect()
}

/// Holds out the goals whose text has the smallest SHA-256. The same vocabulary always gives the same split.
fn split(mut goals: Vec<Goal>, percent: usize) -> Goals {
    goals.sort_by_cached_key(|goal| Sha256::digest(goal.to_string()).to_vec());
    let held_out = (goals.len() * percent / 100).max(1);
    let train = goals.split_off(held_out);
    Goals { train, held_out: goals }
}

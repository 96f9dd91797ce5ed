//! The objects of a scene.

use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;

use crate::{
    goal::{Goal, Subgoal, Target},
    needs::needs,
    settings::{Composition, Settings},
    vocabulary::{Category, Kind, Vocabulary},
};

/// The objects of a goal's scene, shuffled; none where a scene cannot hold what the goal needs. The agent starts on none
/// of them; in the original, it happens to in about one scene in twenty.
pub(crate) fn scene(
    goal: &Goal,
    vocabulary: &Vocabulary,
    settings: &Settings,
    rng: &mut ChaCha8Rng,
) -> Option<Vec<Kind>> {
    let mut objects = match settings.composition {
        Composition::AsNeeded => as_needed(goal, vocabulary, settings.objects, rng)?,
        Composition::Fixed { plants, herbivores, carnivores, furniture } => {
            let counts = [
                (Category::Plant, plants),
                (Category::Herbivore, herbivores),
                (Category::Carnivore, carnivores),
                (Category::Furniture, furniture),
                (Category::Supply, 1),
            ];
            let mut all = Vec::new();
            for (category, count) in counts {
                all.extend(of_category(goal, vocabulary, (category, count), rng)?);
            }
            all
        }
    };
    objects.shuffle(rng);
    Some(objects)
}

/// The objects that a goal needs and, while the vocabulary lasts, others of other kinds.
fn as_needed(
    goal: &Goal,
    vocabulary: &Vocabulary,
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Option<Vec<Kind>> {
    let needed = needs(goal);
    if needed.len() > count {
        return None;
    }
    let mut objects: Vec<Kind> = needed
        .iter()
        .filter_map(|target| match target {
            Target::Kind(kind) => Some(kind.clone()),
            Target::Category(category) => {
                vocabulary.of_category(*category).choose(rng).map(|&kind| kind.clone())
            }
        })
        .collect();
    let mut others = vocabulary.kinds().to_vec();
    others.retain(|kind| !objects.contains(kind));
    let missing = count - objects.len();
    objects.extend(others.choose_multiple(rng, missing).cloned());
    Some(objects)
}

/// So many kinds of a category: those that a goal names, and any others; none where the goal names more.
fn of_category(
    goal: &Goal,
    vocabulary: &Vocabulary,
    (category, count): (Category, usize),
    rng: &mut ChaCha8Rng,
) -> Option<Vec<Kind>> {
    let named = |kind: &&Kind| {
        let is = |subgoal: &Subgoal| matches!(&subgoal.target, Target::Kind(own) if own == *kind);
        goal.subgoals().any(is)
    };
    let (mut kinds, others): (Vec<_>, Vec<_>) =
        vocabulary.of_category(category).into_iter().partition(named);
    let missing = count.checked_sub(kinds.len())?;
    kinds.extend(others.choose_multiple(rng, missing));
    Some(kinds.into_iter().cloned().collect())
}

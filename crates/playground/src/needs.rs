//! The objects that a scene must hold so that a goal can be achieved.

use crate::{
    goal::{Goal, Subgoal, Target, Verb},
    vocabulary::Category,
};

/// What is left of a first subgoal for the second one to use.
struct Leftover<'a> {
    target: &'a Target,
    grown: bool,
}

/// One target per object that the goal needs. Nothing feeds the target of an impossible goal, but it is
/// there to be looked at.
pub(crate) fn needs(goal: &Goal) -> Vec<Target> {
    match goal {
        Goal::Single(only) => of_subgoal(only, None),
        Goal::Sequential(first, second) => {
            let leftover = Leftover { target: &first.target, grown: first.verb == Verb::Grow };
            let mut all = of_subgoal(first, None);
            all.extend(of_subgoal(second, Some(&leftover)));
            all
        }
    }
}

fn of_subgoal(subgoal: &Subgoal, leftover: Option<&Leftover<'_>>) -> Vec<Target> {
    let reused = |target: &Target, grown: bool| {
        leftover.is_some_and(|left| left.grown == grown && target.covers(left.target))
    };
    let target = &subgoal.target;
    match subgoal.verb {
        // A grown object lies on the ground. A grasped one is in the hand and cannot be grasped again.
        Verb::Grasp if reused(target, true) => Vec::new(),
        Verb::Grasp => vec![target.clone()],
        Verb::Grow => {
            let mut all = Vec::new();
            if !reused(target, false) {
                all.push(target.clone());
            }
            for food in chain(target.category()).map(Target::Category) {
                if reused(&food, true) {
                    break;
                }
                if !reused(&food, false) {
                    all.push(food);
                }
            }
            all
        }
    }
}

/// What a category grows from, what that grows from, and so on down to water.
pub(crate) fn chain(category: Category) -> impl Iterator<Item = Category> {
    std::iter::successors(category.food(), |food| food.food())
}

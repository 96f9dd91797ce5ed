//! An expert that knows the rules: a search for the shortest way to the goal.

use std::collections::HashSet;

use crate::{
    game::{End, Game},
    goal::{Goal, Subgoal, Verb},
    needs::chain,
    scene::{Action, HANDS, Scene, State},
    vocabulary::Kind,
};

/// The next action of the shortest way to the goal; none if the goal is out of reach in the steps left.
#[must_use]
pub fn expert(game: &Game) -> Option<String> {
    plan(game)?.into_iter().next()
}

/// The actions of the shortest way to the goal; none if the goal is out of reach in the steps left.
#[must_use]
pub fn plan(game: &Game) -> Option<Vec<String>> {
    if game.end() != End::Continues || !game.goal().possible() {
        return None;
    }
    let first_done = match game.goal() {
        Goal::Single(_) => false,
        Goal::Sequential(first, _) => game.world().has_achieved(&Goal::Single(first.clone())),
    };
    let start = Node { scene: game.world().scene().clone(), first_done, came: None };
    Search::new(game.goal(), start).run(game.steps_left())
}

/// A state that the search has reached.
struct Node {
    scene: Scene,
    /// The first half of a sequential goal is achieved.
    first_done: bool,
    /// The node before, and the action taken there.
    came: Option<(usize, Action)>,
}

/// A breadth-first search.
struct Search<'a> {
    goal: &'a Goal,
    nodes: Vec<Node>,
    seen: HashSet<(State, bool)>,
}

impl<'a> Search<'a> {
    fn new(goal: &'a Goal, start: Node) -> Self {
        let seen = [(start.scene.state().clone(), start.first_done)].into();
        Self { goal, nodes: vec![start], seen }
    }

    fn run(mut self, steps: u32) -> Option<Vec<String>> {
        let mut reached = 0..1;
        for _ in 0..steps {
            for at in reached.clone() {
                for action in self.useful(&self.nodes[at].scene) {
                    if self.take(at, action) {
                        return Some(self.way(at, action));
                    }
                }
            }
            reached = reached.end..self.nodes.len();
        }
        None
    }

    /// Takes an action and tells whether it achieves the goal.
    fn take(&mut self, at: usize, action: Action) -> bool {
        let mut scene = self.nodes[at].scene.clone();
        let mut first_done = self.nodes[at].first_done;
        if let Some(event) = scene.apply(action) {
            let kind = scene.kind(event.object);
            let done =
                |subgoal: &Subgoal| subgoal.verb == event.verb && subgoal.target.accepts(kind);
            match self.goal {
                Goal::Single(only) if done(only) => return true,
                Goal::Sequential(_, second) if first_done && done(second) => return true,
                Goal::Sequential(first, _) if done(first) => first_done = true,
                Goal::Single(_) | Goal::Sequential(..) => {}
            }
        }
        if self.seen.insert((scene.state().clone(), first_done)) {
            self.nodes.push(Node { scene, first_done, came: Some((at, action)) });
        }
        false
    }

    /// The words of the actions from the start to a node, and of one action more.
    fn way(&self, at: usize, last: Action) -> Vec<String> {
        let steps = std::iter::successors(Some((at, last)), |(at, _)| self.nodes[*at].came);
        let mut words: Vec<_> =
            steps.map(|(at, action)| self.nodes[at].scene.text(action)).collect();
        words.reverse();
        words
    }

    /// The possible actions on objects that the goal names or that its target grows from.
    fn useful(&self, scene: &Scene) -> Vec<Action> {
        let room = scene.held().count() < HANDS;
        let mut actions = scene.actions();
        actions.retain(|action| match action {
            Action::Grasp => {
                room && scene.standing_on().is_some_and(|on| self.uses(scene.kind(on)))
            }
            Action::GoTo(object) | Action::Release(object) => self.uses(scene.kind(*object)),
        });
        actions
    }

    fn uses(&self, kind: &Kind) -> bool {
        self.goal.subgoals().any(|Subgoal { verb, target }| {
            target.accepts(kind)
                || *verb == Verb::Grow
                    && chain(target.category()).any(|food| food == kind.category())
        })
    }
}

//! The rules: which objects lie where, and what an action does to them.

use std::sync::Arc;

use crate::{goal::Verb, vocabulary::Kind};

/// Objects that can be held before `Grasp` does nothing.
pub(crate) const HANDS: usize = 2;

/// An action. Objects are given by their place in the scene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Grasp,
    GoTo(usize),
    Release(usize),
}

/// What a step achieved, and with which object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event {
    pub verb: Verb,
    pub object: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Ground,
    Held,
    Eaten,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Condition {
    place: Place,
    grown: bool,
}

/// What actions change.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    conditions: Vec<Condition>,
    standing_on: Option<usize>,
}

/// Objects and their state.
///
/// No two objects lie in one place: nothing is ever put down except by feeding, which removes the food.
/// So the agent stands on at most one object, and a step has at most one event.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    kinds: Arc<[Kind]>,
    state: State,
}

impl Scene {
    /// Young objects on the ground, in the order in which observations name them.
    pub(crate) fn new(kinds: Vec<Kind>, standing_on: Option<usize>) -> Self {
        let young = Condition { place: Place::Ground, grown: false };
        let conditions = vec![young; kinds.len()];
        Self { kinds: kinds.into(), state: State { conditions, standing_on } }
    }

    pub(crate) const fn state(&self) -> &State {
        &self.state
    }

    pub(crate) fn kind(&self, object: usize) -> &Kind {
        &self.kinds[object]
    }

    pub(crate) fn name(&self, object: usize) -> String {
        self.kinds[object].shown(self.state.conditions[object].grown)
    }

    pub(crate) const fn standing_on(&self) -> Option<usize> {
        self.state.standing_on
    }

    /// Objects that are neither held nor eaten.
    pub(crate) fn on_ground(&self) -> impl Iterator<Item = usize> {
        self.at(Place::Ground)
    }

    pub(crate) fn held(&self) -> impl Iterator<Item = usize> {
        self.at(Place::Held)
    }

    fn at(&self, place: Place) -> impl Iterator<Item = usize> {
        let conditions = self.state.conditions.iter().enumerate();
        conditions.filter(move |(_, condition)| condition.place == place).map(|(object, _)| object)
    }

    /// The possible actions. Of several objects with one name, the first is meant.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let go = self.first_of_each_name(self.on_ground()).into_iter().map(Action::GoTo);
        let release = self.first_of_each_name(self.held()).into_iter().map(Action::Release);
        std::iter::once(Action::Grasp).chain(go).chain(release).collect()
    }

    fn first_of_each_name(&self, objects: impl Iterator<Item = usize>) -> Vec<usize> {
        let looks = |object: usize| (&self.kinds[object], self.state.conditions[object].grown);
        objects.fold(Vec::new(), |mut first, object| {
            if first.iter().all(|&other| looks(other) != looks(object)) {
                first.push(object);
            }
            first
        })
    }

    /// The words of an action.
    pub(crate) fn text(&self, action: Action) -> String {
        match action {
            Action::Grasp => "Grasp".to_owned(),
            Action::GoTo(object) => format!("Go to {}", self.name(object)),
            Action::Release(object) => format!("Release {}", self.name(object)),
        }
    }

    /// Takes a possible action.
    pub(crate) fn apply(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Grasp => self.grasp(),
            Action::GoTo(object) => {
                self.state.standing_on = Some(object);
                None
            }
            Action::Release(object) => self.release(object),
        }
    }

    fn grasp(&mut self) -> Option<Event> {
        if self.held().count() >= HANDS {
            return None;
        }
        let object = self.state.standing_on.take()?;
        self.state.conditions[object].place = Place::Held;
        Some(Event { verb: Verb::Grasp, object })
    }

    /// Releasing an object has an effect only where it feeds, or is fed by, the object below.
    fn release(&mut self, held: usize) -> Option<Event> {
        let below = self.state.standing_on?;
        let pairs = [(held, below), (below, held)];
        let (food, eater) = pairs.into_iter().find(|&(food, eater)| self.feeds(food, eater))?;
        self.state.conditions[food].place = Place::Eaten;
        self.state.conditions[eater] = Condition { place: Place::Ground, grown: true };
        self.state.standing_on = Some(eater);
        Some(Event { verb: Verb::Grow, object: eater })
    }

    fn feeds(&self, food: usize, eater: usize) -> bool {
        let nourishes = |kind: &Kind, grown: bool| grown || kind.category().food().is_none();
        self.kinds[eater].category().food() == Some(self.kinds[food].category())
            && !self.state.conditions[eater].grown
            && nourishes(&self.kinds[food], self.state.conditions[food].grown)
    }
}

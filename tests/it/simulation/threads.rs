//! Many schedules on several threads: those of seeds, or one with a kill at each of its statements. Each thread has a
//! database of its own, so a schedule does not depend on what the others play.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use super::{
    play, scenario, scenario::Scenario, schedule::Plan, simulate, undisturbed, world::World,
};

/// Schedules that are worth a thread with its database.
const WORTH: u64 = 100;
/// After so many schedules on one thread their rows are removed.
const CLEAR_AFTER: usize = 200;

/// Threads for a number of schedules. While one waits for Postgres, another uses its core.
pub fn of(schedules: u64) -> u64 {
    (schedules / WORTH).clamp(1, most())
}

/// Threads that keep all cores busy.
pub fn most() -> u64 {
    thread::available_parallelism().map_or(1, |cores| cores.get() as u64) + 1
}

/// Statements at which a process was killed, and whether Postgres had executed them.
type Points = BTreeSet<(String, bool)>;

/// What schedules came to.
#[derive(Default)]
pub struct Total {
    steps: usize,
    statements: usize,
    faults: usize,
    killed_at: Points,
    /// How many there were of each scenario, and how long they took together.
    took: BTreeMap<Scenario, (u32, Duration)>,
}

/// Plays the schedule of each seed. An error has the lowest seed that broke a promise, and what happened.
pub fn play_all(seeds: Range<u64>, threads: u64) -> Result<Total, (u64, String)> {
    let next = AtomicU64::new(seeds.start);
    let shares: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..threads).map(|_| scope.spawn(|| simulate(share(&next, seeds.end)))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut total = Total::default();
    let mut broken: Vec<_> = Vec::new();
    for share in shares {
        match share {
            Ok(share) => total.add(share),
            Err(error) => broken.push(error),
        }
    }
    broken.into_iter().min().map_or(Ok(total), Err)
}

/// Plays one seed after the other that no other thread plays.
async fn share(next: &AtomicU64, end: u64) -> Result<Total, (u64, String)> {
    let mut world = World::new().await;
    let mut expected = BTreeMap::new();
    for scenario in Scenario::ALL {
        expected.insert(scenario, undisturbed(&mut world, scenario).await);
    }
    let mut total = Total::default();
    for number in 1.. {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= end {
            break;
        }
        let scenario = scenario(seed);
        let begun = Instant::now();
        let expected = Some(expected[&scenario].as_slice());
        let played = play(&mut world, scenario, Plan::Seed(seed), expected).await;
        let played = played.map_err(|error| {
            // The others end too.
            next.store(end, Ordering::Relaxed);
            (seed, error)
        })?;
        total.steps += played.trace.len();
        total.statements += played.statements;
        total.faults += played.faults;
        total.killed_at.extend(played.killed_at);
        total.took(scenario, 1, begun.elapsed());
        if number % CLEAR_AFTER == 0 {
            world.clear().await;
        }
    }
    Ok(total)
}

/// Plays a scenario with a kill at each of its statements in turn; returns how many there are, and which.
pub fn kill_everywhere(scenario: Scenario, threads: u64) -> (usize, Points) {
    let (next, end) = (AtomicUsize::new(1), AtomicUsize::new(usize::MAX));
    let all = thread::scope(|scope| {
        let kill = || simulate(kill(scenario, &next, &end));
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(kill)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    (end.into_inner() - 1, all)
}

/// Kills a process at one statement after the other that no other thread takes, up to the first that does not come.
async fn kill(scenario: Scenario, next: &AtomicUsize, end: &AtomicUsize) -> Points {
    let mut world = World::new().await;
    let expected = undisturbed(&mut world, scenario).await;
    let mut points = Points::new();
    for number in 1.. {
        let statement = next.fetch_add(1, Ordering::Relaxed);
        if statement >= end.load(Ordering::Relaxed) {
            break;
        }
        for executed in [false, true] {
            let plan = Plan::KillAt { statement, executed };
            let played = play(&mut world, scenario, plan, Some(expected.as_slice())).await;
            let played = played.unwrap_or_else(|error| panic!("{error}"));
            if played.killed_at.is_empty() {
                end.fetch_min(statement, Ordering::Relaxed);
                break;
            }
            points.extend(played.killed_at);
        }
        if number % CLEAR_AFTER == 0 {
            world.clear().await;
        }
    }
    points
}

impl Total {
    fn took(&mut self, scenario: Scenario, schedules: u32, time: Duration) {
        let of = self.took.entry(scenario).or_default();
        *of = (of.0 + schedules, of.1 + time);
    }

    fn add(&mut self, other: Self) {
        self.steps += other.steps;
        self.statements += other.statements;
        self.faults += other.faults;
        self.killed_at.extend(other.killed_at);
        for (scenario, (schedules, time)) in other.took {
            self.took(scenario, schedules, time);
        }
    }

    /// Prints it.
    pub fn tell(&self, took: Duration, threads: u64) {
        let schedules: u32 = self.took.values().map(|(schedules, _)| schedules).sum();
        eprintln!(
            "{schedules} schedules on {threads} threads in {:.1} s ({:.0} a minute): {} steps, {} statements, {} faults; \
             processes died at {} kinds of statement, before or after it",
            took.as_secs_f64(),
            f64::from(schedules) / took.as_secs_f64() * 60.0,
            self.steps,
            self.statements,
            self.faults,
            self.killed_at.len()
        );
        for (scenario, (schedules, time)) in &self.took {
            let each = 1000.0 * time.as_secs_f64() / f64::from(*schedules);
            eprintln!("{scenario:?}: {schedules} schedules of {each:.0} ms");
        }
    }
}

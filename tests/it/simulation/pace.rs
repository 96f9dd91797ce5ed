//! Which processes stand still, and how time passes.

use std::time::Duration;

use rand::Rng;

use super::{
    board::{Order, What},
    schedule::Schedule,
};

/// How long nothing of a process moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freeze {
    No,
    /// Until a step of the schedule.
    Step(usize),
    /// Until a unit is taken over whose lease has expired, and at the latest until a time.
    TakeOver(Duration),
}

/// Longest wait of a frozen process for another to take over its unit. A lease expires after 30 seconds.
const TAKE_OVER: Duration = Duration::from_secs(45);

/// Calls of a process whose unit was taken over that are likely to fail.
const UNLUCKY: u32 = 3;

impl Schedule<'_> {
    /// A process that works on a unit freezes until another has taken over its unit.
    pub(super) fn freeze(&mut self, process: usize) {
        self.freeze_at_work = false;
        let until = self.world.board.state().now + TAKE_OVER;
        self.world.processes[process].freeze = Freeze::TakeOver(until);
        let name = self.world.processes[process].name();
        self.tell(format!("{name} freezes until a unit is taken over"));
    }

    /// The unit of a frozen process was taken over: it soon moves again, while the other has its unit.
    pub(super) fn notice_take_over(&mut self) {
        if !std::mem::take(&mut self.world.board.state().taken_over) {
            return;
        }
        for process in &mut self.world.processes[..self.processes] {
            if matches!(process.freeze, Freeze::TakeOver(_)) {
                process.freeze = Freeze::Step(self.step + self.rng.random_range(0..20));
                process.unlucky = UNLUCKY;
            }
        }
    }

    pub(super) fn is_frozen(&self, process: usize, now: Duration) -> bool {
        match self.world.processes[process].freeze {
            Freeze::No => false,
            Freeze::Step(until) => until > self.step,
            Freeze::TakeOver(until) => until > now,
        }
    }

    /// Nothing can happen now: a frozen process moves again, or time passes until something can happen.
    pub(super) async fn pass_time(&mut self) {
        let now = self.world.board.state().now;
        let (mut thawed, mut until) = (false, Vec::new());
        for process in &mut self.world.processes[..self.processes] {
            match process.freeze {
                Freeze::Step(step) if step > self.step => {
                    process.freeze = Freeze::No;
                    thawed = true;
                }
                Freeze::TakeOver(time) if time > now => until.push(time),
                _ => {}
            }
        }
        if thawed {
            return;
        }
        // What a frozen process has in its hands cannot be claimed, so what is due may stay due.
        let least = Duration::from_millis(if until.is_empty() { 1 } else { 1000 });
        {
            let state = self.world.board.state();
            until.extend(state.waits.values().filter_map(|wait| match &wait.what {
                What::Sleep { until, .. } if !self.is_frozen(wait.process, now) => Some(*until),
                _ => None,
            }));
        }
        if !self.over {
            until.extend(self.world.due(&self.played.jobs).await.into_iter().map(|(_, at)| at));
        }
        let next = until.into_iter().min().unwrap_or(now + Duration::from_secs(1));
        self.advance(next.saturating_sub(now).max(least));
        if !self.over && !self.is_moving().await {
            if self.world.failed_early(&self.played.jobs).await > 0 {
                self.world.board.violated("a unit fails although it has attempts left".into());
            }
            self.order(0, Order::Resume).await;
        }
    }

    pub(super) fn advance(&mut self, by: Duration) {
        let mut state = self.world.board.state();
        state.now += by;
        state.news();
        let now = state.now;
        drop(state);
        self.tell(format!("time passes: {:.3} s", now.as_secs_f64()));
    }

    /// Whether some job neither stands still by order nor has ended.
    async fn is_moving(&mut self) -> bool {
        let moving =
            "select count(*) from jobs where id = any($1) and status in ('queued', 'running')";
        let count: i64 = sqlx::query_scalar(moving)
            .bind(&self.played.jobs)
            .fetch_one(&mut self.world.control)
            .await
            .unwrap();
        count > 0
    }
}

//! The threads: each claims a step, produces it, delivers it, until the ring is closed.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::plan::{Delivery, Plan};
use super::protocol::Take;
use super::readahead::{LEAD, Readahead, thread_bytes_read};
use super::ring::{Claimed, Depth, Ring};
use crate::error::{Error, ErrorKind, Result};
use crate::sampler::Sampler;

/// How long a drop waits for workers. One that is still inside the user's code then is left to end by itself.
const PATIENCE: Duration = Duration::from_millis(50);

type Steps<T> = Ring<Arc<dyn Sampler>, Delivery<T>>;

/// The worker threads of one loader.
pub(super) struct Workers<T> {
    ring: Arc<Steps<T>>,
    threads: Vec<JoinHandle<()>>,
    process: u32,
}

/// The limits of what workers hold ahead of the consumer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) workers: usize,
    pub(super) prefetch: usize,
    pub(super) max_bytes: u64,
}

impl<T: Send + 'static> Workers<T> {
    pub(super) fn start(
        plan: &Arc<Plan<T>>,
        limits: Limits,
        sampler: Arc<dyn Sampler>,
        start: u64,
        end: u64,
    ) -> Result<Self> {
        let ring =
            Arc::new(Ring::new(limits.workers, limits.prefetch, limits.max_bytes, sampler, start, end));
        let mut workers = Self { ring, threads: Vec::new(), process: std::process::id() };
        let ahead = (limits.workers as u64).saturating_sub(1) + LEAD;
        for number in 0..limits.workers {
            // A failure drops `workers`, which ends those that run already.
            let thread = workers.spawn(number, ahead, Arc::clone(plan)).map_err(|error| {
                Error::new(ErrorKind::Io, format!("failed to start worker {number} of {}", limits.workers))
                    .with_hint("use fewer workers, or raise the limit of threads for this user or container")
                    .caused_by(error)
            })?;
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    fn spawn(&self, number: usize, ahead: u64, plan: Arc<Plan<T>>) -> io::Result<JoinHandle<()>> {
        let ring = Arc::clone(&self.ring);
        ring.enter();
        let presence = Presence { ring, ahead, ended: false };
        // When the thread cannot be had the closure is dropped, and `presence` with it.
        thread::Builder::new().name(format!("loaderx-{number}")).spawn(move || presence.work(&plan))
    }
}

impl<T> Workers<T> {
    /// Waits for the next step. `None` at the end of a finite course.
    pub(super) fn next(&self) -> Option<Delivery<T>> {
        if self.is_forked() {
            let here = std::process::id();
            return Some(Delivery::failed(
                Error::new(
                    ErrorKind::Closed,
                    format!("the loader's workers are threads of process {}, this is {here}", self.process),
                )
                .with_hint("threads do not survive a fork: build the loader after it, or use workers(0)"),
            ));
        }
        match self.ring.take() {
            Take::Step(delivery) => Some(delivery),
            Take::End => None,
            // The ring returns only when it need not wait.
            Take::Lost | Take::Wait => Some(Delivery::failed(
                Error::new(ErrorKind::Closed, "a worker of the loader died outside of any step").with_hint(
                    "a value of the transform panicked when it was dropped; build the loader anew",
                ),
            )),
        }
    }

    pub(super) fn seek(&self, sampler: Arc<dyn Sampler>, start: u64, end: u64) {
        if !self.is_forked() {
            self.ring.seek(sampler, start, end);
        }
    }

    pub(super) fn depth(&self) -> Depth {
        if self.is_forked() { Depth::default() } else { self.ring.depth() }
    }

    /// Whether this is a child of fork: the threads do not exist here, and the ring's lock may have been held by
    /// one of them, so it must not be touched.
    fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    pub(super) fn count(&self) -> usize {
        self.threads.len()
    }
}

impl<T> Drop for Workers<T> {
    fn drop(&mut self) {
        let threads = std::mem::take(&mut self.threads);
        if self.is_forked() {
            std::mem::forget((threads, Arc::clone(&self.ring)));
            return;
        }
        self.ring.close(PATIENCE);
        for thread in threads {
            if self.ring.is_deserted() || thread.is_finished() {
                // The thread has nothing left to do; it reports no panic that a step did not report already.
                drop(thread.join());
            }
        }
    }
}

/// A worker's place at the ring; gives it up however the thread ends.
struct Presence<T> {
    ring: Arc<Steps<T>>,
    /// How many steps after its own it asks for ahead.
    ahead: u64,
    ended: bool,
}

impl<T> Presence<T> {
    fn work(mut self, plan: &Plan<T>) {
        let mut readahead = Readahead::new(thread_bytes_read);
        while let Some(Claimed { ticket, course }) = self.ring.claim() {
            plan.advise(&*course, readahead.steps(ticket.step(), self.ahead));
            let drawn = plan.draw(&*course, ticket.step());
            // An error holds no memory worth counting, but takes its turn.
            let bytes = drawn.as_ref().map_or(0, |drawn| drawn.bytes);
            let Some(ticket) = self.ring.grant(ticket, bytes) else { continue };
            let delivery = drawn.map_or_else(Delivery::failed, |drawn| plan.produce(drawn));
            self.ring.deliver(ticket, delivery);
        }
        self.ended = true;
    }
}

impl<T> Drop for Presence<T> {
    fn drop(&mut self) {
        self.ring.leave(!self.ended);
    }
}

#[cfg(all(loom, test))]
#[path = "worker_loom.rs"]
mod loom_model;

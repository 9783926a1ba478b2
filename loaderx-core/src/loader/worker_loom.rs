//! Runs real workers and a real consumer under loom, in every order in which they can reach their locks and flags.
//!
//! `protocol_model.rs` walks through the rules of the hand-over; this is about the code around them: whether
//! each critical section is one, each wait looks again, each wake comes, and nobody trusts the flag that is a hint.
//! loom fails a test when all threads wait. `bash ci/loom.sh` runs these tests.

use loom::thread;

use super::*;
use crate::buffer::{Buffer, Vecs};
use crate::loader::OnDamage;
use crate::loader::batch::Batch;
use crate::sampler::Pass;
use crate::view::{Column, DenseBatch, Request, Source};

/// Record `i` is the number `i`; a batch takes 8 bytes for each.
struct Numbers;

impl Source for Numbers {
    fn len(&self) -> u64 {
        RECORDS
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        let shape = vec![request.indices.len()];
        Ok(Column::Dense(DenseBatch::from_parts(Buffer::from(request.indices.to_vec()), shape)?))
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        Ok(indices.len() as u64 * 8)
    }

    fn describe(&self) -> String {
        "numbers".into()
    }
}

const RECORDS: u64 = 12;

/// The steps of one record each, and those of two.
fn singles() -> Arc<dyn Sampler> {
    Arc::new(Pass::new(RECORDS, 1).unwrap())
}

fn pairs() -> Arc<dyn Sampler> {
    Arc::new(Pass::new(RECORDS, 2).unwrap())
}

/// A loader's worth of threads. What a step delivers are its records.
struct Party {
    plan: Arc<Plan<Vec<u64>>>,
    workers: Workers<Vec<u64>>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Party {
    /// Gives the steps `0..end` of single records to `workers` threads; `transform` sees each batch.
    fn with(
        workers: usize,
        slots: usize,
        max_bytes: u64,
        end: u64,
        transform: fn(&Batch) -> Result<()>,
    ) -> Self {
        let plan = Arc::new(Plan {
            names: Arc::new(["x".to_owned()]),
            sources: vec![Arc::new(Numbers)],
            seed: 0,
            on_damage: OnDamage::Error,
            memory: Arc::new(Vecs),
            transform: Arc::new(move |batch: Batch| transform(&batch).map(|()| batch.indices().to_vec())),
        });
        let ring = Arc::new(Ring::new(workers, slots, max_bytes, singles(), 0, end));
        // loom's threads have no `is_finished`, so they are kept beside the list that a drop joins.
        let workers_of = Workers { ring, threads: Vec::new(), process: std::process::id() };
        let mut party = Self { plan, workers: workers_of, threads: Vec::new() };
        for _ in 0..workers {
            let plan = Arc::clone(&party.plan);
            let presence = party.presence();
            party.threads.push(spawn(move || presence.work(&plan)));
        }
        party
    }

    fn of(workers: usize, slots: usize, end: u64) -> Self {
        Self::with(workers, slots, u64::MAX, end, |_| Ok(()))
    }

    fn presence(&self) -> Presence<Vec<u64>> {
        let ring = Arc::clone(&self.workers.ring);
        ring.enter();
        Presence { ring, ahead: 1, ended: false }
    }

    fn expect(&self, records: &[u64]) {
        assert_eq!(self.workers.next().unwrap().result.unwrap(), records);
    }

    fn expect_end(&self) {
        assert!(self.workers.next().is_none());
    }

    /// Drops what a loader would drop, and waits for all threads, which a drop must have ended.
    fn end(self) {
        let ring = Arc::clone(&self.workers.ring);
        drop(self.workers);
        assert!(ring.is_deserted(), "a drop waits for workers that can end");
        for thread in self.threads {
            thread.join().unwrap();
        }
        assert_eq!(ring.depth().bytes, held(&ring), "bytes without a batch");
    }
}

/// Bytes of the batches that wait in the queue, all of which are single records.
fn held(ring: &Steps<Vec<u64>>) -> u64 {
    ring.depth().ready as u64 * 8
}

fn spawn(work: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    // loom's own stacks are too small for a panic.
    thread::Builder::new().stack_size(1 << 16).spawn(work).unwrap()
}

/// Every order in which at most `preemptions` threads are interrupted where they could go on; a thread that waits
/// always lets the others go on.
fn in_every_order(preemptions: usize, test: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    // `LOOM_MAX_PREEMPTIONS` has loom look further.
    model.preemption_bound.get_or_insert(preemptions);
    model.check(test);
}

#[test]
fn one_worker_and_one_slot_hand_over_every_step_and_the_end() {
    in_every_order(3, || {
        let party = Party::of(1, 1, 3);
        party.expect(&[0]);
        party.expect(&[1]);
        party.expect(&[2]);
        party.expect_end();
        party.end();
    });
}

#[test]
fn two_workers_hand_their_steps_over_in_order() {
    for (slots, end) in [(1, 3), (2, 2)] {
        in_every_order(2, move || {
            let party = Party::of(2, slots, end);
            (0..end).for_each(|step| party.expect(&[step]));
            party.expect_end();
            party.end();
        });
    }
}

#[test]
fn workers_that_wait_for_bytes_go_on_in_their_turn() {
    for (max_bytes, end, preemptions) in [(0, 2, 2), (8, 3, 1)] {
        in_every_order(preemptions, move || {
            let party = Party::with(2, 2, max_bytes, end, |_| Ok(()));
            (0..end).for_each(|step| party.expect(&[step]));
            party.expect_end();
            assert_eq!(party.workers.depth().peak_bytes, 8, "no two batches fit under the cap");
            party.end();
        });
    }
}

#[test]
fn the_room_that_one_take_makes_wakes_both_workers() {
    in_every_order(2, || {
        let ring = Arc::new(Ring::new(2, 4, u64::MAX, (), 0, 10));
        for step in 0..4 {
            let ticket = ring.grant(ring.claim().unwrap().ticket, 8).unwrap();
            ring.deliver(ticket, step);
        }
        let threads: Vec<_> = (0..2)
            .map(|_| {
                let ring = Arc::clone(&ring);
                spawn(move || drop(ring.claim().unwrap()))
            })
            .collect();
        // A full queue is drained to half before anybody is woken, and then one worker only.
        assert_eq!((ring.take(), ring.take()), (Take::Step(0), Take::Step(1)));
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn a_drop_at_any_moment_ends_workers_that_work_and_that_wait() {
    for (workers, slots, max_bytes, taken) in
        [(1, 2, 0, 0), (2, 1, u64::MAX, 0), (2, 2, 8, 0), (2, 1, u64::MAX, 1)]
    {
        in_every_order(2, move || {
            let party = Party::with(workers, slots, max_bytes, RECORDS, |_| Ok(()));
            for step in 0..taken {
                party.expect(&[step]);
            }
            party.end();
        });
    }
}

#[test]
fn a_drop_that_cannot_wait_leaves_workers_that_end_by_themselves() {
    in_every_order(2, || {
        let party = Party::of(2, 1, RECORDS);
        party.expect(&[0]);
        party.workers.ring.close(Duration::ZERO);
        for thread in party.threads {
            thread.join().unwrap();
        }
        assert!(party.workers.ring.is_deserted());
    });
}

#[test]
fn a_seek_at_any_moment_delivers_the_new_course_only() {
    for (workers, slots, max_bytes) in [(1, 1, u64::MAX), (1, 2, 8), (2, 1, u64::MAX)] {
        in_every_order(2, move || {
            let party = Party::with(workers, slots, max_bytes, RECORDS, |_| Ok(()));
            party.expect(&[0]);
            party.workers.seek(pairs(), 1, 2);
            party.expect(&[2, 3]);
            party.expect_end();
            party.end();
        });
    }
}

#[test]
fn a_seek_wakes_workers_that_had_come_to_the_end() {
    in_every_order(2, || {
        let party = Party::of(2, 2, 1);
        party.expect(&[0]);
        party.expect_end();
        party.workers.seek(singles(), 4, 5);
        party.expect(&[4]);
        party.expect_end();
        party.end();
    });
}

#[test]
fn a_step_that_fails_or_panics_is_delivered_in_its_turn() {
    let error = |batch: &Batch| match batch.step() {
        0 => Err(Error::corrupt("gone")),
        _ => Ok(()),
    };
    let panic = |batch: &Batch| match batch.step() {
        // As a panic, without the report that the hook would print for every order.
        0 => std::panic::resume_unwind(Box::new("shaken")),
        _ => Ok(()),
    };
    for (transform, kind) in
        [(error as fn(&Batch) -> Result<()>, ErrorKind::Corrupt), (panic, ErrorKind::Panicked)]
    {
        in_every_order(2, move || {
            let party = Party::with(2, 2, u64::MAX, 2, transform);
            assert_eq!(party.workers.next().unwrap().result.unwrap_err().kind(), kind);
            party.expect(&[1]);
            party.expect_end();
            party.end();
        });
    }
}

/// As a worker whose thread unwinds between its claim and its delivery.
fn spawn_one_that_dies(party: &Party) -> thread::JoinHandle<()> {
    let presence = party.presence();
    spawn(move || {
        let claimed = presence.ring.claim();
        drop(presence);
        drop(claimed);
    })
}

#[test]
fn a_worker_that_dies_with_the_only_step_is_an_error_and_no_endless_wait() {
    in_every_order(3, || {
        let mut party = Party::of(0, 1, 3);
        party.threads.push(spawn_one_that_dies(&party));
        assert_eq!(party.workers.next().unwrap().result.unwrap_err().kind(), ErrorKind::Closed);
        party.end();
    });
}

#[test]
fn a_worker_that_dies_beside_another_lets_the_consumer_take_what_is_there() {
    in_every_order(2, || {
        let mut party = Party::of(1, 2, 3);
        party.threads.push(spawn_one_that_dies(&party));
        let mut next = 0;
        let end = loop {
            match party.workers.next().map(|delivery| delivery.result) {
                Some(Ok(records)) => assert_eq!(records, [next]),
                Some(Err(error)) => break Some(error.kind()),
                None => break None,
            }
            next += 1;
        };
        // The one that dies may also come too late for a step, at the end of the course.
        assert_eq!(end, if next == 3 { None } else { Some(ErrorKind::Closed) });
        party.end();
    });
}

//! Walks through every interleaving of small hand-overs.
//!
//! Each thread is a little program counter; each of its moves is one critical section, or falling asleep, or being
//! woken, as in `Ring`. A thread that sleeps moves again only when a [`Wake`] says so, so a wake that is missing
//! shows as a state in which nobody can move. Both outcomes of a `notify_one` are followed.

use std::collections::HashSet;

use super::{Claim, Grant, Protocol, Take, Ticket, Wake, Who};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Worker {
    Claiming,
    AsleepClaiming,
    Asking(Ticket, u64),
    AsleepAsking(Ticket, u64),
    Working(Ticket, u64),
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Order {
    /// Take a step and expect this one.
    Take(u64),
    /// Take and expect the end.
    End,
    Seek(u64),
    Close,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    protocol: Protocol<(u64, u64)>,
    /// Which course the steps belong to: the number of seeks.
    course: u64,
    workers: Vec<Worker>,
    done: usize,
    consumer_sleeps: bool,
    /// Bytes of the batches that really exist: being gathered or queued.
    held: Vec<u64>,
}

struct Case {
    slots: usize,
    limit: u64,
    end: u64,
    sizes: &'static [u64],
    orders: &'static [Order],
}

impl Case {
    fn size(&self, step: u64) -> u64 {
        self.sizes[usize::try_from(step).unwrap() % self.sizes.len()]
    }

    /// Visits every reachable state; returns how many there are.
    fn explore(&self, workers: usize) -> usize {
        let first = World {
            protocol: Protocol::new(self.slots, self.limit, 0, self.end),
            course: 0,
            workers: vec![Worker::Claiming; workers],
            done: 0,
            consumer_sleeps: false,
            held: Vec::new(),
        };
        let mut seen = HashSet::from([first.clone()]);
        let mut open = vec![first];
        while let Some(world) = open.pop() {
            self.check(&world);
            let next = self.moves(&world);
            let finished =
                world.done == self.orders.len() && world.workers.iter().all(|worker| *worker == Worker::Gone);
            assert!(finished || !next.is_empty(), "nobody can move: {world:?}");
            for world in next {
                if seen.insert(world.clone()) {
                    open.push(world);
                }
            }
        }
        seen.len()
    }

    fn check(&self, world: &World) {
        let held: u64 = world.held.iter().sum();
        assert!(
            held <= self.limit || world.held.iter().filter(|&&bytes| bytes > 0).count() <= 1,
            "{world:?}"
        );
        assert_eq!(held, world.protocol.bytes(), "{world:?}");
        assert!(world.protocol.ready() <= self.slots);
        // Nobody sleeps on bytes that are there: that would not hang, but leave a worker idle.
        for worker in &world.workers {
            if let Worker::AsleepAsking(ticket, _) = worker {
                let bytes = self.size(ticket.step());
                assert_eq!(
                    world.protocol.clone().grant(&mut ticket.clone(), bytes).0,
                    Grant::Wait,
                    "{world:?}"
                );
            }
        }
    }

    fn moves(&self, world: &World) -> Vec<World> {
        let mut next = Vec::new();
        for number in 0..world.workers.len() {
            next.extend(self.work(world, number));
        }
        if !world.consumer_sleeps && world.done < self.orders.len() {
            next.extend(self.consume(world));
        }
        next
    }

    fn work(&self, before: &World, number: usize) -> Vec<World> {
        let mut world = before.clone();
        match before.workers[number].clone() {
            Worker::AsleepClaiming | Worker::AsleepAsking(..) | Worker::Gone => Vec::new(),
            Worker::Claiming => {
                let (answer, wake) = world.protocol.claim();
                world.workers[number] = match answer {
                    Claim::Step(ticket) => Worker::Asking(ticket, world.course),
                    Claim::Closed => Worker::Gone,
                    Claim::Wait => {
                        world.protocol.idle_claimers += 1;
                        Worker::AsleepClaiming
                    }
                };
                world.woken(wake)
            }
            Worker::Asking(mut ticket, course) => {
                let bytes = self.size(ticket.step());
                let (answer, wake) = world.protocol.grant(&mut ticket, bytes);
                world.workers[number] = match answer {
                    Grant::Granted => {
                        world.held.push(bytes);
                        world.held.sort_unstable();
                        Worker::Working(ticket, course)
                    }
                    Grant::Stale => Worker::Claiming,
                    Grant::Closed => Worker::Gone,
                    Grant::Wait => {
                        world.protocol.idle_granters += 1;
                        Worker::AsleepAsking(ticket, course)
                    }
                };
                world.woken(wake)
            }
            Worker::Working(ticket, course) => {
                let step = ticket.step();
                let (refused, wake) = world.protocol.deliver(ticket, (course, step));
                if refused.is_some() {
                    world.release(self.size(step));
                }
                world.workers[number] = Worker::Claiming;
                world.woken(wake)
            }
        }
    }

    fn consume(&self, before: &World) -> Vec<World> {
        let mut world = before.clone();
        match self.orders[before.done] {
            order @ (Order::Take(_) | Order::End) => {
                let (answer, wake) = world.protocol.take();
                match answer {
                    Take::Step((course, step)) => {
                        assert_eq!(order, Order::Take(step), "out of order: {before:?}");
                        assert_eq!(course, world.course, "a step of another course: {before:?}");
                        world.release(self.size(step));
                        world.done += 1;
                    }
                    Take::End => {
                        assert_eq!(order, Order::End);
                        world.done += 1;
                    }
                    Take::Wait => {
                        world.protocol.idle_consumer = true;
                        world.consumer_sleeps = true;
                    }
                    Take::Lost => panic!("nobody died: {before:?}"),
                }
                world.woken(wake)
            }
            Order::Seek(step) => {
                let (thrown, wake) = world.protocol.seek(step, self.end);
                for (_, step) in thrown {
                    world.release(self.size(step));
                }
                world.course += 1;
                world.done += 1;
                world.woken(wake)
            }
            Order::Close => {
                let wake = world.protocol.close();
                world.done += 1;
                // What is queued goes with the ring; only the workers matter from here on.
                world.woken(wake)
            }
        }
    }
}

impl World {
    fn release(&mut self, bytes: u64) {
        let place = self.held.iter().position(|&held| held == bytes).expect("freed what was never held");
        self.held.remove(place);
    }

    /// The worlds that a wake leads to: one for each sleeper that a `notify_one` may choose.
    fn woken(mut self, wake: Wake) -> Vec<Self> {
        if wake.consumer && self.consumer_sleeps {
            self.consumer_sleeps = false;
            self.protocol.idle_consumer = false;
        }
        if wake.granters {
            for worker in &mut self.workers {
                if let Worker::AsleepAsking(ticket, course) = worker {
                    *worker = Worker::Asking(ticket.clone(), *course);
                    self.protocol.idle_granters -= 1;
                }
            }
        }
        let sleepers: Vec<usize> = (0..self.workers.len())
            .filter(|&number| self.workers[number] == Worker::AsleepClaiming)
            .collect();
        match wake.claimers {
            Who::One if !sleepers.is_empty() => sleepers
                .into_iter()
                .map(|number| {
                    let mut world = self.clone();
                    world.workers[number] = Worker::Claiming;
                    world.protocol.idle_claimers -= 1;
                    world
                })
                .collect(),
            Who::All => {
                for number in sleepers {
                    self.workers[number] = Worker::Claiming;
                    self.protocol.idle_claimers -= 1;
                }
                vec![self]
            }
            Who::One | Who::Nobody => vec![self],
        }
    }
}

#[test]
fn every_interleaving_delivers_all_steps_in_order_and_ends() {
    use Order::{Close, Take};
    const TAKES: [Order; 6] = [Take(0), Take(1), Take(2), Take(3), Take(4), Close];
    let mut states = 0;
    for workers in 1..=3 {
        for slots in 1..=4 {
            // Sizes below, at and above the cap; a cap of 0 lets one batch at a time pass.
            for (limit, sizes) in [
                (9, &[1_u64][..]),
                (4, &[3, 1, 5, 2]),
                (4, &[5]),
                (0, &[1, 2]),
                (2, &[0, 2, 1]),
                (4, &[2, 2, 3]),
            ] {
                states += Case { slots, limit, end: u64::MAX, sizes, orders: &TAKES }.explore(workers);
            }
        }
    }
    assert!(states > 10_000, "only {states} states were visited");
}

#[test]
fn every_interleaving_of_a_seek_delivers_the_steps_of_the_new_course_only() {
    use Order::{Close, Seek, Take};
    const FORTH: [Order; 6] = [Take(0), Take(1), Seek(7), Take(7), Take(8), Close];
    const BACK: [Order; 6] = [Take(0), Take(1), Seek(1), Take(1), Take(2), Close];
    const TWICE: [Order; 6] = [Take(0), Seek(5), Seek(0), Take(0), Take(1), Close];
    let mut states = 0;
    for orders in [&FORTH, &BACK, &TWICE] {
        for workers in 1..=2 {
            for slots in 1..=3 {
                for (limit, sizes) in [(9, &[1_u64][..]), (4, &[3, 1, 5, 2]), (4, &[5])] {
                    states += Case { slots, limit, end: u64::MAX, sizes, orders }.explore(workers);
                }
            }
        }
    }
    assert!(states > 10_000, "only {states} states were visited");
}

#[test]
fn every_interleaving_of_a_finite_course_ends_and_can_be_started_again() {
    use Order::{Close, End, Seek, Take};
    const ORDERS: [Order; 9] = [Take(0), Take(1), Take(2), End, End, Seek(2), Take(2), End, Close];
    let mut states = 0;
    for workers in 1..=3 {
        for slots in 1..=3 {
            for (limit, sizes) in [(9, &[1_u64][..]), (4, &[3, 1, 5])] {
                states += Case { slots, limit, end: 3, sizes, orders: &ORDERS }.explore(workers);
            }
        }
    }
    assert!(states > 1_000, "only {states} states were visited");
}

#[test]
fn a_close_at_any_moment_ends_every_worker() {
    const ORDERS: [&[Order]; 3] =
        [&[Order::Close], &[Order::Take(0), Order::Close], &[Order::Take(0), Order::Seek(9), Order::Close]];
    for orders in ORDERS {
        for workers in 1..=3 {
            for slots in 1..=3 {
                Case { slots, limit: 3, end: u64::MAX, sizes: &[2, 1, 4], orders }.explore(workers);
            }
        }
    }
}

#[test]
fn the_last_step_of_all_is_delivered_and_nothing_overflows() {
    let mut protocol = Protocol::new(4, 10, u64::MAX - 2, u64::MAX);
    let mut tickets = Vec::new();
    while let (Claim::Step(mut ticket), _) = protocol.claim() {
        assert_eq!(protocol.grant(&mut ticket, 1).0, Grant::Granted);
        tickets.push(ticket);
    }
    assert_eq!(tickets.len(), 2);
    for ticket in tickets.into_iter().rev() {
        let step = ticket.step();
        assert_eq!(protocol.deliver(ticket, step).0, None);
    }
    assert_eq!(protocol.take().0, Take::Step(u64::MAX - 2));
    assert_eq!(protocol.take().0, Take::Step(u64::MAX - 1));
    assert_eq!(protocol.take().0, Take::End);
    assert_eq!(protocol.bytes(), 0);
}

#[test]
fn a_dead_worker_is_reported_once_what_it_left_is_taken() {
    let mut protocol = Protocol::new(4, 10, 0, u64::MAX);
    let (Claim::Step(mut first), _) = protocol.claim() else { panic!("there is room") };
    let (Claim::Step(_dies), _) = protocol.claim() else { panic!("there is room") };
    assert_eq!(protocol.grant(&mut first, 1).0, Grant::Granted);
    assert_eq!(protocol.deliver(first, 0_u64).0, None);
    assert!(protocol.lose().consumer);
    assert_eq!(protocol.take().0, Take::Step(0));
    assert_eq!(protocol.take().0, Take::Lost);
}

#[test]
fn a_worker_that_leaves_room_behind_wakes_the_next() {
    // Without it every step would be delivered all the same, by fewer workers than there are.
    let mut protocol = Protocol::<u64>::new(4, u64::MAX, 0, 10);
    let mut claimers_woken = |idle| {
        protocol.idle_claimers = idle;
        protocol.claim().1.claimers
    };
    assert_eq!(claimers_woken(2), Who::One);
    assert_eq!(claimers_woken(0), Who::Nobody, "nobody sleeps");
    assert_eq!(claimers_woken(1), Who::One);
    assert_eq!(claimers_woken(1), Who::Nobody, "that was the last slot");
}

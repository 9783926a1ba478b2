//! The hand-over with threads: [`Protocol`] behind a lock, and the waiting and waking that it asks for.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::protocol::{Claim, Grant, Protocol, Take, Ticket, Wake, Who};
use super::sync::{
    AtomicBool, Condvar, Instant, Mutex, MutexGuard, READS_A_ROUND, available_parallelism, spin_loop,
};

/// How long the consumer looks for its step before it sleeps, where a core is left for it: waking a sleeping thread
/// costs both sides some 15 us, so this much is never wasted for long.
const LOOK: Duration = Duration::from_micros(60);

/// How long it looks where the workers need every core, or where the last step took longer than a look.
const GLANCE: Duration = Duration::from_micros(1);

/// An ordered queue of finished steps with many producers and one consumer.
///
/// `C` is the course that the steps belong to, replaced by every [`Ring::seek`]; workers keep a clone of it.
#[derive(Debug)]
pub(super) struct Ring<C, T> {
    state: Mutex<State<C, T>>,
    /// A hint for the spinning consumer; the truth is behind the lock.
    head_is_ready: AtomicBool,
    spare: Spare,
    /// Whether the consumer's last wait was much longer than a look: the next will be too.
    slow: AtomicBool,
    consumer: Condvar,
    claimers: Condvar,
    granters: Condvar,
    gone: Condvar,
}

#[derive(Debug)]
struct State<C, T> {
    protocol: Protocol<T>,
    course: C,
    workers: usize,
    peak_bytes: u64,
    /// Time that workers slept because the consumer had enough.
    starved: Duration,
}

/// What the consumer may spend on looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spare {
    /// One core: nothing can happen while the consumer looks.
    Nothing,
    /// The workers use every core.
    Little,
    /// There is a core that no worker uses.
    Core,
}

/// What a ring looks like at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Depth {
    pub(super) ready: usize,
    pub(super) bytes: u64,
    pub(super) peak_bytes: u64,
    pub(super) starved: Duration,
}

/// A claimed step and its course.
#[derive(Debug)]
pub(super) struct Claimed<C> {
    pub(super) ticket: Ticket,
    pub(super) course: C,
}

impl<C: Clone, T> Ring<C, T> {
    /// A ring for `producers` workers.
    pub(super) fn new(
        producers: usize,
        slots: usize,
        byte_limit: u64,
        course: C,
        start: u64,
        end: u64,
    ) -> Self {
        let protocol = Protocol::new(slots, byte_limit, start, end);
        let spare = match available_parallelism().map_or(1, usize::from) {
            1 => Spare::Nothing,
            cores if producers < cores => Spare::Core,
            _ => Spare::Little,
        };
        Self {
            head_is_ready: AtomicBool::new(protocol.head_is_ready()),
            state: Mutex::new(State { protocol, course, workers: 0, peak_bytes: 0, starved: Duration::ZERO }),
            spare,
            slow: AtomicBool::new(false),
            consumer: Condvar::new(),
            claimers: Condvar::new(),
            granters: Condvar::new(),
            gone: Condvar::new(),
        }
    }

    /// No code of users runs under this lock, so a panic of theirs cannot leave it half changed.
    fn lock(&self) -> MutexGuard<'_, State<C, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self, wake: Wake) {
        if wake.consumer {
            self.consumer.notify_one();
        }
        match wake.claimers {
            Who::Nobody => {}
            Who::One => self.claimers.notify_one(),
            Who::All => self.claimers.notify_all(),
        }
        if wake.granters {
            self.granters.notify_all();
        }
    }

    /// Waits for a step to work on; `None` when the ring is closed.
    pub(super) fn claim(&self) -> Option<Claimed<C>> {
        let mut state = self.lock();
        let mut since: Option<Instant> = None;
        loop {
            let (answer, wake) = state.protocol.claim();
            match answer {
                Claim::Closed => return None,
                Claim::Step(ticket) => {
                    if let Some(since) = since {
                        state.starved += since.elapsed();
                    }
                    let course = state.course.clone();
                    drop(state);
                    self.wake(wake);
                    return Some(Claimed { ticket, course });
                }
                Claim::Wait => {
                    since.get_or_insert_with(Instant::now);
                    state.protocol.idle_claimers += 1;
                    state = self.claimers.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.protocol.idle_claimers -= 1;
                }
            }
        }
    }

    /// Waits until the step of `ticket` may hold `bytes`; `None` when it is not wanted any more.
    pub(super) fn grant(&self, mut ticket: Ticket, bytes: u64) -> Option<Ticket> {
        let mut state = self.lock();
        let mut since: Option<Instant> = None;
        loop {
            let (answer, wake) = state.protocol.grant(&mut ticket, bytes);
            match answer {
                Grant::Granted => {
                    if let Some(since) = since {
                        state.starved += since.elapsed();
                    }
                    state.peak_bytes = state.peak_bytes.max(state.protocol.bytes());
                    drop(state);
                    self.wake(wake);
                    return Some(ticket);
                }
                Grant::Stale | Grant::Closed => return None,
                Grant::Wait => {
                    since.get_or_insert_with(Instant::now);
                    state.protocol.idle_granters += 1;
                    state = self.granters.wait(state).unwrap_or_else(PoisonError::into_inner);
                    state.protocol.idle_granters -= 1;
                }
            }
        }
    }

    /// Hands a finished step over.
    pub(super) fn deliver(&self, ticket: Ticket, value: T) {
        let mut state = self.lock();
        let (unwanted, wake) = state.protocol.deliver(ticket, value);
        self.head_is_ready.store(state.protocol.head_is_ready(), Ordering::Release);
        drop(state);
        self.wake(wake);
        drop(unwanted);
    }

    /// Waits for the step at the head and takes it.
    pub(super) fn take(&self) -> Take<T> {
        let since = (!self.head_is_ready.load(Ordering::Acquire)).then(Instant::now);
        if let Some(since) = since {
            self.look(since);
        }
        let mut state = self.lock();
        loop {
            let (answer, wake) = state.protocol.take();
            if answer_is_wait(&answer) {
                state.protocol.idle_consumer = true;
                state = self.consumer.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.protocol.idle_consumer = false;
                continue;
            }
            self.head_is_ready.store(state.protocol.head_is_ready(), Ordering::Release);
            drop(state);
            self.wake(wake);
            if let Some(since) = since {
                self.slow.store(is_slow(since.elapsed()), Ordering::Relaxed);
            }
            return answer;
        }
    }

    /// Looks for the head's step for a while, so that a step which comes soon finds the consumer awake.
    fn look(&self, since: Instant) {
        let Some(patience) = patience(self.spare, self.slow.load(Ordering::Relaxed)) else { return };
        loop {
            for _ in 0..READS_A_ROUND {
                if self.head_is_ready.load(Ordering::Acquire) {
                    return;
                }
                spin_loop();
            }
            if since.elapsed() >= patience {
                return;
            }
        }
    }

    /// Throws away what is queued and goes on with the steps `start..end` of `course`.
    pub(super) fn seek(&self, course: C, start: u64, end: u64) {
        let mut state = self.lock();
        let (unwanted, wake) = state.protocol.seek(start, end);
        let old = std::mem::replace(&mut state.course, course);
        self.head_is_ready.store(state.protocol.head_is_ready(), Ordering::Release);
        drop(state);
        self.wake(wake);
        drop((unwanted, old));
    }

    /// Notes a worker that starts.
    pub(super) fn enter(&self) {
        self.lock().workers += 1;
    }

    /// Notes a worker that ends; `lost` when it dies with a step that the consumer may wait for.
    pub(super) fn leave(&self, lost: bool) {
        let mut state = self.lock();
        state.workers = state.workers.saturating_sub(1);
        let wake = if lost { state.protocol.lose() } else { Wake::default() };
        self.head_is_ready.store(state.protocol.head_is_ready(), Ordering::Release);
        drop(state);
        self.wake(wake);
        self.gone.notify_all();
    }

    /// Tells the workers to end and waits for them, at most `patience`.
    pub(super) fn close(&self, patience: Duration) {
        let mut state = self.lock();
        let wake = state.protocol.close();
        drop(state);
        self.wake(wake);
        state = self.lock();
        let (state, _) = self
            .gone
            .wait_timeout_while(state, patience, |state| state.workers > 0)
            .unwrap_or_else(PoisonError::into_inner);
        drop(state);
    }

    /// Whether every worker has ended.
    pub(super) fn is_deserted(&self) -> bool {
        self.lock().workers == 0
    }

    pub(super) fn depth(&self) -> Depth {
        let state = self.lock();
        Depth {
            ready: state.protocol.ready(),
            bytes: state.protocol.bytes(),
            peak_bytes: state.peak_bytes,
            starved: state.starved,
        }
    }
}

fn answer_is_wait<T>(answer: &Take<T>) -> bool {
    matches!(answer, Take::Wait)
}

/// How long the consumer looks before it sleeps; `slow`: its last wait was a slow one.
fn patience(spare: Spare, slow: bool) -> Option<Duration> {
    match (spare, slow) {
        (Spare::Nothing, _) => None,
        (Spare::Core, false) => Some(LOOK),
        _ => Some(GLANCE),
    }
}

/// Whether after a wait of this long the next one, too, will be longer than a look.
fn is_slow(waited: Duration) -> bool {
    waited > 2 * LOOK
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn ring(slots: usize) -> Ring<(), u64> {
        Ring::new(1, slots, u64::MAX, (), 0, 100_000)
    }

    /// What a worker does for one step.
    fn work(ring: &Ring<(), u64>) {
        let ticket = ring.grant(ring.claim().unwrap().ticket, 8).unwrap();
        let step = ticket.step();
        ring.deliver(ticket, step);
    }

    fn flag(ring: &Ring<(), u64>) -> bool {
        ring.head_is_ready.load(Ordering::Acquire)
    }

    #[test]
    fn the_flag_says_after_every_change_whether_a_take_would_wait() {
        let ring = ring(2);
        assert!(!flag(&ring), "nothing is there");
        work(&ring);
        assert!(flag(&ring), "a step was delivered");
        work(&ring);
        assert_eq!(ring.take(), Take::Step(0));
        assert!(flag(&ring), "another is behind the one that was taken");
        assert_eq!(ring.take(), Take::Step(1));
        assert!(!flag(&ring), "the last was taken");
        work(&ring);
        ring.seek((), 7, 9);
        assert!(!flag(&ring), "a seek threw away what was there");
        ring.seek((), 9, 9);
        assert!(flag(&ring), "the end is there at once");
        ring.seek((), 0, 9);
        ring.leave(true);
        assert!(flag(&ring), "a lost step is not waited for");
    }

    #[test]
    fn the_consumer_looks_long_only_where_a_core_is_left_and_the_last_wait_was_short() {
        assert_eq!(patience(Spare::Nothing, false), None);
        assert_eq!(patience(Spare::Core, false), Some(LOOK));
        assert_eq!(patience(Spare::Core, true), Some(GLANCE));
        assert_eq!(patience(Spare::Little, false), Some(GLANCE));
        assert!(!is_slow(LOOK) && is_slow(3 * LOOK));
    }

    #[test]
    fn a_long_wait_is_remembered_until_a_short_one() {
        let ring = ring(1);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ring.lock().protocol.idle_consumer {
                    thread::yield_now();
                }
                thread::sleep(20 * LOOK);
                work(&ring);
            });
            assert_eq!(ring.take(), Take::Step(0));
        });
        assert!(ring.slow.load(Ordering::Relaxed), "the consumer had slept for 20 looks");
        work(&ring);
        assert_eq!(ring.take(), Take::Step(1));
        assert!(ring.slow.load(Ordering::Relaxed), "a take that does not wait says nothing of waits");
        // With the flag hidden a take looks in vain, and finds the step behind the lock: a short wait, unless this
        // thread happens to lose its core just then.
        let forgotten = (2..1000).any(|step| {
            work(&ring);
            ring.head_is_ready.store(false, Ordering::Release);
            assert_eq!(ring.take(), Take::Step(step));
            !ring.slow.load(Ordering::Relaxed)
        });
        assert!(forgotten, "a short wait makes the next look long again");
    }
}

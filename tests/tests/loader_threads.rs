//! Threads: as many as asked for, none left behind, never one that waits for ever; memory in flight has a cap.
//!
//! These tests count threads, so each runs alone: one process a test under nextest, and a lock for the plain harness.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use loaderx_core::sampler::{Pass, Sequential};
use loaderx_core::view::{Column, Request, Source};
use loaderx_core::{Batch, Loader, Result};
use loaderx_tests::loading::{Faulty, Numbers, threads_of_this_test as threads};

static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A drop has to end sooner than this; the promise is 100 ms, the rest is room for a busy machine.
const SOON: Duration = Duration::from_millis(1000);

/// Waits until the process has `expected` threads again.
fn settle(expected: usize) {
    let since = Instant::now();
    while threads() != expected {
        assert!(since.elapsed() < Duration::from_secs(10), "{} threads, expected {expected}", threads());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn over(source: impl Source + 'static) -> loaderx_core::loader::LoaderBuilder {
    Loader::builder().stream("x", source).sampler(Sequential::new(40, 4).unwrap())
}

#[test]
fn a_loader_has_the_threads_asked_for_and_leaves_none() {
    let _alone = alone();
    let before = threads();
    for workers in [0, 1, 2, 7] {
        let mut loader = over(Numbers::new(40)).workers(workers).build().unwrap();
        assert_eq!(loader.workers(), workers);
        settle(before + workers);
        for _ in 0..10 {
            loader.next().unwrap().unwrap();
        }
        for batch in loader.pass(3).unwrap() {
            batch.unwrap();
        }
        loader.seek(9);
        loader.next().unwrap().unwrap();
        settle(before + workers);
        drop(loader);
        settle(before);
    }
}

#[test]
fn a_drop_at_any_state_ends_soon() {
    let _alone = alone();
    let before = threads();
    let ends_soon = |loader: Loader, what: &str| {
        let since = Instant::now();
        drop(loader);
        assert!(since.elapsed() < SOON, "dropping a loader {what} took {:?}", since.elapsed());
        settle(before);
    };
    for workers in [0, 1, 2, 7] {
        for prefetch in [1, 2, 16] {
            let fast = || over(Numbers::new(40)).workers(workers).prefetch(prefetch).build().unwrap();
            ends_soon(fast(), "that was just made");

            let mut loader = fast();
            (&mut loader).take(5).for_each(|batch| drop(batch.unwrap()));
            ends_soon(loader, "in the middle of a run");

            let loader = fast();
            while workers > 0 && loader.stats().queued < prefetch {
                std::thread::yield_now();
            }
            ends_soon(loader, "with a full queue");

            let mut loader = fast();
            loader.seek(1_000_000_000);
            ends_soon(loader, "right after a seek");

            let mut loader = fast();
            loader.pass(7).unwrap().next().unwrap().unwrap();
            ends_soon(loader, "after half a pass");

            let mut loader = over(Numbers::new(40)).sampler(Pass::new(40, 9).unwrap()).workers(workers);
            loader = loader.prefetch(prefetch);
            let mut loader = loader.build().unwrap();
            assert_eq!((&mut loader).count(), 5);
            ends_soon(loader, "at its end");

            let capped = over(Numbers::new(40)).workers(workers).prefetch(prefetch).max_bytes(0);
            ends_soon(capped.build().unwrap(), "whose workers wait for bytes");

            let failing = Faulty::new(40, |_| panic!("shaken"));
            let mut loader = over(failing).workers(workers).prefetch(prefetch).build().unwrap();
            assert!(loader.next().unwrap().is_err());
            ends_soon(loader, "after a panic");

            let slow = over(Faulty::slow(40, Duration::from_millis(20))).workers(workers).prefetch(prefetch);
            ends_soon(slow.build().unwrap(), "whose workers are busy");
        }
    }
}

#[test]
fn a_drop_does_not_wait_for_a_transform_that_takes_long() {
    let _alone = alone();
    let before = threads();
    let (release, gate) = std::sync::mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let started = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&started);
    let loader = over(Numbers::new(40))
        .workers(1)
        .transform(move |batch: Batch| -> Result<u64> {
            counter.fetch_add(1, Ordering::SeqCst);
            // Until the test lets go, long after the drop.
            let _ = gate.lock().unwrap().recv();
            Ok(batch.step())
        })
        .build()
        .unwrap();
    while started.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let since = Instant::now();
    drop(loader);
    assert!(since.elapsed() < SOON, "the drop took {:?}", since.elapsed());
    assert_eq!(threads(), before + 1);
    drop(release);
    settle(before);
    assert_eq!(started.load(Ordering::SeqCst), 1, "no further step may start after the drop");
}

/// Counts the bytes of batches that are gathered and not yet handed to the training loop.
struct Metered {
    numbers: Numbers,
    sizes: &'static [u64],
    held: Arc<AtomicU64>,
    peak: Arc<AtomicU64>,
    batches: Arc<AtomicU64>,
}

impl Metered {
    fn size(&self, indices: &[u64]) -> u64 {
        indices.iter().map(|&index| self.sizes[usize::try_from(index).unwrap() % self.sizes.len()]).sum()
    }
}

impl Source for Metered {
    fn len(&self) -> u64 {
        self.numbers.len()
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        let size = self.size(request.indices);
        let held = self.held.fetch_add(size, Ordering::SeqCst) + size;
        self.batches.fetch_add(1, Ordering::SeqCst);
        self.peak.fetch_max(held, Ordering::SeqCst);
        std::thread::sleep(Duration::from_micros(100));
        self.numbers.gather(request)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        Ok(self.size(indices))
    }

    fn describe(&self) -> String {
        "metered".into()
    }
}

#[test]
fn bytes_in_flight_stay_under_the_cap_and_a_batch_above_it_passes_alone() {
    let _alone = alone();
    for (cap, sizes) in
        [(10, &[1_u64, 2, 3, 4][..]), (10, &[10, 1, 1, 30, 2, 5, 0, 0]), (10, &[50, 60, 70]), (0, &[1, 0, 2])]
    {
        for workers in [1, 2, 7] {
            let (held, peak, batches) = (Arc::default(), Arc::default(), Arc::default());
            let source = Metered {
                numbers: Numbers::new(24),
                sizes,
                held: Arc::clone(&held),
                peak: Arc::clone(&peak),
                batches: Arc::clone(&batches),
            };
            let mut loader = Loader::builder()
                .stream("x", source)
                .sampler(Sequential::new(24, 1).unwrap())
                .workers(workers)
                .prefetch(16)
                .max_bytes(cap)
                .build()
                .unwrap();
            for step in 0..60_u64 {
                // Time for the workers to go as far as they may.
                std::thread::sleep(Duration::from_micros(300));
                // The loop holds this batch from here on: it left the queue, so it is not counted any more.
                let bytes = sizes[usize::try_from(step % 24).unwrap() % sizes.len()];
                let batch = loader.next().unwrap().unwrap();
                held.fetch_sub(bytes, Ordering::SeqCst);
                assert_eq!(batch.step(), step);
                let stats = loader.stats();
                assert!(stats.bytes_in_flight <= stats.peak_bytes_in_flight);
                let largest = sizes.iter().copied().max().unwrap();
                assert!(
                    stats.peak_bytes_in_flight <= cap.max(largest),
                    "{} bytes were in flight, the cap is {cap}",
                    stats.peak_bytes_in_flight
                );
            }
            assert!(batches.load(Ordering::SeqCst) >= 60);
            // The source's own count sees a batch until the loop has subtracted it: one more at most.
            let largest = sizes.iter().copied().max().unwrap();
            assert!(peak.load(Ordering::SeqCst) <= cap.max(largest) + largest);
        }
    }
}

#[test]
fn a_loader_can_be_sent_to_another_thread_and_shared_for_its_numbers() {
    let _alone = alone();
    let mut loader = over(Numbers::new(40)).workers(2).build().unwrap();
    loader.next().unwrap().unwrap();
    let shared = &loader;
    let step = std::thread::scope(|scope| scope.spawn(move || shared.state().step()).join().unwrap());
    assert_eq!(step, 1);
    let next = std::thread::spawn(move || loader.next().unwrap().unwrap().step()).join().unwrap();
    assert_eq!(next, 1);
}

#[test]
fn statistics_count_what_was_delivered() {
    let _alone = alone();
    for workers in [0, 2] {
        let mut loader = over(Faulty::slow(40, Duration::from_millis(2))).workers(workers).build().unwrap();
        for _ in 0..10 {
            loader.next().unwrap().unwrap();
        }
        let stats = loader.stats();
        assert_eq!((stats.batches, stats.records, stats.bytes, stats.errors), (10, 40, 320, 0));
        assert!(stats.waiting_for_data > Duration::ZERO && stats.waiting_for_data <= stats.elapsed);
        assert!(stats.waiting_share() > 0.0 && stats.waiting_share() <= 1.0);
        assert!(stats.records_per_second() > 0.0 && stats.bytes_per_second() > 0.0);
    }
}

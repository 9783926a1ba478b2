//! What is left out of a batch under `OnDamage::Skip`, what is not, and sources and panics that misbehave further.
#![forbid(unsafe_code)]

use std::ops::Range;
use std::sync::{Arc, Mutex, mpsc};

use loaderx_core::loader::LoaderBuilder;
use loaderx_core::sampler::{Sampler, Sequential};
use loaderx_core::view::{Column, Request, Source};
use loaderx_core::{Batch, Error, ErrorKind, Loader, OnDamage, Result};
use loaderx_tests::loading::{Faulty, Numbers, numbers};

const WORKERS: [usize; 2] = [0, 2];

fn skipping(source: impl Source + 'static) -> LoaderBuilder {
    let builder = Loader::builder().stream("x", source).sampler(Sequential::new(40, 4).unwrap());
    builder.on_damage(OnDamage::Skip)
}

fn skipped(batch: &Batch) -> Vec<u64> {
    batch.skipped().iter().map(|skipped| skipped.record).collect()
}

/// A source in which the length of record 5 is damaged as well.
struct DamagedLength(Faulty);

impl Source for DamagedLength {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        self.0.gather(request)
    }

    fn batch_bytes(&self, indices: &[u64]) -> Result<u64> {
        if indices.contains(&5) { Err(Error::corrupt("no length").for_record(5)) } else { Ok(1) }
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

#[test]
fn a_record_whose_length_is_damaged_is_skipped_too() {
    for workers in WORKERS {
        let source = || DamagedLength(Faulty::damaged(40, &[5]));
        let mut loader = skipping(source()).workers(workers).build().unwrap();
        loader.next().unwrap().unwrap();
        let batch = loader.next().unwrap().unwrap();
        assert_eq!((numbers(&batch, "x"), skipped(&batch)), (vec![4, 6, 7], vec![5]));
        let mut strict = skipping(source()).on_damage(OnDamage::Error).workers(workers).build().unwrap();
        strict.next().unwrap().unwrap();
        let error = strict.next().unwrap().unwrap_err();
        assert_eq!((error.record(), error.step(), error.stream()), (Some(5), Some(1), Some("x")));
    }
}

/// Every step has the same records, one of them three times.
struct Repeating;

impl Sampler for Repeating {
    fn len(&self) -> u64 {
        40
    }

    fn batch_size(&self) -> usize {
        5
    }

    fn draw_slice(&self, _step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        out.clear();
        out.extend([9, 5, 9, 1, 9].get(positions).unwrap());
    }

    fn describe(&self) -> String {
        "repeating".into()
    }
}

#[test]
fn a_damaged_record_that_a_batch_has_several_times_is_named_once() {
    let mut loader = skipping(Faulty::damaged(40, &[9])).sampler(Repeating).workers(0).build().unwrap();
    let batch = loader.next().unwrap().unwrap();
    assert_eq!((batch.indices(), skipped(&batch)), (&[5, 1][..], vec![9]));
}

#[test]
fn a_failure_of_another_kind_beside_damage_is_the_step_s_error() {
    for workers in WORKERS {
        let source = Faulty::new(40, |request| match request.indices {
            indices if indices.contains(&5) => Err(Error::corrupt("a flipped bit").for_record(5)),
            indices if indices.contains(&6) => Err(Error::new(ErrorKind::Io, "the disk is gone")),
            _ => Ok(()),
        });
        let mut loader = skipping(source).workers(workers).build().unwrap();
        loader.next().unwrap().unwrap();
        assert_eq!(loader.next().unwrap().unwrap_err().kind(), ErrorKind::Io);
        loader.next().unwrap().unwrap();
    }
}

#[test]
fn what_is_left_is_asked_for_at_the_step_s_own_seed_step_and_positions() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let source = Faulty::new(40, move |request| {
        let Request { indices, seed, step, first_position, .. } = *request;
        log.lock().unwrap().push((indices.to_vec(), first_position));
        assert_eq!(seed, 11);
        // Damaged at this step alone.
        let damaged = step == 2 && indices.contains(&11);
        if damaged { Err(Error::corrupt("a flipped bit").for_record(11)) } else { Ok(()) }
    });
    // The second half of each batch: 10 and 11 at step 2.
    let sampler = Sequential::new(40, 4).unwrap().sharded(1, 2).unwrap();
    let mut loader = skipping(source).sampler(sampler).seed(11).workers(0).build().unwrap();
    loader.seek(2);
    let batch = loader.next().unwrap().unwrap();
    assert_eq!((batch.indices(), skipped(&batch)), (&[10][..], vec![11]));
    let asked = asked.lock().unwrap();
    assert_eq!(asked.first().unwrap(), &(vec![10, 11], 2));
    assert_eq!(asked.last().unwrap(), &(vec![10], 2));
}

/// A source that leaves a record out, or has one too many.
struct Miscounting(isize);

impl Source for Miscounting {
    fn len(&self) -> u64 {
        40
    }

    fn gather(&self, request: &Request<'_>) -> Result<Column> {
        let mut indices = request.indices.to_vec();
        indices.resize(indices.len().checked_add_signed(self.0).unwrap(), 0);
        Numbers::new(40).gather(&Request::new(&indices))
    }

    fn batch_bytes(&self, _indices: &[u64]) -> Result<u64> {
        Ok(32)
    }

    fn describe(&self) -> String {
        "miscounting".into()
    }
}

#[test]
fn a_source_that_gathers_too_few_or_too_many_records_is_an_error_with_both_numbers() {
    for (more, found) in [(-1, "3 records"), (1, "5 records")] {
        let mut loader = skipping(Miscounting(more)).workers(0).build().unwrap();
        let error = loader.next().unwrap().unwrap_err();
        assert_eq!(
            (error.kind(), error.stream(), error.step()),
            (ErrorKind::InvalidArgument, Some("x"), Some(0))
        );
        assert!(error.to_string().contains(found) && error.to_string().contains('4'), "{error}");
    }
}

/// A source that does not know how large a batch is.
struct Sizeless;

impl Source for Sizeless {
    fn len(&self) -> u64 {
        40
    }

    fn gather(&self, _request: &Request<'_>) -> Result<Column> {
        unreachable!("the step has failed before")
    }

    fn batch_bytes(&self, _indices: &[u64]) -> Result<u64> {
        Err(Error::new(ErrorKind::Io, "the disk is gone"))
    }

    fn describe(&self) -> String {
        "sizeless".into()
    }
}

#[test]
fn a_step_that_fails_before_its_size_is_known_holds_no_bytes() {
    let mut loader = skipping(Sizeless).workers(2).build().unwrap();
    for _ in 0..5 {
        assert_eq!(loader.next().unwrap().unwrap_err().kind(), ErrorKind::Io);
    }
    assert_eq!(loader.stats().peak_bytes_in_flight, 0);
}

/// Panics when it is dropped.
struct Grenade;

impl Drop for Grenade {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("dropped"));
    }
}

#[test]
fn a_panic_whose_payload_would_panic_again_is_one_failed_step() {
    for workers in WORKERS {
        let transform = |batch: Batch| -> Result<u64> {
            if batch.step() == 1 {
                std::panic::resume_unwind(Box::new(Grenade));
            }
            Ok(batch.step())
        };
        let mut loader = skipping(Numbers::new(40)).workers(workers).transform(transform).build().unwrap();
        assert_eq!(loader.next().unwrap().unwrap(), 0);
        assert_eq!(loader.next().unwrap().unwrap_err().kind(), ErrorKind::Panicked);
        assert_eq!(loader.next().unwrap().unwrap(), 2);
    }
}

#[test]
fn a_worker_that_dies_outside_of_any_step_is_an_error_and_no_endless_wait() {
    let (release, gate) = mpsc::channel::<()>();
    let (report, started) = mpsc::channel();
    let (gate, report) = (Mutex::new(gate), Mutex::new(report));
    let transform = move |batch: Batch| -> Result<Option<Grenade>> {
        if batch.step() > 0 {
            return Ok(None);
        }
        report.lock().unwrap().send(()).unwrap();
        gate.lock().unwrap().recv().unwrap();
        Ok(Some(Grenade))
    };
    let mut loader = skipping(Numbers::new(40)).workers(1).transform(transform).build().unwrap();
    started.recv().unwrap();
    // The worker's batch is not wanted any more, so the worker drops it, and dies of that.
    loader.seek(5);
    release.send(()).unwrap();
    let error = loader.next().unwrap().map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(error.hint().unwrap().contains("build the loader anew"), "{error}");
}

//! Errors and panics arrive at the step they belong to, and the steps around them are delivered as usual.
#![forbid(unsafe_code)]

use std::error::Error as _;
use std::fmt;
use std::ops::Range;

use loaderx_core::sampler::{Pass, Sampler, Sequential};
use loaderx_core::{Batch, Error, ErrorKind, Loader, OnDamage, Result};
use loaderx_tests::loading::{Faulty, Numbers, numbers};

const WORKERS: [usize; 4] = [0, 1, 2, 7];

fn over(source: impl loaderx_core::view::Source + 'static) -> loaderx_core::loader::LoaderBuilder {
    Loader::builder().stream("x", source).sampler(Sequential::new(40, 4).unwrap()).prefetch(3)
}

/// Takes 20 steps: step 3 and 7 must fail as `check` says, all others must arrive.
fn expect_failures<T>(mut loader: Loader<T>, check: impl Fn(u64, &Error)) {
    for step in 0..20 {
        assert_eq!(loader.step(), step);
        match loader.next().unwrap() {
            Ok(_) => assert!(step != 3 && step != 7, "step {step} must fail"),
            Err(error) => {
                assert!(step == 3 || step == 7, "step {step} must not fail: {error}");
                assert_eq!(error.step(), Some(step), "{error}");
                assert!(error.to_string().contains(&format!("step {step}")), "{error}");
                check(step, &error);
            }
        }
    }
    assert_eq!(loader.stats().errors, 2);
    assert_eq!(loader.stats().batches, 20);
}

#[test]
fn an_error_of_a_source_arrives_at_its_step_and_names_stream_file_and_record() {
    for workers in WORKERS {
        let source = Faulty::new(40, |request| match request.step {
            3 | 7 => Err(Error::corrupt("a flipped bit").at_path("0.zr").for_record(request.indices[1])),
            _ => Ok(()),
        });
        expect_failures(over(source).workers(workers).build().unwrap(), |step, error| {
            assert!(error.is_corrupt());
            assert_eq!((error.record(), error.stream()), (Some(step * 4 + 1), Some("x")));
            assert!(error.to_string().contains("0.zr"), "{error}");
        });
    }
}

#[derive(Debug)]
struct TooDark(u64);

impl fmt::Display for TooDark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "image {} is too dark", self.0)
    }
}

impl std::error::Error for TooDark {}

#[test]
fn an_error_of_the_transform_arrives_at_its_step_with_its_type() {
    for workers in WORKERS {
        let loader = over(Numbers::new(40)).workers(workers).transform(|batch| match batch.step() {
            3 | 7 => Err(TooDark(batch.indices()[0])),
            step => Ok(step),
        });
        expect_failures(loader.build().unwrap(), |step, error| {
            assert_eq!(error.kind(), ErrorKind::Callback);
            assert_eq!(error.source().unwrap().downcast_ref::<TooDark>().unwrap().0, step * 4);
            assert!(error.to_string().contains("too dark"), "{error}");
        });
    }
}

/// Draws as `Sequential` does, and panics at two steps.
struct Shaky(Sequential);

impl Sampler for Shaky {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn batch_size(&self) -> usize {
        self.0.batch_size()
    }

    fn draw_slice(&self, step: u64, positions: Range<usize>, out: &mut Vec<u64>) {
        assert!(step != 3 && step != 7, "shaken at {step}");
        self.0.draw_slice(step, positions, out);
    }

    fn describe(&self) -> String {
        "shaky".into()
    }
}

#[test]
fn a_panic_in_source_transform_or_sampler_arrives_at_its_step() {
    let check = |step: u64, error: &Error| {
        assert_eq!(error.kind(), ErrorKind::Panicked);
        assert!(error.to_string().contains(&format!("shaken at {step}")), "{error}");
    };
    for workers in WORKERS {
        let source = Faulty::new(40, |request| {
            assert!(request.step != 3 && request.step != 7, "shaken at {}", request.step);
            Ok(())
        });
        expect_failures(over(source).workers(workers).build().unwrap(), check);

        let transform = |batch: Batch| -> Result<u64> {
            assert!(batch.step() != 3 && batch.step() != 7, "shaken at {}", batch.step());
            Ok(batch.step())
        };
        let builder = over(Numbers::new(40)).workers(workers).transform(transform);
        expect_failures(builder.build().unwrap(), check);

        let sampler = Shaky(Sequential::new(40, 4).unwrap());
        expect_failures(over(Numbers::new(40)).workers(workers).sampler(sampler).build().unwrap(), check);
    }
}

#[test]
fn every_step_may_fail_and_the_loader_still_ends() {
    for workers in WORKERS {
        let source = Faulty::new(40, |_| Err(Error::corrupt("gone")));
        let mut loader = over(source).sampler(Pass::new(40, 4).unwrap()).workers(workers).build().unwrap();
        assert_eq!((&mut loader).filter(Result::is_err).count(), 10);
        assert!(loader.next().is_none());
    }
}

#[test]
fn a_failed_step_can_be_tried_again() {
    use std::sync::atomic::{AtomicBool, Ordering};
    for workers in WORKERS {
        let broken = std::sync::Arc::new(AtomicBool::new(true));
        let switch = std::sync::Arc::clone(&broken);
        let source = Faulty::new(40, move |request| {
            let fails = request.step == 2 && switch.load(Ordering::SeqCst);
            if fails { Err(Error::corrupt("unplugged")) } else { Ok(()) }
        });
        let mut loader = over(source).workers(workers).build().unwrap();
        let error = loader.find_map(Result::err).unwrap();
        broken.store(false, Ordering::SeqCst);
        loader.seek(error.step().unwrap());
        assert_eq!(loader.next().unwrap().unwrap().step(), 2);
    }
}

#[test]
fn skipped_damage_leaves_the_records_out_of_all_streams_and_names_them() {
    for workers in WORKERS {
        let mut loader = over(Faulty::damaged(40, &[5, 6, 17]))
            .stream("y", Numbers { len: 40, scale: 10 })
            .stream("z", Faulty::damaged(40, &[6, 7, 39]))
            .workers(workers)
            .on_damage(OnDamage::Skip)
            .build()
            .unwrap();
        let mut named = Vec::new();
        for step in 0..10 {
            let batch = loader.next().unwrap().unwrap();
            let sound: Vec<u64> =
                (step * 4..step * 4 + 4).filter(|index| ![5, 6, 7, 17, 39].contains(index)).collect();
            assert_eq!(batch.indices(), sound);
            assert_eq!(numbers(&batch, "x"), sound);
            assert_eq!(numbers(&batch, "y"), sound.iter().map(|index| index * 10).collect::<Vec<_>>());
            for skipped in batch.skipped() {
                assert!(skipped.error.is_corrupt());
                assert_eq!(skipped.error.record(), Some(skipped.record));
                named.push((skipped.record, skipped.stream.clone()));
            }
        }
        let expected =
            [(5, "x"), (6, "x"), (7, "z"), (17, "x"), (39, "z")].map(|(n, name)| (n, name.to_owned()));
        assert_eq!(named, expected);
        assert_eq!((loader.stats().skipped, loader.stats().records), (5, 35));
    }
}

#[test]
fn a_batch_of_damaged_records_only_is_an_error_under_either_policy() {
    for policy in [OnDamage::Error, OnDamage::Skip] {
        let source = Faulty::damaged(40, &[4, 5, 6, 7]);
        let mut loader = over(source).workers(2).on_damage(policy).build().unwrap();
        assert!(loader.next().unwrap().is_ok());
        assert!(loader.next().unwrap().unwrap_err().is_corrupt());
        assert!(loader.next().unwrap().is_ok());
    }
}

#[test]
fn failures_that_are_not_damage_are_never_skipped() {
    let source = Faulty::new(40, |request| match request.step {
        1 => Err(Error::new(ErrorKind::DictionaryMismatch, "another dictionary")),
        _ => Ok(()),
    });
    let mut loader = over(source).workers(1).on_damage(OnDamage::Skip).build().unwrap();
    assert!(loader.next().unwrap().is_ok());
    assert_eq!(loader.next().unwrap().unwrap_err().kind(), ErrorKind::DictionaryMismatch);
    assert!(loader.next().unwrap().is_ok());
}

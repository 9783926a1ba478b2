//! Each setting of a builder does what it says, whatever is set after it; seeks and passes prepare what comes next.
#![forbid(unsafe_code)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use loaderx_core::buffer::{Allocator, Room, Vecs};
use loaderx_core::loader::LoaderBuilder;
use loaderx_core::sampler::{Pass, Sequential};
use loaderx_core::{
    Batch, Codec, Column, DType, DenseWriter, ErrorKind, Loader, LoaderState, OnDamage, Result,
};
use loaderx_tests::loading::{Faulty, Numbers, numbers};

fn over(source: impl loaderx_core::Source + 'static) -> LoaderBuilder {
    Loader::builder().stream("x", source).sampler(Sequential::new(40, 4).unwrap())
}

/// Waits for what workers do by themselves.
fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let since = Instant::now();
    while !happened() {
        assert!(since.elapsed() < Duration::from_secs(20), "waited in vain until {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}

#[test]
fn a_seek_or_a_state_past_the_end_is_the_end() {
    for workers in [0, 2] {
        let builder = || over(Numbers::new(40)).sampler(Pass::new(10, 4).unwrap()).workers(workers);
        let mut loader = builder().build().unwrap();
        loader.seek(100);
        assert_eq!((loader.step(), loader.state().step()), (3, 3));
        assert!(loader.next().is_none());
        let text = serde_json::to_string(&loader.state()).unwrap().replace("\"step\":3", "\"step\":99");
        let far: LoaderState = serde_json::from_str(&text).unwrap();
        assert_eq!(far.step(), 99);
        let mut resumed = builder().resume(&far).build().unwrap();
        assert_eq!((resumed.step(), resumed.size_hint()), (3, (0, Some(0))));
        assert!(resumed.next().is_none());
    }
}

#[test]
fn a_seek_to_the_next_step_keeps_what_is_prepared() {
    let gathered = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&gathered);
    let source = Faulty::new(40, move |request| {
        log.lock().unwrap().push(request.step);
        Ok(())
    });
    let mut loader = over(source).workers(1).prefetch(2).build().unwrap();
    loader.next().unwrap().unwrap();
    wait_until("two steps are prepared", || loader.stats().queued == 2);
    loader.seek(1);
    assert_eq!(loader.next().unwrap().unwrap().step(), 1);
    assert_eq!(gathered.lock().unwrap().iter().filter(|&&step| step == 1).count(), 1);
}

#[test]
fn two_steps_are_prepared_for_each_worker_unless_told_otherwise() {
    for (workers, prefetch, expected) in [(1, None, 2), (3, None, 6), (3, Some(2), 2)] {
        let mut builder = over(Numbers::new(40)).workers(workers);
        if let Some(prefetch) = prefetch {
            builder = builder.prefetch(prefetch);
        }
        let loader = builder.build().unwrap();
        wait_until("the queue is full", || loader.stats().queued >= expected);
        assert_eq!(loader.stats().queued, expected);
    }
}

/// Gives vectors, and counts them.
#[derive(Clone, Debug, Default)]
struct Counted(Arc<AtomicUsize>);

impl Allocator for Counted {
    fn room(&self, dtype: DType, elements: usize) -> Result<Room> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Vecs.room(dtype, elements)
    }
}

#[test]
fn a_clone_and_a_transform_keep_everything_that_was_set_before() {
    let dir = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(dir.path().join("y"), DType::U8, &[], Codec::Raw).unwrap();
    writer.append((0..40).collect::<Vec<u8>>()).unwrap();
    let stored = writer.finish().unwrap();
    let counted = Counted::default();
    let base = || over(Faulty::damaged(40, &[13])).stream("y", stored.clone()).seed(7);
    let mut earlier = base().workers(0).on_damage(OnDamage::Skip).build().unwrap();
    earlier.seek(3);
    let set = || {
        let builder = base().workers(2).prefetch(4).max_bytes(0).memory(counted.clone());
        builder.on_damage(OnDamage::Skip).resume(&earlier.state())
    };
    let variants: [fn(LoaderBuilder) -> LoaderBuilder; 3] =
        [|builder| builder, |builder| builder.clone(), |builder| builder.transform(Result::<Batch>::Ok)];
    for (number, variant) in variants.into_iter().enumerate() {
        let before = counted.0.load(Ordering::SeqCst);
        let mut loader = variant(set()).build().unwrap();
        assert_eq!((loader.workers(), loader.step()), (2, 3), "variant {number}");
        for step in 3..60 {
            let batch = loader.next().unwrap().unwrap();
            assert_eq!((batch.step(), batch.seed()), (step, 7), "variant {number}");
            let damaged: Vec<u64> = batch.skipped().iter().map(|skipped| skipped.record).collect();
            assert_eq!(damaged, if step % 10 == 3 { vec![13] } else { vec![] }, "variant {number}");
            // Time for the workers to go further than they may.
            wait_until("a step is prepared", || loader.stats().queued > 0);
        }
        // Four numbers and four bytes, with no other batch beside it.
        assert_eq!(loader.stats().peak_bytes_in_flight, 36, "variant {number}");
        assert!(counted.0.load(Ordering::SeqCst) >= before + 57, "variant {number}");
    }
}

#[test]
fn time_that_workers_wait_for_room_or_for_bytes_is_counted() {
    // One place in the queue; then many places, and bytes for one batch.
    for (prefetch, max_bytes) in [(1, u64::MAX), (16, 0)] {
        let mut loader =
            over(Numbers::new(40)).workers(1).prefetch(prefetch).max_bytes(max_bytes).build().unwrap();
        wait_until("the worker's waiting shows", || {
            wait_until("a step is prepared", || loader.stats().queued == 1);
            std::thread::sleep(Duration::from_millis(1));
            loader.next().unwrap().unwrap();
            loader.stats().waiting_for_consumer > Duration::ZERO
        });
    }
}

#[test]
fn a_pass_may_draw_from_fewer_records_and_knows_its_steps_all_the_time() {
    let mut loader = over(Numbers::new(40)).workers(2).prefetch(2).build().unwrap();
    let mut pass = loader.pass_with(Pass::new(5, 2).unwrap()).unwrap();
    for left in (0..3).rev() {
        pass.next().unwrap().unwrap();
        assert_eq!((pass.steps(), pass.len(), pass.records()), (3, left, 5));
    }
    assert!(pass.next().is_none());
    drop(pass);
    // Without being asked for a step, the workers are back at the training.
    wait_until("training steps are prepared", || loader.stats().queued == 2);
}

#[test]
fn a_state_with_a_stream_more_or_less_is_refused() {
    let build = |streams: &[&str]| {
        let streams = streams.iter().map(|&name| (name, Numbers::new(40)));
        let builder = streams.fold(Loader::builder(), |builder, (name, source)| builder.stream(name, source));
        builder.sampler(Sequential::new(40, 4).unwrap()).workers(0).build().unwrap()
    };
    for (saved, here) in [(&["x"][..], &["x", "y"][..]), (&["x", "y"], &["x"])] {
        let error = build(here).resume(&build(saved).state()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StateMismatch);
        assert!(error.to_string().contains("list of streams"), "{error}");
    }
}

fn column(source: &Numbers, indices: &[u64]) -> Column {
    loaderx_core::Source::gather(source, &loaderx_core::Request::new(indices)).unwrap()
}

#[test]
fn a_batch_of_given_columns_needs_other_names_and_as_many_records_as_indices() {
    let make = |columns: &[(&str, &[u64])]| {
        let columns =
            columns.iter().map(|(name, indices)| ((*name).to_owned(), column(&Numbers::new(40), indices)));
        Batch::from_columns(vec![3, 5], columns.collect())
    };
    let batch = make(&[("x", &[3, 5]), ("y", &[5, 3])]).unwrap();
    assert_eq!((numbers(&batch, "x"), numbers(&batch, "y")), (vec![3, 5], vec![5, 3]));
    let twice = make(&[("x", &[3, 5]), ("x", &[3, 5])]).unwrap_err();
    assert!(twice.to_string().contains("\"x\""), "{twice}");
    for other in [&[3][..], &[3, 5, 7]] {
        let error = make(&[("x", &[3, 5]), ("y", other)]).unwrap_err();
        assert!(error.to_string().contains("\"y\""), "{error}");
    }
}

#[test]
fn a_column_that_is_missing_or_of_another_kind_is_named_with_its_step_and_stream() {
    let mut loader = over(Numbers::new(40)).workers(0).build().unwrap();
    loader.seek(6);
    let mut batch = loader.next().unwrap().unwrap();
    assert_eq!(batch.column("z").unwrap_err().step(), Some(6));
    let error = batch.take_ragged("x").unwrap_err();
    assert_eq!((error.kind(), error.stream()), (ErrorKind::SchemaMismatch, Some("x")));
    let mut ragged = Batch::from_columns(vec![0], vec![("r".to_owned(), ragged())]).unwrap();
    let error = ragged.take_dense("r").unwrap_err();
    assert_eq!((error.kind(), error.stream()), (ErrorKind::SchemaMismatch, Some("r")));
}

fn ragged() -> Column {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r");
    let writer = loaderx_core::RaggedWriter::create(&path, DType::U8, &[], Codec::Raw).unwrap();
    writer.append(vec![1_u8, 2, 3], &[3]).unwrap();
    loaderx_core::Source::gather(&writer.finish().unwrap(), &loaderx_core::Request::new(&[0])).unwrap()
}

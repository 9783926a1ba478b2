//! The endless loader behind burn's `DataLoader`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::{Points, Stores, numbers, points, stores};
use burn::data::dataloader::DataLoader;
use burn::data::dataloader::split::split_dataloader;
use burn::tensor::Device;
use loaderx_burn::StepLoader;
use loaderx_core::sampler::{Cyclic, Pass, Sampler, Tail};

fn cyclic(stores: &Stores, batch: usize) -> StepLoader<Points> {
    let sampler = Cyclic::new(stores.numbers.len(), batch, 3).unwrap();
    StepLoader::new(stores.streams().sampler(sampler), points).unwrap().on(Device::flex())
}

fn epoch(loader: &dyn DataLoader<Points>) -> Vec<Vec<i64>> {
    loader.iter().map(|batch| numbers(&batch.unwrap())).collect()
}

fn expected(stores: &Stores, batch: usize, step: u64) -> Vec<i64> {
    let mut out = Vec::new();
    Cyclic::new(stores.numbers.len(), batch, 3).unwrap().draw(step, &mut out);
    out.into_iter().map(|i| i as i64).collect()
}

#[test]
fn epochs_follow_each_other_in_step_order() {
    let stores = stores(23);
    let loader = cyclic(&stores, 5);
    assert_eq!((loader.steps_per_epoch(), loader.num_items()), (4, 20));
    for number in 0..3 {
        let found = epoch(&loader);
        let wanted: Vec<_> = (0..4).map(|i| expected(&stores, 5, number * 4 + i)).collect();
        assert_eq!(found, wanted);
    }
}

#[test]
fn progress_ends_exactly_at_its_total() {
    let stores = stores(23);
    let short = Cyclic::new(23, 5, 3).unwrap().tail(Tail::Short);
    let short = StepLoader::new(stores.streams().sampler(short), points).unwrap().on(Device::flex());
    let pass = Pass::new(23, 5).unwrap();
    let pass = StepLoader::new(stores.streams().sampler(pass), points).unwrap().on(Device::flex());
    for loader in [cyclic(&stores, 5), short, pass] {
        for _epoch in 0..2 {
            let mut batches = loader.iter();
            let mut items = 0;
            assert_eq!(batches.progress().items_processed, 0);
            while let Some(batch) = batches.next() {
                assert!(!batches.progress().is_completed() || items + 5 >= loader.num_items());
                items += numbers(&batch.unwrap()).len();
                assert_eq!(batches.progress().items_processed, items);
            }
            assert!(batches.progress().is_completed());
            assert_eq!(items, loader.num_items());
        }
    }
}

#[test]
fn a_pass_delivers_every_record_once_in_every_epoch() {
    let stores = stores(23);
    let pass = stores.streams().sampler(Pass::new(23, 5).unwrap());
    let loader = StepLoader::new(pass, points).unwrap().on(Device::flex());
    assert_eq!((loader.steps_per_epoch(), loader.num_items()), (5, 23));
    for _epoch in 0..2 {
        assert_eq!(epoch(&loader).concat(), (0..23).collect::<Vec<_>>());
    }
    drop(loader.iter().next());
    assert_eq!(epoch(&loader).concat().len(), 23);
}

#[test]
fn two_iterators_at_the_same_time_deliver_two_epochs() {
    let stores = stores(20);
    let loader = cyclic(&stores, 5);
    let (mut first, mut second) = (loader.iter(), loader.iter());
    for step in 0..4 {
        assert_eq!(numbers(&first.next().unwrap().unwrap()), expected(&stores, 5, step));
        assert_eq!(numbers(&second.next().unwrap().unwrap()), expected(&stores, 5, 4 + step));
    }
    assert!(first.next().is_none() && second.next().is_none());
}

#[test]
fn an_iterator_that_is_dropped_early_leaves_the_next_epoch_whole() {
    let stores = stores(20);
    let loader = cyclic(&stores, 5);
    drop(loader.iter().next());
    let wanted: Vec<_> = (4..8).map(|step| expected(&stores, 5, step)).collect();
    assert_eq!(epoch(&loader), wanted);
}

#[test]
fn a_state_from_within_an_epoch_goes_on_at_the_next_batch() {
    let stores = stores(20);
    let loader = cyclic(&stores, 5);
    epoch(&loader);
    let mut batches = loader.iter();
    batches.next().unwrap().unwrap();
    let state = loader.state().unwrap();
    assert_eq!(state.step(), 5);
    let rest: Vec<Vec<i64>> = batches.map(|batch| numbers(&batch.unwrap())).collect();

    let builder = stores.streams().sampler(Cyclic::new(20, 5, 3).unwrap()).resume(&state);
    let resumed = StepLoader::new(builder, points).unwrap().on(Device::flex());
    let mut batches = resumed.iter();
    assert_eq!(batches.progress().items_processed, 5);
    let found: Vec<Vec<i64>> = batches.by_ref().map(|batch| numbers(&batch.unwrap())).collect();
    assert_eq!(found, rest);
    assert!(batches.progress().is_completed());
    drop(batches);
    assert_eq!(epoch(&resumed), epoch(&loader));
}

#[test]
fn skipped_epochs_give_what_an_uninterrupted_run_has_next() {
    let stores = stores(20);
    let loader = cyclic(&stores, 5);
    epoch(&loader);
    epoch(&loader);
    assert_eq!(epoch(&cyclic(&stores, 5).skip_epochs(2)), epoch(&loader));
}

#[test]
fn burns_split_gives_every_device_equal_steps_and_together_the_epoch() {
    let stores = stores(60);
    for devices in 1..=5 {
        let whole = cyclic(&stores, 12);
        let wanted: Vec<Vec<Vec<i64>>> = (0..3).map(|_| epoch(&whole)).collect();
        let fresh: Arc<dyn DataLoader<Points>> = Arc::new(cyclic(&stores, 12));
        let slices = split_dataloader(fresh, &vec![Device::flex(); devices]);
        assert_eq!(slices.iter().map(|slice| slice.num_items()).sum::<usize>(), 60);
        for wanted in &wanted {
            let parts: Vec<Vec<Vec<i64>>> = slices.iter().map(|slice| epoch(&**slice)).collect();
            for (step, wanted) in wanted.iter().enumerate() {
                let found: Vec<i64> = parts.iter().flat_map(|part| part[step].clone()).collect();
                assert_eq!(&found, wanted);
            }
            assert!(parts.iter().all(|part| part.len() == wanted.len()));
        }
    }
}

#[test]
fn a_slice_of_less_than_a_record_says_so() {
    let stores = stores(20);
    let slice = cyclic(&stores, 2).slice(0, 3);
    let error = slice.iter().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("0..3 of 20") && error.contains("batch of 2"), "{error}");
}

#[test]
fn to_device_goes_on_with_the_same_data_on_the_device() {
    let stores = stores(20);
    let loader = cyclic(&stores, 5);
    let moved = loader.to_device(&Device::flex().autodiff());
    let batch = moved.iter().next().unwrap().unwrap();
    assert_eq!(batch.features.device(), Device::flex().autodiff());
    assert_eq!(numbers(&batch), expected(&stores, 5, 0));
}

#[test]
fn a_panic_in_a_worker_is_the_error_of_its_item_and_no_end() {
    let stores = stores(20);
    let builder = stores.streams().sampler(Cyclic::new(20, 5, 3).unwrap()).transform(
        |batch| -> loaderx_core::Result<_> {
            assert_ne!(batch.step(), 1, "step one");
            Ok(batch)
        },
    );
    let loader = StepLoader::new(builder, points).unwrap().on(Device::flex());
    let mut batches = loader.iter();
    let outcomes: Vec<Result<usize, String>> =
        batches.by_ref().map(|b| b.map(|b| numbers(&b).len()).map_err(|e| e.to_string())).collect();
    assert_eq!(outcomes.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, true, true]);
    assert!(outcomes[1].as_ref().unwrap_err().contains("step one"), "{outcomes:?}");
    assert!(batches.progress().is_completed());
}

#[test]
fn tensors_are_made_on_the_thread_that_asks() {
    let stores = stores(20);
    let here = std::thread::current().id();
    let elsewhere = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&elsewhere);
    let builder = stores.streams().sampler(Cyclic::new(20, 5, 3).unwrap());
    let loader = StepLoader::new(builder, move |batch, device: &Device| {
        if std::thread::current().id() != here {
            seen.store(true, Ordering::Relaxed);
        }
        points(batch, device)
    })
    .unwrap()
    .on(Device::flex());
    epoch(&loader);
    assert!(!elsewhere.load(Ordering::Relaxed));
}

/// burn's own loader with 4 workers lets a record meet about a quarter of the others, however long it runs.
#[test]
fn shuffled_epochs_mix_every_record_with_all_others() {
    let stores = stores(100);
    let loader = cyclic(&stores, 25);
    let mut met = vec![[false; 100]; 100];
    for _epoch in 0..60 {
        for batch in epoch(&loader) {
            for &a in &batch {
                for &b in &batch {
                    met[a as usize][b as usize] = true;
                }
            }
        }
    }
    // Two records miss each other in all 60 epochs with a probability of 0.76^60 = 7e-8.
    assert!(met.iter().all(|others| others.iter().all(|&met| met)));
}

#[test]
fn epochs_that_cannot_be_are_refused() {
    let stores = stores(20);
    let endless = || stores.streams().sampler(Cyclic::new(20, 5, 3).unwrap());
    assert!(StepLoader::with_steps_per_epoch(endless(), 0, points).is_err());
    let finite = stores.streams().sampler(Pass::new(20, 5).unwrap());
    let error = StepLoader::with_steps_per_epoch(finite, 3, points).unwrap_err().to_string();
    assert!(error.contains('4') && error.contains('3'), "{error}");
    assert!(StepLoader::new(stores.streams(), points).is_err());
    let three = StepLoader::with_steps_per_epoch(endless(), 3, points).unwrap().on(Device::flex());
    assert_eq!((epoch(&three).len(), three.num_items()), (3, 15));
}

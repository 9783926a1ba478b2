//! Burn's own `DataLoaderBuilder` over loaderx stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Stores, numbers, points, stores};
use burn::data::dataloader::DataLoaderBuilder;
use burn::data::dataset::Dataset;
use burn::data::dataset::transform::{ComposedDataset, PartialDataset, ShuffledDataset};
use burn::tensor::Device;
use loaderx_burn::{RecordRef, Records};
use loaderx_core::view::{Column, Request, Source};

fn records(stores: &Stores) -> Records {
    Records::builder()
        .stream("features", stores.features.clone())
        .stream("numbers", stores.numbers.clone())
        .build()
        .unwrap()
}

fn sorted(mut numbers: Vec<i64>) -> Vec<i64> {
    numbers.sort_unstable();
    numbers
}

#[test]
fn an_epoch_of_burns_loader_delivers_every_record_once() {
    let stores = stores(50);
    for workers in [0, 2] {
        let records = records(&stores);
        let loader = DataLoaderBuilder::new(records.batcher(points))
            .batch_size(8)
            .shuffle(7)
            .num_workers(workers)
            .set_device(Device::flex())
            .build(records);
        for _epoch in 0..2 {
            let seen: Vec<i64> = loader.iter().flat_map(|batch| numbers(&batch.unwrap())).collect();
            assert_ne!(seen, (0..50).collect::<Vec<_>>());
            assert_eq!(sorted(seen), (0..50).collect::<Vec<_>>());
        }
    }
}

/// Counts the gathers.
struct Counting(loaderx_core::Dense, Arc<AtomicUsize>);

impl Source for Counting {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn gather(&self, request: &Request<'_>) -> loaderx_core::Result<Column> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Source::gather(&self.0, request)
    }

    fn batch_bytes(&self, indices: &[u64]) -> loaderx_core::Result<u64> {
        self.0.batch_bytes(indices)
    }

    fn describe(&self) -> String {
        self.0.describe()
    }
}

#[test]
fn a_shuffled_batch_is_one_gather_for_each_stream() {
    let stores = stores(40);
    let gathers = Arc::new(AtomicUsize::new(0));
    let records = Records::builder()
        .stream("features", Counting(stores.features.clone(), Arc::clone(&gathers)))
        .stream("numbers", Counting(stores.numbers.clone(), Arc::clone(&gathers)))
        .build()
        .unwrap();
    let loader = DataLoaderBuilder::new(records.batcher(points))
        .batch_size(10)
        .shuffle(1)
        .set_device(Device::flex())
        .build(records);
    assert_eq!(loader.iter().count(), 4);
    assert_eq!(gathers.load(Ordering::Relaxed), 4 * 2);
}

#[test]
fn burns_transforms_take_it_as_any_other_dataset() {
    let stores = stores(20);
    let half = |start, end| PartialDataset::new(records(&stores), start, end);
    let composed = ComposedDataset::new(vec![half(15, 20), half(0, 5)]);
    let references: Vec<u64> = (0..composed.len()).map(|i| composed.get(i).unwrap().index()).collect();
    assert_eq!(references, [15, 16, 17, 18, 19, 0, 1, 2, 3, 4]);

    let shuffled = ShuffledDataset::new(records(&stores), 3);
    let mut references: Vec<RecordRef> = shuffled.iter().map(Result::unwrap).collect();
    references.sort_unstable();
    assert_eq!(references.iter().map(|r| r.index()).collect::<Vec<_>>(), (0..20).collect::<Vec<_>>());
}

#[test]
#[should_panic(expected = "index 20 is out of range of 20 records")]
fn out_of_range_panics_as_burns_contract_says() {
    let _ = records(&stores(20)).get(20);
}

/// Flips a bit in the only chunk of a compressed store, whose checksum then fails.
fn damaged() -> (tempfile::TempDir, Records) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("numbers");
    let writer = loaderx_core::DenseWriter::create(
        &path,
        loaderx_core::DType::I64,
        &[64],
        loaderx_core::Codec::zstd(),
    );
    let writer = writer.unwrap();
    writer.append((0..640).map(|i| i * i).collect::<Vec<i64>>()).unwrap();
    drop(writer.finish().unwrap());
    let chunk = path.join("0.zr");
    let mut bytes = std::fs::read(&chunk).unwrap();
    let middle = bytes.iter().rposition(|&byte| byte != 0).unwrap() / 2;
    bytes[middle] ^= 0x10;
    std::fs::write(&chunk, bytes).unwrap();
    let dense = loaderx_core::Dense::open(&path).unwrap();
    (dir, Records::builder().stream("numbers", dense).build().unwrap())
}

#[test]
fn a_damaged_record_is_burns_error_with_our_message_when_verified() {
    let (dir, records) = damaged();
    let records = records.verified();
    let errors: Vec<String> =
        (0..10).filter_map(|i| records.get(i).err()).map(|error| error.to_string()).collect();
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert!(errors[0].contains(&dir.path().join("numbers").display().to_string()), "{errors:?}");
    // References alone cost no reading, so without `verified` they are all there.
    let (_dir, records) = damaged();
    assert!((0..10).all(|i| records.get(i).is_ok()));
}

#[test]
#[should_panic(expected = "numbers")]
fn a_damaged_record_in_the_batcher_is_a_panic_that_names_it() {
    let (_dir, records) = damaged();
    let batcher = records.batcher(|batch, _device| Ok(batch.records()));
    let loader = DataLoaderBuilder::new(batcher).batch_size(10).set_device(Device::flex()).build(records);
    let _ = loader.iter().count();
}

#[test]
fn streams_that_do_not_fit_are_refused_with_numbers() {
    let (a, b) = (stores(20), stores(21));
    let build = |name: &str, second: &Stores| {
        Records::builder().stream("x", a.features.clone()).stream(name, second.numbers.clone()).build()
    };
    let error = build("y", &b).unwrap_err().to_string();
    assert!(error.contains("20") && error.contains("21"), "{error}");
    assert!(build("x", &a).unwrap_err().to_string().contains("\"x\""));
    assert!(Records::builder().build().is_err());
}

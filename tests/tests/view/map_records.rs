//! A record map writes each record's row once, with random numbers of its own, for any number of threads.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use loaderx_core::buffer::Pool;
use loaderx_core::view::{RecordRng, Request, Source};
use loaderx_core::{Codec, DType, Dense, DenseWriter, Error, ErrorKind};
use loaderx_tests::ragged::store;
use tempfile::TempDir;

fn numbers(len: u16) -> (TempDir, Dense) {
    let dir = tempfile::tempdir().unwrap();
    let writer = DenseWriter::create(dir.path().join("d"), DType::U16, &[2], Codec::zstd()).unwrap();
    writer.append((0..2 * len).collect::<Vec<_>>()).unwrap();
    (dir, writer.finish().unwrap())
}

#[test]
fn every_record_draws_its_own_numbers_whatever_the_number_of_threads() {
    let (_dir, dense) = numbers(300);
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    let mapped = dense
        .map(&[3], DType::U64, move |rng, stored, row| {
            counted.fetch_add(1, Ordering::Relaxed);
            // Long enough that helpers are worth starting.
            std::thread::sleep(Duration::from_micros(20));
            row.copy_from(&[stored.index(), rng.next_u64(), rng.next_u64()])?;
            Ok(())
        })
        .unwrap();
    let indices: Vec<u64> = (0..300).rev().collect();
    for (seed, step) in [(0, 0), (0, 1), (5, 1 << 40)] {
        // The plain loop.
        let expected: Vec<u64> = indices
            .iter()
            .zip(0..)
            .flat_map(|(&index, position)| {
                let mut rng = RecordRng::new(seed, step, position);
                [index, rng.next_u64(), rng.next_u64()]
            })
            .collect();
        for threads in [1, 2, 3, 8] {
            calls.store(0, Ordering::Relaxed);
            let pool = Pool::new();
            let request = Request::new(&indices).at(seed, step).threads(threads).memory(&pool);
            let batch = mapped.gather(&request).unwrap().into_dense().unwrap();
            assert_eq!(batch.shape(), [300, 3]);
            assert_eq!(batch.as_slice::<u64>().unwrap(), expected, "{threads} threads, step {step}");
            assert_eq!(calls.load(Ordering::Relaxed), 300);
        }
    }
}

#[test]
fn stored_elements_are_read_by_their_type() {
    let (_dir, dense) = numbers(3);
    let mapped = dense
        .map(&[], DType::F32, |_, stored, row| {
            assert_eq!((stored.rows(), stored.item_shape(), stored.dtype()), (1, &[2][..], DType::U16));
            assert!(stored.iter::<u8>().is_err());
            row.write([stored.iter::<u16>()?.map(f32::from).sum::<f32>()])?;
            Ok(())
        })
        .unwrap();
    let batch = mapped.batch(&[2, 0], 0, 0).unwrap();
    assert_eq!((batch.shape(), batch.as_slice::<f32>().unwrap()), (&[2][..], &[9.0, 1.0][..]));
}

#[test]
fn ragged_bytes_are_decoded_into_dense_rows() {
    // A toy image format: width, then its pixels; cropped or repeated to four.
    let (_dir, ragged) = store(&[vec![2_u8, 7, 8], vec![5, 1, 2, 3, 4, 5], vec![0]], Codec::Raw);
    let decoded = ragged
        .map(&[4], DType::U8, |_, stored, row| {
            let (&width, pixels) = stored.bytes().split_first().ok_or("an image without a header")?;
            if pixels.is_empty() || pixels.len() != usize::from(width) {
                return Err(format!("{width} pixels are promised, {} are there", pixels.len()).into());
            }
            let row = row.as_mut_slice::<u8>()?;
            for (place, &pixel) in row.iter_mut().zip(pixels.iter().cycle()) {
                *place = pixel;
            }
            Ok(())
        })
        .unwrap()
        .named("decode v1");
    let batch = decoded.batch(&[1, 0], 0, 0).unwrap();
    assert_eq!(batch.as_slice::<u8>().unwrap(), [1, 2, 3, 4, 7, 8, 7, 8]);
    let error = decoded.batch(&[1, 2], 0, 0).unwrap_err();
    assert_eq!((error.kind(), error.record()), (ErrorKind::Callback, Some(2)));
    assert!(
        error.to_string().contains("decode v1") && error.to_string().contains("0 pixels are promised"),
        "{error}"
    );
    assert!(decoded.describe().contains("decode v1"));
}

#[test]
fn rows_of_the_wrong_type_or_length_and_rows_left_out_are_errors() {
    let (_dir, dense) = numbers(2);
    type Write = fn(&mut loaderx_core::view::OutRow<'_>) -> Result<(), Error>;
    let cases: [(&str, Write); 8] = [
        ("left its row unwritten", |_| Ok(())),
        ("f32 is not written as f64", |row| row.copy_from(&[1.0_f64, 2.0, 3.0])),
        ("f32 is not written as i32", |row| row.as_mut_slice::<i32>().map(|_| ())),
        ("left unwritten", |row| row.copy_from(&[1.0_f32, 2.0])),
        ("do not go into", |row| row.copy_from(&[1.0_f32; 4])),
        ("left unwritten", |row| row.write([1.0_f32, 2.0])),
        ("more than the 3 elements", |row| row.write([1.0_f32; 4])),
        ("after a write to it had failed", |row| {
            assert!(row.write([1.0_f32]).is_err());
            Ok(())
        }),
    ];
    for (text, write) in cases {
        let mapped = dense.map(&[3], DType::F32, move |_, _, row| Ok(write(row)?)).unwrap();
        let error = mapped.batch(&[0, 1], 0, 0).unwrap_err();
        assert!(error.to_string().contains(text), "{text}: {error}");
        assert_eq!(error.record(), Some(0));
    }
    let mapped = dense.map(&[1], DType::Bool, |_, _, row| Ok(row.copy_from(&[2_u8])?)).unwrap();
    assert!(mapped.batch(&[1], 0, 0).unwrap_err().is_corrupt());
    let mapped = dense.map(&[0, 2], DType::F32, |_, _, _| Ok(())).unwrap();
    assert_eq!(mapped.batch(&[1, 0], 0, 0).unwrap().shape(), [2, 0, 2]);
}

#[test]
fn a_row_can_be_written_again() {
    let (_dir, dense) = numbers(2);
    let mapped = dense
        .map(&[2], DType::I32, |_, _, row| {
            assert_eq!((row.len(), row.dtype()), (2, DType::I32));
            assert_eq!(row.as_mut_slice::<i32>()?, [0, 0]);
            row.copy_from(&[1, 2])?;
            row.as_mut_slice::<i32>()?[0] = 9;
            row.write(row_plus_one(&[9, 2]))?;
            Ok(())
        })
        .unwrap();
    assert_eq!(mapped.batch(&[0], 0, 0).unwrap().as_slice::<i32>().unwrap(), [10, 3]);
}

fn row_plus_one(row: &[i32]) -> Vec<i32> {
    row.iter().map(|x| x + 1).collect()
}

#[test]
fn the_first_failing_record_is_named_whatever_the_number_of_threads() {
    let (_dir, dense) = numbers(400);
    let mapped = dense
        .map(&[1], DType::U8, |_, stored, row| {
            std::thread::sleep(Duration::from_micros(20));
            if stored.index() % 100 == 77 {
                return Err("no".into());
            }
            Ok(row.copy_from(&[0_u8])?)
        })
        .unwrap();
    let indices: Vec<u64> = (0..400).collect();
    for threads in [1, 2, 5] {
        let error = mapped.gather(&Request::new(&indices).threads(threads)).unwrap_err();
        assert_eq!(error.record(), Some(77), "{threads} threads");
    }
}

#[test]
fn a_panic_in_a_map_reaches_the_caller_and_the_memory_returns_to_its_pool() {
    let (_dir, dense) = numbers(400);
    let mapped = dense
        .map(&[1], DType::U8, |_, stored, row| {
            std::thread::sleep(Duration::from_micros(20));
            assert!(stored.index() != 333, "a broken record");
            Ok(row.copy_from(&[0_u8])?)
        })
        .unwrap();
    let indices: Vec<u64> = (0..400).collect();
    for threads in [1, 3] {
        let pool = Pool::new();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            mapped
                .gather(&Request::new(&indices).threads(threads).memory(&pool))
                .map(|column| column.records())
        }));
        let panic = caught.unwrap_err();
        assert!(panic.downcast_ref::<&str>().is_some_and(|text| text.contains("a broken record")));
        assert!(pool.idle_bytes() > 0);
    }
}

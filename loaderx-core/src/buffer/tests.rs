use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

fn write_all(room: &mut [MaybeUninit<u8>], byte: u8) -> Result<&mut [u8]> {
    let mut filler = Filler::new(room);
    filler.repeat(&[byte], filler.remaining())?;
    filler.finish()
}

fn low_byte(row: usize) -> u8 {
    row.to_le_bytes()[0]
}

#[test]
fn every_type_comes_back_from_vecs_and_pool() {
    let pool = Pool::new();
    let allocators: [&dyn Allocator; 2] = [&Vecs, &pool];
    for allocator in allocators {
        for dtype in DType::ALL {
            for elements in [0, 1, 3, 1000] {
                let buffer =
                    allocator.room(dtype, elements).unwrap().fill(|room| write_all(room, 1)).unwrap();
                assert_eq!((buffer.dtype(), buffer.len()), (dtype, elements));
                assert_eq!(buffer.as_bytes(), vec![1; elements * dtype.size()]);
                assert_eq!(buffer.clone().as_bytes(), buffer.as_bytes());
                assert!(buffer.clone().is_vec());
            }
        }
    }
}

#[test]
fn a_vector_goes_in_and_out_without_a_copy() {
    let vec = vec![1_i64, -2, 3];
    let start = vec.as_ptr();
    let mut buffer = Buffer::from(vec);
    buffer.as_mut_slice::<i64>().unwrap()[1] = 5;
    assert_eq!(buffer.as_slice::<u64>().unwrap_err().kind(), ErrorKind::SchemaMismatch);
    let vec = buffer.into_vec::<i64>().unwrap();
    assert_eq!((vec.as_ptr(), vec), (start, vec![1, 5, 3]));
}

#[test]
fn what_vecs_allocate_is_moved_out() {
    let mut start = std::ptr::null();
    let buffer = Buffer::fill(DType::F64, 7, |room| {
        start = room.as_ptr().cast::<f64>();
        write_all(room, 0)
    })
    .unwrap();
    let vec = buffer.into_vec::<f64>().unwrap();
    assert_eq!(vec.as_ptr(), start);
}

#[test]
fn truth_values_are_checked_and_read_as_u8() {
    let fill = |byte| Buffer::fill(DType::Bool, 3, |room| write_all(room, byte));
    assert_eq!(fill(1).unwrap().into_vec::<u8>().unwrap(), [1, 1, 1]);
    let error = fill(2).unwrap_err();
    assert!(error.is_corrupt());
    assert_eq!(error.offset(), Some(0));
}

#[test]
fn other_bytes_than_the_room_prove_nothing() {
    let foreign = Box::leak(vec![0_u8; 4].into_boxed_slice());
    assert!(Buffer::fill(DType::U8, 4, |_| Ok(foreign)).is_err());
    assert!(Buffer::fill(DType::U8, 4, |room| write_all(&mut room[1..], 0)).is_err());
    assert!(Buffer::fill(DType::U8, 4, |room| write_all(&mut room[..3], 0)).is_err());
}

#[test]
fn a_pool_hands_out_the_block_returned_last() {
    let pool = Pool::new();
    let take = || pool.room(DType::U8, 5000).unwrap().fill(|room| write_all(room, 3)).unwrap();
    let (a, b) = (take(), take());
    let (start_a, start_b) = (a.as_bytes().as_ptr(), b.as_bytes().as_ptr());
    assert!(start_a.addr().is_multiple_of(64) && start_b.addr().is_multiple_of(64));
    drop(b);
    drop(a);
    assert_eq!(take().as_bytes().as_ptr(), start_a);
    let (c, d) = (take(), take());
    assert_eq!((c.as_bytes().as_ptr(), d.as_bytes().as_ptr()), (start_a, start_b));
}

#[test]
fn a_pool_serves_batches_of_about_one_size_from_one_block() {
    let pool = Pool::new();
    let mut starts = std::collections::HashSet::new();
    for elements in [4000, 3600, 4090, 2100, 3900] {
        let buffer = pool.room(DType::F32, elements).unwrap().fill(|room| write_all(room, 0)).unwrap();
        starts.insert(buffer.as_bytes().as_ptr());
    }
    assert_eq!(starts.len(), 1);
    // A much smaller batch does not take the large block away.
    drop(pool.room(DType::F32, 10).unwrap());
    assert_eq!(pool.shared_blocks(), 2);
}

#[test]
fn a_pool_keeps_no_more_than_its_limit_and_drops_the_oldest() {
    let pool = Pool::with_idle_limit(3 << 10);
    let take = || pool.room(DType::U8, 1 << 10).unwrap().fill(|room| write_all(room, 0)).unwrap();
    let buffers: Vec<Buffer> = (0..5).map(|_| take()).collect();
    let last = buffers[4].as_bytes().as_ptr();
    drop(buffers);
    assert_eq!(pool.idle_bytes(), 3 << 10);
    assert_eq!(take().as_bytes().as_ptr(), last);
    pool.clear();
    assert_eq!(pool.idle_bytes(), 0);
}

#[test]
fn memory_outlives_its_pool_and_failed_fills_return_it() {
    let pool = Pool::new();
    let room = pool.room(DType::U8, 100).unwrap();
    assert!(room.fill(|_| Err(Error::invalid("no"))).is_err());
    assert_eq!(pool.shared_blocks(), 1);
    let buffer = pool.room(DType::U8, 100).unwrap().fill(|room| write_all(room, 9)).unwrap();
    drop(pool);
    assert_eq!(buffer.as_bytes(), [9; 100]);
}

#[test]
fn a_large_block_is_a_mapping_that_is_used_again() {
    let pool = Pool::new();
    let take = || pool.room(DType::U64, 5 << 20).unwrap().fill(|room| write_all(room, 1)).unwrap();
    let start = take().as_bytes().as_ptr();
    let buffer = take();
    assert_eq!(buffer.as_bytes().as_ptr(), start);
    assert_eq!(buffer.as_slice::<u64>().unwrap().last(), Some(&0x0101_0101_0101_0101));
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let pool = Pool::new();
    let allocators: [&dyn Allocator; 2] = [&Vecs, &pool];
    for allocator in allocators {
        for elements in [usize::MAX, usize::MAX / 8, isize::MAX as usize / 8 - 100] {
            let error = allocator.room(DType::F64, elements).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::LimitExceeded, "{error}");
        }
    }
}

#[test]
fn a_filler_writes_from_front_to_back_and_refuses_too_much_and_too_little() {
    let mut room = [MaybeUninit::uninit(); 10];
    let mut filler = Filler::new(&mut room);
    filler.copy(&[1, 2, 3]).unwrap();
    filler.repeat(&[4, 5], 2).unwrap();
    assert_eq!(filler.remaining(), 3);
    assert!(filler.copy(&[0; 4]).is_err());
    assert!(filler.repeat(&[0, 0], 2).is_err());
    assert!(filler.repeat(&[0, 0], usize::MAX).is_err());
    filler.with(2, |room| write_all(room, 6)).unwrap();
    assert!(filler.with(1, |_| Ok(Box::leak(Box::new([0])))).is_err());
    filler.repeat(&[9], 1).unwrap();
    assert_eq!(filler.finish().unwrap(), [1, 2, 3, 4, 5, 4, 5, 6, 6, 9]);
    assert!(Filler::new(&mut [MaybeUninit::uninit(); 1]).finish().is_err());
}

#[test]
fn rows_are_each_written_once_whatever_the_number_of_threads() {
    for threads in [0, 1, 2, 5] {
        for (rows, row_bytes) in [(0, 3), (1, 3), (7, 0), (100, 4), (1000, 1)] {
            let written = AtomicUsize::new(0);
            let mut room = vec![MaybeUninit::uninit(); rows * row_bytes];
            let bytes = rows::fill(&mut room, rows, row_bytes, threads, |range, room| {
                // Slow enough that helpers are started.
                std::thread::sleep(std::time::Duration::from_micros(50));
                written.fetch_add(range.len(), Ordering::Relaxed);
                let mut filler = Filler::new(room);
                for row in range {
                    filler.repeat(&[low_byte(row)], row_bytes)?;
                }
                filler.finish()
            })
            .unwrap();
            let expected: Vec<u8> = (0..rows).flat_map(|row| vec![low_byte(row); row_bytes]).collect();
            assert_eq!(bytes, expected);
            assert_eq!(written.into_inner(), rows);
        }
    }
}

#[test]
fn rows_of_their_own_lengths_are_each_written_once_and_must_cover_the_memory() {
    const PLACES: [usize; 8] = [0, 0, 5, 6, 6, 106, 400, 400];
    let length = |row: usize| PLACES[row + 1] - PLACES[row];
    let filled = |bytes: usize, threads: usize, place: fn(usize) -> usize| {
        let mut room = vec![MaybeUninit::uninit(); bytes];
        rows::fill_places(&mut room, PLACES.len() - 1, place, threads, |range, room| {
            std::thread::sleep(std::time::Duration::from_micros(300)); // slow enough that helpers are started
            let mut filler = Filler::new(room);
            range.into_iter().try_for_each(|row| filler.repeat(&[low_byte(row)], length(row)))?;
            filler.finish()
        })
        .map(|bytes| bytes.to_vec())
    };
    let expected: Vec<u8> = (0..PLACES.len() - 1).flat_map(|row| vec![low_byte(row); length(row)]).collect();
    for threads in [0, 1, 2, 5] {
        assert_eq!(filled(400, threads, |row| PLACES[row]).unwrap(), expected);
        for bytes in [0, 399, 401] {
            assert!(filled(bytes, threads, |row| PLACES[row]).is_err(), "{bytes} bytes, {threads} threads");
        }
    }
    assert!(filled(400, 2, |row| if row == 3 { 450 } else { PLACES[row] }).is_err());
}

#[test]
fn the_lowest_failing_row_is_reported_whatever_the_number_of_threads() {
    for threads in [1, 2, 4] {
        let mut room = vec![MaybeUninit::uninit(); 1000];
        let error = rows::fill(&mut room, 1000, 1, threads, |range, room| {
            std::thread::sleep(std::time::Duration::from_micros(100));
            match range.clone().find(|&row| row >= 331) {
                Some(row) => Err(Error::invalid("no").for_record(row as u64)),
                None => write_all(room, 0),
            }
        })
        .unwrap_err();
        assert_eq!(error.record(), Some(331));
    }
}

#[test]
fn a_panic_while_rows_are_written_reaches_the_caller() {
    for threads in [1, 3] {
        let panic = std::panic::catch_unwind(|| {
            let mut room = vec![MaybeUninit::uninit(); 100];
            rows::fill(&mut room, 100, 1, threads, |range, room| {
                std::thread::sleep(std::time::Duration::from_micros(100));
                assert!(!range.contains(&57), "record 57");
                write_all(room, 0)
            })
            .map(|bytes| bytes.to_vec())
        });
        assert!(panic.unwrap_err().downcast_ref::<&str>().is_some_and(|text| text.contains("record 57")));
    }
}

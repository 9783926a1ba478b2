//! One batch's memory, written row by row by several threads.
//!
//! The rows are disjoint slices that the compiler tells apart, so no thread can reach another's. A thread takes
//! the next block of rows when it has finished the last, which keeps threads busy when some records take longer
//! to decode than others. The memory counts as written only when every block has come back initialised.

#![expect(
    unsafe_code,
    reason = "memory is declared initialised here: one of the places where the design allows unsafe"
)]

use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::room::require_same;
use crate::error::{Error, Result};

/// Starting a thread pays only when this much work is left.
const WORTH_A_THREAD: Duration = Duration::from_micros(200);
/// Blocks for each thread: more even out the load, fewer save calls.
const BLOCKS_PER_THREAD: usize = 8;

/// Writes `rows` rows of `row_bytes` bytes each into `room`, with up to `threads` threads.
///
/// `write` is called with a range of rows and their memory, which it returns initialised; the ranges cover all
/// rows once, in no certain order. The caller's thread writes the first of them; others are started only when the
/// time that it took says that the rest is worth it. What is written where does not depend on the number of
/// threads.
///
/// # Errors
///
/// When `room` is not `rows * row_bytes` bytes; when `write` returns other bytes than it was given; the error of
/// `write` for the lowest range that fails. Ranges are taken in order and each is finished, so that is always the
/// same one, however many threads there are.
///
/// # Panics
///
/// When `write` panics, in the thread of the caller, after the others have stopped.
pub fn fill<'a>(
    room: &'a mut [MaybeUninit<u8>],
    rows: usize,
    row_bytes: usize,
    threads: usize,
    write: impl for<'b> Fn(Range<usize>, &'b mut [MaybeUninit<u8>]) -> Result<&'b mut [u8]> + Sync,
) -> Result<&'a mut [u8]> {
    if rows.checked_mul(row_bytes) != Some(room.len()) {
        return Err(Error::invalid(format!(
            "{rows} rows of {row_bytes} bytes are not the {} bytes of the batch memory",
            room.len()
        )));
    }
    fill_places(room, rows, |row| row * row_bytes, threads, write)
}

/// As [`fill`], for rows that each have their own length: row i is `room[place(i)..place(i + 1)]`.
///
/// # Errors
///
/// As [`fill`]; and when the places of 0 to `rows` do not ascend from 0 to the length of `room`.
///
/// # Panics
///
/// As [`fill`].
pub fn fill_places<'a>(
    room: &'a mut [MaybeUninit<u8>],
    rows: usize,
    place: impl Fn(usize) -> usize + Sync,
    threads: usize,
    write: impl for<'b> Fn(Range<usize>, &'b mut [MaybeUninit<u8>]) -> Result<&'b mut [u8]> + Sync,
) -> Result<&'a mut [u8]> {
    let blocks = threads.max(1).saturating_mul(BLOCKS_PER_THREAD);
    let block_rows = if threads <= 1 { rows.max(1) } else { rows.div_ceil(blocks).max(1) };
    let queue = Mutex::new(Blocks { rest: &mut *room, next: 0, rows, place: &place, block_rows });
    let stop = AtomicBool::new(false);
    let mut failures = Vec::new();
    let started = Instant::now();
    failures.extend(one_block(&queue, &write).err());
    let (left, done) = {
        let queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        (queue.rows - queue.next, queue.next.max(1))
    };
    if failures.is_empty() && left > 0 {
        let expected = started.elapsed().as_secs_f64() / done as f64 * left as f64;
        let helpers = if expected < WORTH_A_THREAD.as_secs_f64() {
            0
        } else {
            (threads - 1).min(left.div_ceil(block_rows).saturating_sub(1))
        };
        if helpers == 0 {
            // Alone, this thread does the rest at one go.
            queue.lock().unwrap_or_else(PoisonError::into_inner).block_rows = left;
        }
        failures.extend(thread::scope(|scope| {
            let work = || run(&queue, &stop, &write);
            let handles: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
            let mut failures: Vec<_> = work().into_iter().collect();
            for handle in handles {
                match handle.join() {
                    Ok(failure) => failures.extend(failure),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            failures
        }));
    }
    if let Some((_, error)) = failures.into_iter().min_by_key(|&(row, _)| row) {
        return Err(error);
    }
    let queue = queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    if queue.next != rows || !queue.rest.is_empty() {
        return Err(Error::invalid("rows of the batch memory were left unwritten"));
    }
    // SAFETY: the blocks that were taken are consecutive parts of `room`, and together all of it, since nothing is
    // left. Each was passed to `write` once and came back as `&mut [u8]` over the same memory (`require_same`; an
    // error would have returned above, and a panic of `write` never comes here), so every byte is initialised.
    Ok(unsafe { room.assume_init_mut() })
}

/// The rows that no thread has taken yet.
struct Blocks<'a, P> {
    rest: &'a mut [MaybeUninit<u8>],
    next: usize,
    rows: usize,
    place: P,
    block_rows: usize,
}

impl<'a, P: Fn(usize) -> usize> Blocks<'a, P> {
    fn take(&mut self) -> Option<(Range<usize>, &'a mut [MaybeUninit<u8>])> {
        if self.next >= self.rows {
            return None;
        }
        let end = (self.next + self.block_rows).min(self.rows);
        let bytes = (self.place)(end).checked_sub((self.place)(self.next))?;
        let (block, rest) = std::mem::take(&mut self.rest).split_at_mut_checked(bytes)?;
        self.rest = rest;
        let range = self.next..end;
        self.next = end;
        Some((range, block))
    }
}

type Failure = (usize, Error);

/// Writes one block; whether there was one.
fn one_block<P, F>(queue: &Mutex<Blocks<'_, P>>, write: &F) -> Result<bool, Failure>
where
    P: Fn(usize) -> usize,
    F: for<'b> Fn(Range<usize>, &'b mut [MaybeUninit<u8>]) -> Result<&'b mut [u8]>,
{
    let block = queue.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some((range, block)) = block else {
        return Ok(false);
    };
    let first = range.start;
    let same = (block.as_ptr().cast::<u8>(), block.len());
    let written = write(range, block).map_err(|error| (first, error))?;
    require_same(same, written).map_err(|error| (first, error))?;
    Ok(true)
}

fn run<P, F>(queue: &Mutex<Blocks<'_, P>>, stop: &AtomicBool, write: &F) -> Option<Failure>
where
    P: Fn(usize) -> usize,
    F: for<'b> Fn(Range<usize>, &'b mut [MaybeUninit<u8>]) -> Result<&'b mut [u8]>,
{
    let _stop_others_on_panic = StopOnDrop { stop, armed: thread::panicking };
    while !stop.load(Ordering::Relaxed) {
        match one_block(queue, write) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(failure) => {
                stop.store(true, Ordering::Relaxed);
                return Some(failure);
            }
        }
    }
    None
}

/// Tells the other threads to stop when this one unwinds.
struct StopOnDrop<'a> {
    stop: &'a AtomicBool,
    armed: fn() -> bool,
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        if (self.armed)() {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

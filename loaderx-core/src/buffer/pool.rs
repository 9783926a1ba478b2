#![expect(unsafe_code, reason = "memory handed out again: one of the places where the design allows unsafe")]

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use memmap2::MmapMut;

use super::memory::Memory;
use super::room::{Allocator, Room};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};

/// From this size on a block is a mapping of its own with huge pages: the allocator of the C library hands such
/// blocks back to the system at each free, and every fresh 4 KiB page costs some microseconds.
const HUGE_BYTES: usize = 32 << 20;
const DEFAULT_IDLE_BYTES: usize = 1 << 30;

/// Batch memory that comes back: what one batch leaves the next one gets.
///
/// A fresh page costs more than copying into a warm one, and beyond some 32 MiB every batch from the system's
/// allocator is fresh: there a pool makes gathers several times faster. Blocks are aligned to 64 bytes. The block
/// returned last is handed out first, since it is the one that is still in the cache.
///
/// Clones share the pool. Memory that is out when the last clone goes is freed when its batch is dropped.
#[derive(Clone)]
pub struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    max_idle_bytes: usize,
    idle: Mutex<Idle>,
}

#[derive(Default)]
struct Idle {
    // The most recently returned at the end.
    blocks: Vec<Block>,
    bytes: usize,
}

impl Pool {
    /// A pool that keeps at most 1 GiB of memory that no batch is using.
    #[must_use]
    pub fn new() -> Self {
        Self::with_idle_limit(DEFAULT_IDLE_BYTES)
    }

    /// A pool that keeps at most `bytes` of memory that no batch is using; what comes back beyond it pushes the
    /// longest unused blocks out.
    #[must_use]
    pub fn with_idle_limit(bytes: usize) -> Self {
        Self { shared: Arc::new(Shared { max_idle_bytes: bytes, idle: Mutex::default() }) }
    }

    /// Bytes that wait for the next batch.
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        self.shared.lock().bytes
    }

    #[cfg(test)]
    pub(super) fn shared_blocks(&self) -> usize {
        self.shared.lock().blocks.len()
    }

    /// Frees what no batch is using.
    pub fn clear(&self) {
        let idle = std::mem::take(&mut *self.shared.lock());
        drop(idle);
    }
}

impl Default for Pool {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let idle = self.shared.lock();
        write!(f, "Pool({} idle blocks, {} bytes)", idle.blocks.len(), idle.bytes)
    }
}

impl Allocator for Pool {
    fn room(&self, dtype: DType, elements: usize) -> Result<Room> {
        let bytes = elements.checked_mul(dtype.size()).and_then(block_bytes);
        let reused = bytes.and_then(|bytes| self.shared.take(bytes));
        let block = reused.or_else(|| Block::new(bytes?)).ok_or_else(|| {
            Error::new(
                ErrorKind::LimitExceeded,
                format!("no memory for a batch of {elements} elements of {dtype}"),
            )
            .with_hint("use a smaller batch")
        })?;
        let memory = Pooled { block: Some(block), pool: Arc::downgrade(&self.shared) };
        Room::memory(dtype, elements, Box::new(memory))
    }
}

impl Shared {
    // A panic while the lock was held cannot leave the list half changed, so poison means nothing here.
    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The most recently returned block that is large enough and not more than twice as large.
    fn take(&self, bytes: usize) -> Option<Block> {
        let mut idle = self.lock();
        let fits = |block: &Block| block.capacity() >= bytes && block.capacity() / 2 <= bytes;
        let at = idle.blocks.iter().rposition(fits)?;
        let block = idle.blocks.remove(at);
        idle.bytes -= block.capacity();
        Some(block)
    }

    fn put(&self, block: Block) {
        let mut out = Vec::new();
        let mut idle = self.lock();
        idle.bytes += block.capacity();
        idle.blocks.push(block);
        while idle.bytes > self.max_idle_bytes && !idle.blocks.is_empty() {
            let oldest = idle.blocks.remove(0);
            idle.bytes -= oldest.capacity();
            out.push(oldest);
        }
        // Unmapping takes long; nobody should wait for it.
        drop(idle);
        drop(out);
    }
}

/// The size of the block for a batch of `bytes`: a little larger, so that batches of about one size (ragged ones
/// differ each time) share blocks. `None` when it is beyond what can be addressed.
fn block_bytes(bytes: usize) -> Option<usize> {
    let step = (bytes.checked_next_power_of_two()? / 8).max(LINE);
    bytes.max(1).checked_next_multiple_of(step).filter(|&bytes| bytes <= isize::MAX.unsigned_abs())
}

const LINE: usize = 64;

/// Gives vectors of it their alignment.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Line(#[expect(dead_code, reason = "only its size and alignment count")] [u8; LINE]);

enum Block {
    /// Always of length 0: only its capacity is used, through the pointer.
    Heap(Vec<Line>),
    Mapped(MmapMut),
}

impl Block {
    fn new(bytes: usize) -> Option<Self> {
        if bytes >= HUGE_BYTES {
            let map = MmapMut::map_anon(bytes).ok()?;
            // A refusal (kernels built without huge pages) costs speed, nothing else.
            #[cfg(target_os = "linux")]
            let _refused = map.advise(memmap2::Advice::HugePage);
            return Some(Self::Mapped(map));
        }
        let mut lines = Vec::new();
        lines.try_reserve_exact(bytes.div_ceil(LINE)).ok()?;
        Some(Self::Heap(lines))
    }

    fn capacity(&self) -> usize {
        match self {
            Self::Heap(lines) => lines.capacity() * LINE,
            Self::Mapped(map) => map.len(),
        }
    }
}

/// A block in use; goes back to its pool when dropped.
struct Pooled {
    // `None` only while it is being dropped.
    block: Option<Block>,
    pool: Weak<Shared>,
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some((block, pool)) = self.block.take().zip(self.pool.upgrade()) {
            pool.put(block);
        }
    }
}

// SAFETY: the block is owned and neither reallocated nor read before it is dropped; the allocations of `Vec` and
// `MmapMut` do not move with them; `capacity` bytes are in that allocation. Only one `Pooled` has a block at a
// time, as `take` removes it from the list under the lock.
unsafe impl Memory for Pooled {
    fn start(&self) -> *const u8 {
        match &self.block {
            Some(Block::Heap(lines)) => lines.as_ptr().cast(),
            Some(Block::Mapped(map)) => map.as_ptr(),
            None => std::ptr::NonNull::dangling().as_ptr(),
        }
    }

    fn start_mut(&mut self) -> *mut u8 {
        match &mut self.block {
            Some(Block::Heap(lines)) => lines.as_mut_ptr().cast(),
            Some(Block::Mapped(map)) => map.as_mut_ptr(),
            None => std::ptr::NonNull::dangling().as_ptr(),
        }
    }

    fn capacity(&self) -> usize {
        self.block.as_ref().map_or(0, Block::capacity)
    }
}

//! The systems, a file each.

#[cfg(feature = "burn")]
mod burn;
#[cfg(feature = "candle")]
mod candle;
mod copy;
mod loaderx;

use crate::data::{Data, Random};
use crate::harness::{Outcome, System};
use crate::python::Python;
use crate::work::{Task, Work};

/// Every system that can do `work` in this build.
pub(crate) fn all<'a>(
    work: &Work,
    data: &'a Data,
    python: Option<&'a mut Python>,
) -> Outcome<Vec<System<'a>>> {
    let mut systems = Vec::new();
    loaderx::add(&mut systems, work, data)?;
    if work.task == Task::Gather {
        systems.push(copy::system(work)?);
    }
    #[cfg(feature = "burn")]
    burn::add(&mut systems, work, data)?;
    #[cfg(feature = "candle")]
    candle::add(&mut systems, work, data)?;
    if let Some(python) = python {
        python.add(&mut systems, work, data)?;
    }
    Ok(systems)
}

/// Lists of indices that a gather is measured with.
pub(crate) const BATCHES: usize = 64;

/// The batches of indices that a gather is measured with: the same for every system.
pub(crate) fn batches(len: u64, batch: usize) -> Vec<Vec<u64>> {
    let mut random = Random(99);
    (0..BATCHES).map(|_| (0..batch).map(|_| random.below(len as usize) as u64).collect()).collect()
}

//! The systems, a file each.

#[cfg(feature = "burn")]
mod burn;
#[cfg(feature = "burn-sqlite")]
mod burn_sqlite;
#[cfg(feature = "candle")]
mod candle;
mod copy;
mod loaderx;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "sqlite")]
mod sqlite;

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
        if work.codec == "raw" {
            databases(&mut systems, work, data)?;
        }
    }
    #[cfg(feature = "burn")]
    burn::add(&mut systems, work, data)?;
    #[cfg(feature = "burn-sqlite")]
    burn_sqlite::add(&mut systems, work, data)?;
    #[cfg(feature = "candle")]
    candle::add(&mut systems, work, data)?;
    if let Some(python) = python {
        python.add(&mut systems, work, data)?;
    }
    Ok(systems)
}

/// Those that keep records by number in a file of their own.
fn databases(systems: &mut Vec<System<'_>>, work: &Work, data: &Data) -> Outcome<()> {
    #[cfg(feature = "redb")]
    redb::add(systems, work, data)?;
    #[cfg(feature = "sqlite")]
    sqlite::add(systems, work, data)?;
    #[cfg(feature = "parquet")]
    parquet::add(systems, work, data)?;
    let _ = (systems, work, data);
    Ok(())
}

/// Lists of indices that a gather is measured with.
pub(crate) const BATCHES: usize = 64;

/// The batches of indices that a gather is measured with: the same for every system.
pub(crate) fn batches(len: u64, batch: usize) -> Vec<Vec<u64>> {
    let mut random = Random(99);
    (0..BATCHES).map(|_| (0..batch).map(|_| random.below(len as usize) as u64).collect()).collect()
}

use std::hint::black_box;

use heed::byteorder::BigEndian;
use heed::types::{Bytes, U64};
use heed::{Database, EnvOpenOptions};
use loaderx_core::Store;

use super::batches;
use crate::data::Data;
use crate::harness::{Outcome, System, burst};
use crate::work::{Task, Work};

/// Records as values of an LMDB database, copied one after the other into one buffer.
pub(crate) fn add(systems: &mut Vec<System<'_>>, work: &Work, data: &Data) -> Outcome<()> {
    if work.task != Task::Gather || work.codec != "raw" {
        return Ok(());
    }
    let store = Store::open(data.store(work.set, "raw"))?;
    let path = data.store(work.set, "lmdb");
    let fresh = !path.exists();
    std::fs::create_dir_all(&path)?;
    // SAFETY: the directory is this program's own, so nothing else changes the mapped file.
    let env = unsafe { EnvOpenOptions::new().map_size(2 << 30).open(&path)? };
    if fresh {
        let mut writing = env.write_txn()?;
        let records: Database<U64<BigEndian>, Bytes> = env.create_database(&mut writing, None)?;
        for index in 0..store.len() {
            records.put(&mut writing, &index, &store.get(index)?)?;
        }
        writing.commit()?;
    }
    let reading = env.read_txn()?;
    let records: Database<U64<BigEndian>, Bytes> =
        env.open_database(&reading, None)?.ok_or("the database is gone")?;
    drop(reading);
    let batches = batches(store.len(), work.batch);
    let mut step = 0;
    systems.push(System {
        name: "LMDB (heed)".into(),
        threads: 1,
        burst: burst(move || {
            let reading = env.read_txn()?;
            let mut batch = Vec::new();
            for index in &batches[step % batches.len()] {
                batch.extend_from_slice(records.get(&reading, index)?.ok_or("a record is gone")?);
            }
            black_box(batch);
            step += 1;
            Ok(())
        }),
    });
    Ok(())
}

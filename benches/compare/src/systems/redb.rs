use std::hint::black_box;

use redb::{Database, ReadableDatabase, TableDefinition};

use super::batches;
use crate::data::Data;
use crate::harness::{Outcome, System, burst};
use crate::work::Work;

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");

/// redb, a B-tree of values by number as LMDB is one, in pure Rust.
pub(crate) fn add(systems: &mut Vec<System<'_>>, work: &Work, data: &Data) -> Outcome<()> {
    let path = data.peer_file(work.set, "redb", |path| {
        let database = Database::create(path)?;
        let transaction = database.begin_write()?;
        {
            let mut table = transaction.open_table(RECORDS)?;
            data.each_record(work.set, |index, record| {
                table.insert(index, record)?;
                Ok(())
            })?;
        }
        Ok(transaction.commit()?)
    })?;
    // The database holds its pages itself; the default cache holds all of these sets.
    let database = Database::open(path)?;
    let table = database.begin_read()?.open_table(RECORDS)?;
    let batches = batches(data.records(work.set)?, work.batch);
    let mut step = 0;
    systems.push(System {
        name: "redb".into(),
        threads: 1,
        burst: burst(move || {
            // The table reads from the database, which has to outlive it.
            let _open = &database;
            let mut batch = Vec::<u8>::new();
            for &index in &batches[step % batches.len()] {
                let record = table.get(index)?.ok_or("a record is missing")?;
                batch.extend_from_slice(record.value());
            }
            black_box(&batch);
            step += 1;
            Ok(())
        }),
    });
    Ok(())
}

use std::hint::black_box;

use rusqlite::{Connection, OpenFlags};

use super::batches;
use crate::data::Data;
use crate::harness::{Outcome, System, burst};
use crate::work::Work;

/// SQLite: a table of blobs by row number, one prepared query for each record.
pub(crate) fn add(systems: &mut Vec<System<'_>>, work: &Work, data: &Data) -> Outcome<()> {
    let path = data.peer_file(work.set, "sqlite", |path| {
        let mut connection = Connection::open(path)?;
        connection.execute("CREATE TABLE records (id INTEGER PRIMARY KEY, content BLOB NOT NULL)", [])?;
        let transaction = connection.transaction()?;
        let mut insert = transaction.prepare("INSERT INTO records VALUES (?1, ?2)")?;
        data.each_record(work.set, |index, record| {
            insert.execute((i64::try_from(index)?, record))?;
            Ok(())
        })?;
        drop(insert);
        Ok(transaction.commit()?)
    })?;
    let connection = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    // Its own mapping and a cache for all of the file: SQLite at its best.
    connection.pragma_update(None, "mmap_size", 4_i64 << 30)?;
    connection.pragma_update(None, "cache_size", -1_048_576)?;
    let batches = batches(data.records(work.set)?, work.batch);
    let mut step = 0;
    systems.push(System {
        name: "SQLite, a blob a record".into(),
        threads: 1,
        burst: burst(move || {
            let mut query = connection.prepare_cached("SELECT content FROM records WHERE id = ?1")?;
            let mut batch = Vec::<u8>::new();
            for &index in &batches[step % batches.len()] {
                let mut rows = query.query([i64::try_from(index)?])?;
                let row = rows.next()?.ok_or("a record is missing")?;
                batch.extend_from_slice(row.get_ref(0)?.as_blob()?);
            }
            black_box(&batch);
            step += 1;
            Ok(())
        }),
    });
    Ok(())
}

use std::fs::File;
use std::hint::black_box;
use std::sync::Arc;

use arrow_array::{Array, BinaryArray, RecordBatch};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowSelection, RowSelector,
};

use super::batches;
use crate::data::Data;
use crate::harness::{Outcome, System, burst};
use crate::work::Work;

/// Parquet: one binary column, uncompressed, read by row selection with the page index.
pub(crate) fn add(systems: &mut Vec<System<'_>>, work: &Work, data: &Data) -> Outcome<()> {
    let path = data.peer_file(work.set, "parquet", |path| {
        let mut records = Vec::new();
        data.each_record(work.set, |_, record| {
            records.push(record.to_vec());
            Ok(())
        })?;
        let column: Arc<dyn Array> = Arc::new(BinaryArray::from_iter_values(&records));
        let batch = RecordBatch::try_from_iter([("content", column)])?;
        let mut writer = ArrowWriter::try_new(File::create(path)?, batch.schema(), None)?;
        writer.write(&batch)?;
        writer.close()?;
        Ok(())
    })?;
    let file = File::open(path)?;
    let options = ArrowReaderOptions::new().with_page_index_policy(true.into());
    let metadata = ArrowReaderMetadata::load(&file, options)?;
    let batches = batches(data.records(work.set)?, work.batch);
    let mut step = 0;
    systems.push(System {
        name: "Parquet, rows by selection".into(),
        threads: 1,
        burst: burst(move || {
            let indices = &batches[step % batches.len()];
            let mut sorted: Vec<u64> = indices.clone();
            sorted.sort_unstable();
            sorted.dedup();
            let reader =
                ParquetRecordBatchReaderBuilder::new_with_metadata(file.try_clone()?, metadata.clone())
                    .with_row_selection(selection(&sorted)?)
                    .with_batch_size(sorted.len())
                    .build()?;
            let mut found: Vec<Vec<u8>> = Vec::with_capacity(sorted.len());
            for part in reader {
                let part = part?;
                let column = part.column(0).as_any().downcast_ref::<BinaryArray>().ok_or("another type")?;
                found.extend(column.iter().flatten().map(<[u8]>::to_vec));
            }
            let mut batch = Vec::<u8>::new();
            for index in indices {
                let at = sorted.binary_search(index).map_err(|_| "a record is missing")?;
                batch.extend_from_slice(&found[at]);
            }
            black_box(&batch);
            step += 1;
            Ok(())
        }),
    });
    Ok(())
}

fn selection(sorted: &[u64]) -> Outcome<RowSelection> {
    let mut selectors = Vec::with_capacity(2 * sorted.len());
    let mut next = 0;
    for &index in sorted {
        if index > next {
            selectors.push(RowSelector::skip(usize::try_from(index - next)?));
        }
        selectors.push(RowSelector::select(1));
        next = index + 1;
    }
    Ok(selectors.into())
}

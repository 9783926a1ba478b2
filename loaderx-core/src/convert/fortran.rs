//! Arrays in Fortran order, whose first axis runs fastest: turned into records while they are read.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::array::Layout;
use super::blocks::BLOCK_BYTES;
use super::input::read_error;
use super::job::Job;
use super::sink::Sink;
use crate::error::Result;

/// Elements of an item that are read, and put into their records, together.
const GROUP: usize = 64;

impl Layout {
    /// Copies elements in Fortran order, which begin at `start` of `input`, into `sink`.
    ///
    /// A record's elements lie `records` elements apart, so a block of records is put together from one read for
    /// each element of an item; `input` is better not buffered, as a buffer would read far more than is wanted.
    pub(super) fn copy_fortran<R: Read + Seek>(
        &self,
        input: &mut R,
        start: u64,
        path: &Path,
        job: &mut Job<'_>,
        sink: &mut Sink,
    ) -> Result<()> {
        let item_bytes = self.schema()?.item_bytes();
        if item_bytes == 0 {
            return self.push_empty(job, sink);
        }
        let size = self.dtype.size();
        let places = self.c_order_places();
        // Larger blocks than in C order, as each costs a read for every element of an item.
        let per_block = (16 * BLOCK_BYTES / item_bytes).max(1) as u64;
        let mut done = 0;
        while done < self.records {
            let records = per_block.min(self.records - done);
            let Ok(count) = usize::try_from(records) else { break };
            let mut block = vec![0; count * item_bytes];
            let mut runs = vec![0; GROUP.min(places.len()) * count * size];
            for (columns, group) in (0_u64..).step_by(GROUP).zip(places.chunks(GROUP)) {
                for ((column, run), _) in (columns..).zip(runs.chunks_exact_mut(count * size)).zip(group) {
                    let at = start + (column * self.records + done) * size as u64;
                    input.seek(SeekFrom::Start(at)).map_err(|error| read_error(error, path))?;
                    input.read_exact(run).map_err(|error| read_error(error, path))?;
                }
                // Record by record, as a walk down one column would miss the cache at every element.
                for (index, record) in block.chunks_exact_mut(item_bytes).enumerate() {
                    for (run, &place) in runs.chunks_exact(count * size).zip(group) {
                        let element = run.get(index * size..(index + 1) * size);
                        let target = record.get_mut(place * size..(place + 1) * size);
                        if let (Some(element), Some(target)) = (element, target) {
                            target.copy_from_slice(element);
                        }
                    }
                }
            }
            self.to_little_endian(&mut block);
            sink.push_all(&block).map_err(|error| error.at_path(path))?;
            done += records;
            job.meter.advance(records, records * item_bytes as u64)?;
        }
        Ok(())
    }

    /// For each element of an item in Fortran order, its place in C order.
    fn c_order_places(&self) -> Vec<usize> {
        let shape = &self.item_shape;
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis];
        }
        let elements: usize = shape.iter().product();
        let mut index = vec![0; shape.len()];
        let mut places = Vec::with_capacity(elements);
        for _ in 0..elements {
            places.push(index.iter().zip(&strides).map(|(i, stride)| i * stride).sum());
            // Counts up with the first axis fastest.
            for (i, &side) in index.iter_mut().zip(shape) {
                *i += 1;
                if *i < side {
                    break;
                }
                *i = 0;
            }
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn places_turn_fortran_order_into_c_order() {
        let layout = Layout::new(DType::U8, &[5, 2, 3]).unwrap();
        // The element (a, b) has place 3 a + b; in Fortran order a runs fastest.
        assert_eq!(layout.c_order_places(), [0, 3, 1, 4, 2, 5]);
        let scalars = Layout::new(DType::U8, &[5]).unwrap();
        assert_eq!(scalars.c_order_places(), [0]);
    }
}

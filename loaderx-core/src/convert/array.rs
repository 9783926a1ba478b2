//! One array in a file, its first axis counting the records: the common part of IDX, npy and safetensors.

use std::io::Read;
use std::path::Path;

use super::blocks::BLOCK_BYTES;
use super::input::read_error;
use super::job::Job;
use super::sink::Sink;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::schema::Schema;

/// How the elements of an array lie in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) dtype: DType,
    pub(super) big_endian: bool,
    pub(super) records: u64,
    pub(super) item_shape: Vec<usize>,
}

impl Layout {
    /// From a whole shape, whose first side counts the records.
    #[cfg(any(feature = "npy", feature = "safetensors"))]
    pub(super) fn new(dtype: DType, shape: &[u64]) -> Result<Self> {
        let Some((&records, item)) = shape.split_first() else {
            return Err(Error::invalid(
                "the array is a single scalar, its shape has no side to count records",
            )
            .with_hint("reshape it to (1,)"));
        };
        // 64-bit machines only: every side fits.
        let item_shape = item
            .iter()
            .map(|&side| usize::try_from(side))
            .collect::<Result<_, _>>()
            .map_err(|_| Error::corrupt(format!("the shape {shape:?} is too large")))?;
        Ok(Self { dtype, big_endian: false, records, item_shape })
    }

    pub(super) fn schema(&self) -> Result<Schema> {
        Schema::dense(self.dtype, &self.item_shape)
    }

    /// Bytes of all elements.
    pub(super) fn content_bytes(&self) -> Result<u64> {
        let item = self.schema()?.item_bytes() as u64;
        self.records
            .checked_mul(item)
            .ok_or_else(|| Error::corrupt(format!("{self} would be more bytes than any file holds")))
    }

    /// The error for content of another length than the header promises.
    pub(super) fn wrong_length(&self, found: u64) -> Error {
        match self.content_bytes() {
            Ok(wanted) => {
                let what = if found < wanted { "is cut short" } else { "goes on after its last element" };
                Error::corrupt(format!("the file {what}: {self} are {wanted} bytes, found {found}"))
                    .with_hint("fetch the file again, or check what wrote it")
            }
            Err(error) => error,
        }
    }

    /// Copies the elements from `input` into `sink`, block by block.
    pub(super) fn copy(
        &self,
        input: &mut dyn Read,
        path: &Path,
        job: &mut Job<'_>,
        sink: &mut Sink,
    ) -> Result<()> {
        let item_bytes = self.schema()?.item_bytes();
        if item_bytes == 0 {
            return self.push_empty(job, sink);
        }
        let per_block = (BLOCK_BYTES / item_bytes).max(1) as u64;
        let mut block = Vec::new();
        let mut done = 0;
        while done < self.records {
            let records = per_block.min(self.records - done);
            let wanted = records * item_bytes as u64;
            block.clear();
            input.take(wanted).read_to_end(&mut block).map_err(|error| read_error(error, path))?;
            if (block.len() as u64) < wanted {
                let found = done * item_bytes as u64 + block.len() as u64;
                return Err(self.wrong_length(found).for_record(found / item_bytes as u64).at_path(path));
            }
            self.to_little_endian(&mut block);
            sink.push_all(&block).map_err(|error| error.at_path(path))?;
            done += records;
            job.meter.advance(records, wanted)?;
        }
        Ok(())
    }

    pub(super) fn push_empty(&self, job: &mut Job<'_>, sink: &mut Sink) -> Result<()> {
        for _ in 0..self.records {
            sink.push(&[])?;
        }
        job.meter.advance(self.records, 0)
    }

    pub(super) fn to_little_endian(&self, bytes: &mut [u8]) {
        let size = self.dtype.size();
        if self.big_endian && size > 1 {
            bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
        }
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} records of {} {:?}", self.records, self.dtype, self.item_shape)
    }
}

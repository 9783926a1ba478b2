use burn::data::dataset::{Dataset, DatasetError, SqliteDataset, SqliteDatasetWriter};
use loaderx_core::Dense;
use serde::{Deserialize, Serialize};

use super::burn::{Careful, Image, system};
use crate::data::Data;
use crate::harness::{Outcome, System};
use crate::work::{Task, Work};

/// An item as it is stored: pixels as bytes, and the label.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Item {
    image: Vec<u8>,
    label: u8,
}

impl Image for Item {
    fn pixels(&self) -> impl Iterator<Item = f32> {
        self.image.iter().map(|&pixel| f32::from(pixel))
    }

    fn label(&self) -> u8 {
        self.label
    }
}

/// The data set with the error type that burn's loader takes.
struct Stored(SqliteDataset<Item>);

impl Dataset<Item> for Stored {
    fn get(&self, index: usize) -> Result<Item, DatasetError> {
        self.0.get(index).map_err(DatasetError::new)
    }

    fn get_many(&self, indexes: Vec<usize>) -> Result<Vec<Item>, DatasetError> {
        self.0.get_many(indexes).map_err(DatasetError::new)
    }

    fn len(&self) -> usize {
        self.0.len()
    }
}

/// burn's loader over a data set in a SQLite file, in the form in which burn writes one itself.
pub(crate) fn add(systems: &mut Vec<System<'_>>, work: &Work, data: &Data) -> Outcome<()> {
    if work.task != Task::LoadFloat {
        return Ok(());
    }
    let path = data.peer_file(work.set, "burn-sqlite", |path| {
        let images = Dense::open(data.store(work.set, work.codec))?;
        let labels = Dense::open(data.labels())?;
        let everything: Vec<u64> = (0..images.len()).collect();
        let (pixels, _) = images.batch(&everything)?.into_vec::<u8>()?;
        let (labels, _) = labels.batch(&everything)?.into_vec::<u8>()?;
        let mut writer = SqliteDatasetWriter::new(path, true)?;
        for (pixels, label) in pixels.chunks_exact(784).zip(labels) {
            writer.write("train", &Item { image: pixels.to_vec(), label })?;
        }
        Ok(writer.set_completed()?)
    })?;
    for workers in [0, 2] {
        let dataset = Stored(SqliteDataset::from_db_file(&path, "train")?);
        system(systems, "SqliteDataset, a one-Vec batcher", Careful, dataset, workers, work.batch);
    }
    Ok(())
}

//! The pieces of work that systems are compared on.

use crate::data::{Data, Set};

/// What one batch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// Draw indices.
    Draw {
        /// With replacement, or a permutation of each cycle.
        cyclic: bool,
    },
    /// Gather the records at given random indices.
    Gather,
    /// The whole loader: draw, gather image and label, hand over.
    Load,
    /// The whole loader, images as normalised `f32`.
    LoadFloat,
}

/// One piece of work.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    /// Its name in the tables.
    pub(crate) name: String,
    /// What is done.
    pub(crate) task: Task,
    /// On which data, stored how.
    pub(crate) set: Set,
    /// The codec of the stores.
    pub(crate) codec: &'static str,
    /// Records of a batch.
    pub(crate) batch: usize,
    /// Output bytes of a batch.
    pub(crate) bytes: u64,
}

/// All of them.
pub(crate) fn all(data: &Data) -> Vec<Work> {
    let mut works = Vec::new();
    let mut add = |name: String, task, set: Set, codec, batch: usize, bytes: u64| {
        works.push(Work { name, task, set, codec, batch, bytes });
    };
    for batch in [256, 8192] {
        for cyclic in [false, true] {
            let mode = if cyclic { "cyclic" } else { "iid" };
            add(
                format!("draw {batch} {mode}"),
                Task::Draw { cyclic },
                Set::Mnist,
                "raw",
                batch,
                batch as u64 * 8,
            );
        }
    }
    for set in [Set::Mnist, Set::Tokens, Set::Images, Set::Ragged, Set::Snippets] {
        for codec in ["raw", "zstd", "zstd_dict"] {
            let bytes = 256.0 * data.mean_record_bytes(set);
            add(format!("gather 256 {} {codec}", set.name()), Task::Gather, set, codec, 256, bytes as u64);
        }
    }
    add("load 256 mnist image + label".into(), Task::Load, Set::Mnist, "raw", 256, 256 * 785);
    add("load 256 mnist image as f32".into(), Task::LoadFloat, Set::Mnist, "raw", 256, 256 * (784 * 4 + 1));
    works
}

//! Runs of operations in a directory in memory that a fault ends, and the states that may be found afterwards.

use loaderx_core::io::memory::MemoryDisk;
use loaderx_core::{CreateOptions, Error, OpenOptions, Store};

use crate::churn::Operation;
use crate::model::Model;

/// What a run has done when it ended, by itself or by a fault.
#[derive(Debug)]
pub struct Outcome {
    /// The records that are durable: those of the last sync, delete, compact or opening for writing.
    pub durable: Model,
    /// The records after the last operation that succeeded.
    pub current: Model,
    /// The records if the operation that did not finish had finished.
    pub after: Model,
    /// How it ended.
    pub error: Option<Error>,
}

impl Outcome {
    /// A run that has not begun, of a store that holds `base` durably.
    #[must_use]
    pub fn start(base: &Model) -> Self {
        Self { durable: base.clone(), current: base.clone(), after: base.clone(), error: None }
    }

    /// Does `operations` until one fails.
    pub fn run(&mut self, store: &mut Store, operations: &[Operation]) {
        for operation in operations {
            self.after = self.current.clone();
            operation.apply_to_model(&mut self.after);
            if let Err(error) = operation.apply(store) {
                self.error = Some(error);
                return;
            }
            self.current = self.after.clone();
            if !matches!(operation, Operation::Append(_)) {
                self.durable = self.current.clone();
            }
        }
    }

    /// Whether `store` is what a process that was killed may leave: what it had finished, or one more.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn allows_after_kill(&self, store: &Store) -> Result<Model, String> {
        for model in [&self.current, &self.after] {
            if model.compare(store).is_ok() {
                return Ok(model.clone());
            }
        }
        Err(format!(
            "neither before ({:?}) nor after ({:?})",
            self.current.compare(store),
            self.after.compare(store)
        ))
    }

    /// Whether `store` is what a power cut may leave: what was durable and any prefix of what was appended since, or
    /// the whole of what was being done.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn allows_after_power_cut(&self, store: &Store) -> Result<Model, String> {
        let found = store.len() as usize;
        let mut wrong = Vec::new();
        for model in [&self.current, &self.after] {
            let is_prefix = model.records.starts_with(&self.durable.records);
            let mut candidate = model.clone();
            if is_prefix && (self.durable.records.len()..=model.records.len()).contains(&found) {
                candidate.records.truncate(found);
            }
            match candidate.compare(store) {
                Ok(()) => return Ok(candidate),
                Err(difference) => wrong.push(difference),
            }
        }
        Err(format!(
            "{found} records; {} were durable, {} appended, {} would have been: {}",
            self.durable.records.len(),
            self.current.records.len(),
            self.after.records.len(),
            wrong.join("; "),
        ))
    }
}

/// A store in memory, synced, that holds what `operations` make, and its model.
#[must_use]
pub fn prepare(options: &CreateOptions, operations: &[Operation]) -> (MemoryDisk, Model) {
    let disk = MemoryDisk::new();
    let mut store = options.create_in(disk.directory()).unwrap();
    let mut model = Model::default();
    for operation in operations {
        operation.apply(&mut store).unwrap();
        operation.apply_to_model(&mut model);
    }
    store.sync().unwrap();
    drop(store);
    disk.restart();
    (disk, model)
}

/// Opens the store in `disk` for writing.
///
/// # Errors
///
/// The store's.
pub fn open_writable(disk: &MemoryDisk) -> loaderx_core::Result<Store> {
    OpenOptions::new().writable(true).open_in(disk.directory())
}

/// Reads the store without recovering it: what it gives must be true, or an error.
///
/// # Errors
///
/// A record that is wrong, as no record of the possible states `models` stands at its place.
pub fn check_reader(disk: &MemoryDisk, models: &[&Model]) -> Result<(), String> {
    let Ok(store) = OpenOptions::new().verify(true).open_in(disk.directory()) else { return Ok(()) };
    for index in 0..store.len() {
        if let Ok(record) = store.get(index)
            && !models.iter().any(|model| model.records.get(index as usize) == Some(&record))
        {
            return Err(format!("a reader is given {} wrong bytes as record {index}", record.len()));
        }
    }
    Ok(())
}

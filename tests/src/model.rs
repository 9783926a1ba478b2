//! What a store means: a vector of byte strings.

use std::mem::MaybeUninit;

use loaderx_core::Store;

/// The records of a store, by index, in the most obvious way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// The records.
    pub records: Vec<Vec<u8>>,
}

impl Model {
    /// Adds records at the end; returns the index of the first.
    pub fn append(&mut self, records: &[Vec<u8>]) -> u64 {
        let first = self.records.len() as u64;
        self.records.extend_from_slice(records);
        first
    }

    /// Removes records: from the highest index to the lowest, the last record takes the place of the removed.
    pub fn delete(&mut self, indices: &[u64]) -> u64 {
        let mut indices = indices.to_vec();
        indices.sort_unstable();
        indices.dedup();
        for &index in indices.iter().rev() {
            self.records.swap_remove(usize::try_from(index).unwrap());
        }
        indices.len() as u64
    }

    /// Whether `store` holds these records, through the fewest calls; the error says what differs.
    ///
    /// # Errors
    ///
    /// The first difference, or the first error of the store.
    pub fn compare(&self, store: &Store) -> Result<(), String> {
        if store.len() != self.records.len() as u64 {
            return Err(format!("the store has {} records, not {}", store.len(), self.records.len()));
        }
        let indices: Vec<u64> = (0..store.len()).collect();
        let (bytes, offsets) = store.gather_packed(&indices).map_err(|error| error.to_string())?;
        if offsets.len() != indices.len() + 1
            || offsets[0] != 0
            || offsets[indices.len()] != bytes.len() as u64
        {
            return Err(format!(
                "{} records in {} bytes have the offsets {offsets:?}",
                indices.len(),
                bytes.len()
            ));
        }
        for (i, record) in self.records.iter().enumerate() {
            let found = &bytes[offsets[i] as usize..offsets[i + 1] as usize];
            if found != record {
                return Err(format!("record {i} is {} not {}", brief(found), brief(record)));
            }
        }
        Ok(())
    }

    /// Panics unless `store` holds exactly these records, whichever way it is asked.
    pub fn assert_holds(&self, store: &Store) {
        self.compare(store).unwrap_or_else(|difference| panic!("{difference}"));
        let count = self.records.len() as u64;
        assert_eq!(store.is_empty(), count == 0);
        // Backwards, and every third twice: an order that no sequential shortcut gets right by luck.
        let indices: Vec<u64> =
            (0..count).rev().flat_map(|i| std::iter::repeat_n(i, if i % 3 == 0 { 2 } else { 1 })).collect();
        let expected: Vec<&[u8]> = indices.iter().map(|&i| self.records[i as usize].as_slice()).collect();

        let mut lengths = vec![7];
        store.lengths(&indices, &mut lengths).unwrap();
        assert_eq!(lengths, expected.iter().map(|record| record.len() as u64).collect::<Vec<_>>());

        let mut offsets = vec![0];
        for record in &expected {
            offsets.push(offsets[offsets.len() - 1] + record.len());
        }
        let mut room = vec![MaybeUninit::uninit(); offsets[offsets.len() - 1]];
        let gathered = store.gather_at(&indices, &offsets, &mut room).unwrap();
        assert!(gathered == expected.concat(), "gather_at differs");

        let mut visited = Vec::new();
        store
            .visit(&indices, |position, record| {
                visited.push((position, record.to_vec()));
                Ok(())
            })
            .unwrap();
        visited.sort_unstable_by_key(|&(position, _)| position);
        assert_eq!(visited.len(), expected.len());
        for (i, (position, record)) in visited.iter().enumerate() {
            assert!(*position == i && record == expected[i], "visit differs at {i}");
        }
        for (i, record) in self.records.iter().enumerate() {
            assert!(store.get(i as u64).unwrap() == *record, "get({i}) differs");
        }
        for beyond in [count, count + 1, u64::from(u32::MAX), u64::MAX] {
            assert_eq!(store.get(beyond).unwrap_err().kind(), loaderx_core::ErrorKind::OutOfRange);
        }
    }
}

fn brief(bytes: &[u8]) -> String {
    let start: Vec<String> = bytes.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{} bytes [{}..]", bytes.len(), start.join(" "))
}

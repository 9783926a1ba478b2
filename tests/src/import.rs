//! What the import tests share: the fixtures, what is in them, and reading a store back whole.

use std::path::{Path, PathBuf};

use loaderx_core::{DType, Error, Store};

/// The path of a file that `make.py` wrote.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/import").join(name)
}

/// Element type, item shape and the bytes of each record.
pub type Content = (DType, Vec<usize>, Vec<Vec<u8>>);

/// Reads every record of a store.
///
/// # Panics
///
/// When the store cannot be opened or read.
pub fn content(store: impl AsRef<Path>) -> Content {
    let store = Store::open(store).unwrap();
    let schema = store.schema().unwrap().clone();
    let records = (0..store.len()).map(|index| store.get(index).unwrap()).collect();
    (schema.dtype(), schema.item_shape().to_vec(), records)
}

/// The bytes of `count` elements of `dtype` that count up as `make.py` says.
pub fn counted(count: usize, dtype: DType) -> Vec<u8> {
    (0..count as i64)
        .flat_map(|i| {
            let value = (i * 7 + 3) % 251;
            let signed = value - 100;
            match dtype {
                DType::Bool => vec![u8::from(value % 2 == 1)],
                DType::U8 => vec![value as u8],
                DType::U16 => (value as u16).to_le_bytes().to_vec(),
                DType::U32 => (value as u32).to_le_bytes().to_vec(),
                DType::U64 => (value as u64).to_le_bytes().to_vec(),
                DType::I8 => (signed as i8).to_le_bytes().to_vec(),
                DType::I16 => (signed as i16).to_le_bytes().to_vec(),
                DType::I32 => (signed as i32).to_le_bytes().to_vec(),
                DType::I64 => signed.to_le_bytes().to_vec(),
                DType::F16 => half::f16::from_f64(value as f64).to_le_bytes().to_vec(),
                DType::F32 => (value as f32).to_le_bytes().to_vec(),
                DType::F64 => (value as f64).to_le_bytes().to_vec(),
                other => unreachable!("make.py writes no {other}"),
            }
        })
        .collect()
}

/// The records that `count` elements make when each has `per_record` of them.
pub fn counted_records(records: usize, per_record: usize, dtype: DType) -> Vec<Vec<u8>> {
    let bytes = counted(records * per_record, dtype);
    bytes.chunks(per_record * dtype.size()).map(<[u8]>::to_vec).collect()
}

/// The texts that `make.py` puts into every table.
pub const TEXTS: [&str; 5] = ["one", "", "drei ü", "4,5", "say \"six\""];

/// The texts as records.
pub fn texts() -> Vec<Vec<u8>> {
    TEXTS.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Checks that an import failed, named its input, and left nothing in the directory of its destination.
///
/// # Panics
///
/// When any of that is not so.
pub fn check_refused<T: std::fmt::Debug>(result: Result<T, Error>, dest: &Path, saying: &[&str]) -> Error {
    let error = result.unwrap_err();
    let text = error.to_string();
    for part in saying {
        assert!(text.contains(part), "{text:?} does not say {part:?}");
    }
    let left: Vec<_> = std::fs::read_dir(dest.parent().unwrap()).unwrap().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    error
}

//! The obvious reader of `.npy` files, for what the golden files hold: C order, version 1 headers.

use std::path::Path;

/// One array.
#[derive(Clone, Debug)]
pub struct Npy {
    /// NumPy's type string, such as `<f4`.
    pub descr: String,
    /// Its sides.
    pub shape: Vec<usize>,
    /// Its elements, as they lie in the file.
    pub bytes: Vec<u8>,
}

impl Npy {
    /// Reads the file at `path`, which has to be as expected.
    #[must_use]
    pub fn read(path: &Path) -> Self {
        let file = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(file[..8], *b"\x93NUMPY\x01\x00", "{}", path.display());
        let header_end = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        let header = std::str::from_utf8(&file[10..header_end]).unwrap();
        assert!(header.contains("'fortran_order': False"), "{}: {header}", path.display());
        let after = |key: &str| {
            let at = header.find(key).unwrap_or_else(|| panic!("{}: {header}", path.display()));
            &header[at + key.len()..]
        };
        let descr = after("'descr': '").split('\'').next().unwrap().to_owned();
        let shape = after("'shape': (").split(')').next().unwrap();
        let shape = shape.split(',').filter(|side| !side.trim().is_empty());
        let shape = shape.map(|side| side.trim().parse().unwrap()).collect();
        Self { descr, shape, bytes: file[header_end..].to_vec() }
    }

    /// The elements of a `<u8` or `<i8` array.
    #[must_use]
    pub fn integers(&self) -> Vec<u64> {
        assert!(["<u8", "<i8"].contains(&self.descr.as_str()), "{}", self.descr);
        self.bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect()
    }
}

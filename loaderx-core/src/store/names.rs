//! The files of a store's directory.

pub(super) const META: &str = "meta.zr";
/// `meta.zr` before it is complete; a store exists from the moment it has its final name.
pub(super) const META_NEW: &str = "meta.zr.new";
pub(super) const CHECKS: &str = "check.zr";
pub(super) const DICTIONARY: &str = "dict.zr";
pub(super) const JOURNAL: &str = "journal.zr";

/// `N.zr`.
pub(super) fn chunk(chunk: u16) -> String {
    format!("{chunk}.zr")
}

/// The `N` of `N.zr`, for names that [`chunk`] makes.
pub(super) fn parse_chunk(name: &str) -> Option<u16> {
    let number = name.strip_suffix(".zr")?.parse().ok()?;
    (chunk(number) == name).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_chunk_names_count() {
        assert_eq!(parse_chunk("0.zr"), Some(0));
        assert_eq!(parse_chunk("65535.zr"), Some(65535));
        for name in ["65536.zr", "00.zr", "+1.zr", "-1.zr", ".zr", "1", "meta.zr", "1.zr.new"] {
            assert_eq!(parse_chunk(name), None, "{name}");
        }
    }
}

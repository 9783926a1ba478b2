//! Directories of part files, snapshots of the Hugging Face hub among them: which files, of which split, all of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::input::{files_below, relative_name};
use super::options::ImportOptions;
use crate::error::{Error, ErrorKind, Result};

/// Folders and files of these names are the splits that they say.
const SPLITS: [&str; 7] = ["train", "test", "validation", "valid", "val", "dev", "eval"];

/// The part files of an input: the file itself, or those below the directory whose names end so, sorted.
///
/// Parts that count themselves (`train-00000-of-00002.parquet`) must all be there, and of several splits one must be
/// chosen: they would be mixed otherwise.
pub(super) fn part_files(
    source: &Path,
    extensions: &[&str],
    options: &ImportOptions,
) -> Result<Vec<PathBuf>> {
    let wanted = options.split.as_deref();
    if !source.is_dir() {
        if let Some(wanted) = wanted {
            return Err(Error::invalid(format!("a single file has no split {wanted:?} to choose"))
                .at_path(source)
                .with_hint("name the directory of the part files"));
        }
        return Ok(vec![source.to_path_buf()]);
    }
    let mut parts = Vec::new();
    for path in files_below(source)? {
        let name = relative_name(source, &path)?;
        if extensions.iter().any(|extension| name.to_lowercase().ends_with(extension)) {
            let part = Part::of(&name);
            parts.push((path, part));
        }
    }
    if parts.is_empty() {
        return Err(Error::invalid(format!("no file of the directory ends in {}", extensions.join(" or ")))
            .at_path(source));
    }
    let mut splits: Vec<String> = parts.iter().filter_map(|(_, part)| part.split.clone()).collect();
    splits.sort_unstable();
    splits.dedup();
    match wanted {
        Some(wanted) if !splits.iter().any(|split| split == wanted) => {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("the directory has no split {wanted:?}; it has {}", listed(&splits)),
            )
            .at_path(source));
        }
        Some(wanted) => parts.retain(|(_, part)| part.split.as_deref() == Some(wanted)),
        None if splits.len() > 1 => {
            return Err(Error::invalid(format!("the directory holds several splits: {}", listed(&splits)))
                .at_path(source)
                .with_hint("import one at a time, naming it (--split on the command line)"));
        }
        None => {}
    }
    check_complete(&parts).map_err(|error| error.at_path(source))?;
    Ok(parts.into_iter().map(|(path, _)| path).collect())
}

fn listed(splits: &[String]) -> String {
    if splits.is_empty() { "none".to_owned() } else { splits.join(", ") }
}

/// Refuses a series of parts of which some are missing.
fn check_complete(parts: &[(PathBuf, Part)]) -> Result<()> {
    let mut series: BTreeMap<(&str, u64), Vec<u64>> = BTreeMap::new();
    for (_, part) in parts {
        if let Some((number, of)) = part.count {
            series.entry((&part.series, of)).or_default().push(number);
        }
    }
    for ((name, of), numbers) in series {
        if let Some(missing) = (0..of).find(|number| !numbers.contains(number)) {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("part {missing} of the {of} of {name:?} is missing; {} are there", numbers.len()),
            )
            .with_hint("fetch the missing parts"));
        }
    }
    Ok(())
}

/// What a part file's name says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Part {
    split: Option<String>,
    /// Its path up to the counter.
    series: String,
    /// Its number, and how many there are.
    count: Option<(u64, u64)>,
}

impl Part {
    /// By a path below the source, such as `data/train-00000-of-00002.parquet` or `train/0000.parquet`.
    fn of(path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let stem = name.split('.').next().unwrap_or(name);
        let folder_split = folder.rsplit('/').find(|folder| SPLITS.contains(folder)).map(str::to_owned);
        let file_split = SPLITS.contains(&stem).then(|| stem.to_owned());
        let Some((prefix, number, of)) = counter(stem) else {
            return Self { split: file_split.or(folder_split), ..Self::default() };
        };
        // Saved datasets name their parts `data-...` in a folder for each split.
        let split = if prefix == "data" { folder_split } else { Some(prefix.to_owned()) };
        Self { split, series: format!("{folder}/{prefix}"), count: Some((number, of)) }
    }
}

/// Prefix, number and count of `train-00000-of-00002`, which a hash may follow.
fn counter(stem: &str) -> Option<(&str, u64, u64)> {
    let (before, after) = stem.split_once("-of-")?;
    let (prefix, number) = before.rsplit_once('-')?;
    let of = after.split('-').next()?;
    Some((prefix, number.parse().ok()?, of.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_split_and_number() {
        let part = |path| {
            let part = Part::of(path);
            (part.split.unwrap_or_default(), part.count)
        };
        for (path, split, count) in [
            ("data/train-00000-of-00002.parquet", "train", Some((0, 2))),
            ("data/test-00001-of-00002-a09b74b3ef9c3b56.parquet", "test", Some((1, 2))),
            ("train/data-00000-of-00001.arrow", "train", Some((0, 1))),
            ("data-00000-of-00001.arrow", "", Some((0, 1))),
            ("plain_text/validation/0000.parquet", "validation", None),
            ("test.parquet", "test", None),
            ("part-0.parquet", "", None),
            ("year=2024/part-0.parquet", "", None),
        ] {
            assert_eq!(part(path), (split.to_owned(), count), "{path}");
        }
    }
}

//! The modules of `loaderx-core` use each other only as ARCHITECTURE.md says: no cycles, no shortcuts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// What each module may use. Everything may use `error`.
const MAY_USE: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("dtype", &[]),
    ("schema", &["dtype"]),
    ("format", &[]),
    ("io", &[]),
    ("codec", &["format"]),
    ("buffer", &["dtype"]),
    ("store", &["codec", "dtype", "format", "io", "schema"]),
    ("view", &["buffer", "codec", "dtype", "format", "schema", "store"]),
    ("sampler", &[]),
    ("loader", &["buffer", "dtype", "sampler", "view"]),
    ("convert", &["buffer", "codec", "dtype", "format", "schema", "store", "view"]),
];

/// Largest source file, in lines without its `mod tests`.
const MAX_LINES: usize = 500;

fn core_src() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../loaderx-core/src")
}

fn rust_files(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// The file's code before its unit tests, without comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let body = text.split("#[cfg(test)]\nmod tests").next().unwrap();
    body.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// Names after every `crate::`, those of a `crate::{a, b}` among them.
fn used_modules(code: &str) -> Vec<String> {
    let mut used = Vec::new();
    for tail in code.split("crate::").skip(1) {
        if let Some(group) = tail.strip_prefix('{') {
            let mut depth = 0;
            let mut word = String::new();
            for c in group.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => used.push(std::mem::take(&mut word)),
                    _ if depth == 0 => word.push(c),
                    _ => {}
                }
            }
            used.push(word);
        } else {
            used.push(tail.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect());
        }
    }
    used.iter()
        .map(|word| word.trim().split("::").next().unwrap().to_owned())
        .filter(|word| !word.is_empty())
        .collect()
}

fn module_of(path: &Path) -> String {
    let relative = path.strip_prefix(core_src()).unwrap();
    relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs").to_owned()
}

#[test]
fn modules_use_only_the_layers_below_them() {
    let allowed: BTreeMap<_, _> = MAY_USE.iter().copied().collect();
    let mut files = Vec::new();
    rust_files(&core_src(), &mut files);
    let mut checked = 0;
    for path in files.iter().filter(|path| module_of(path) != "lib") {
        let module = module_of(path);
        let below = allowed
            .get(module.as_str())
            .unwrap_or_else(|| panic!("{} has no line in MAY_USE", path.display()));
        for used in used_modules(&code(path)) {
            // Re-exports at the crate's root and macros have no layer of their own.
            let is_module = allowed.contains_key(used.as_str());
            let fine = !is_module || used == module || used == "error" || below.contains(&used.as_str());
            assert!(fine, "{} uses `{used}`, which is not below `{module}`", path.display());
            checked += 1;
        }
    }
    assert!(checked > 20, "only {checked} uses were found: is the search broken?");
}

#[test]
fn the_layers_have_no_cycle() {
    for (place, (module, below)) in MAY_USE.iter().enumerate() {
        for used in *below {
            let at = MAY_USE.iter().position(|(name, _)| name == used).unwrap();
            assert!(at < place, "`{module}` may use `{used}`, which stands after it");
        }
    }
}

#[test]
fn no_source_file_is_long() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for packages in
        [root.clone(), root.join("examples"), root.join("benches")].iter().filter(|dir| dir.is_dir())
    {
        for entry in fs::read_dir(packages).unwrap() {
            let src = entry.unwrap().path().join("src");
            if src.is_dir() {
                rust_files(&src, &mut files);
            }
        }
    }
    assert!(files.len() > 20, "only {} files were found", files.len());
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.split("#[cfg(test)]\nmod tests").next().unwrap().lines().count();
        assert!(lines <= MAX_LINES, "{} has {lines} lines, at most {MAX_LINES} are readable", path.display());
    }
}

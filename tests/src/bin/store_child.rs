//! A process that works on a store, for tests that kill it or need a second one.
//!
//! ```text
//! store_child churn PATH SEED MAX      random operations for ever; a line after each
//! store_child grow PATH COUNT          appends until there are COUNT records, then says so
//! store_child watch PATH COUNT         reads what is appended until COUNT records were seen
//! store_child hold PATH read|write     opens, says so, keeps it open until its input ends
//! store_child hold-after-append PATH   appends one record, says so, keeps the store open
//! store_child create PATH              makes the stores PATH/0, PATH/1 and so on for ever; a line after each
//! store_child once PATH read|append|delete|compact|recover
//! ```
//!
//! Errors are lines too: `error KIND: text`.
#![forbid(unsafe_code)]

use std::io::Read;

use loaderx_core::{Codec, CreateOptions, DType, Error, OpenOptions, Result, Schema, Store};
use loaderx_tests::churn::Churn;
use loaderx_tests::process::record_of;
use loaderx_tests::random::Random;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match arguments[..] {
        ["churn", path, seed, max] => churn(path, seed.parse().unwrap(), max.parse().unwrap()),
        ["grow", path, count] => grow(path, count.parse().unwrap()),
        ["watch", path, count] => watch(path, count.parse().unwrap()),
        ["hold", path, how] => hold(path, how == "write"),
        ["hold-after-append", path] => hold_after_append(path),
        ["create", path] => create(path),
        ["once", path, what] => once(path, what),
        _ => panic!("unknown arguments {arguments:?}"),
    };
    if let Err(error) = result {
        report(&error);
    }
}

fn report(error: &Error) {
    println!("error {:?}: {error}", error.kind());
}

fn churn(path: &str, seed: u64, max: usize) -> Result<()> {
    let mut store = Store::open_writable(path)?;
    println!("ready {}", store.len());
    let mut churn = Churn::new(seed, max);
    for step in 0_u64.. {
        churn.step(store.len() as usize).apply(&mut store)?;
        println!("{step}");
    }
    Ok(())
}

fn grow(path: &str, count: u64) -> Result<()> {
    let store = Store::open_writable(path)?;
    let mut random = Random::new(count);
    while store.len() < count {
        let first = store.len();
        let end = count.min(first + 1 + random.below(40));
        let records: Vec<Vec<u8>> = (first..end).map(record_of).collect();
        store.append_slices(records.iter().map(Vec::as_slice))?;
        if random.one_in(20) {
            store.sync()?;
        }
    }
    println!("ok {}", store.len());
    Ok(())
}

fn watch(path: &str, count: u64) -> Result<()> {
    let store = Store::open(path)?;
    println!("ready {}", store.len());
    let (mut seen, mut random, mut changes) = (0, Random::new(count), 0);
    while seen < count {
        let length = store.len();
        assert!(length >= seen, "the store went from {seen} to {length} records");
        changes += u64::from(length > seen);
        let mut indices: Vec<u64> = (seen..length).collect();
        if length > 0 {
            indices.extend((0..8).map(|_| random.below(length)));
        }
        let (bytes, offsets) = store.gather_packed(&indices)?;
        for (i, &index) in indices.iter().enumerate() {
            let record = &bytes[offsets[i] as usize..offsets[i + 1] as usize];
            assert!(record == record_of(index), "record {index} of {length} is wrong");
        }
        seen = length;
    }
    println!("ok {seen} {changes}");
    Ok(())
}

fn hold(path: &str, writable: bool) -> Result<()> {
    let store = OpenOptions::new().writable(writable).open(path)?;
    println!("ok {}", store.len());
    // The parent closes our input when it is done with us.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    drop(store);
    Ok(())
}

fn hold_after_append(path: &str) -> Result<()> {
    let store = Store::open_writable(path)?;
    println!("ok {}", store.append_fixed(b"appended", 8)?);
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    Ok(())
}

fn create(path: &str) -> Result<()> {
    let schema = Schema::dense(DType::U8, &[4])?;
    for number in 0_u64.. {
        let options = CreateOptions::new().codec(Codec::zstd()).schema(schema.clone());
        drop(options.create(format!("{path}/{number}"))?);
        println!("{number}");
    }
    Ok(())
}

fn once(path: &str, what: &str) -> Result<()> {
    match what {
        "read" => {
            let store = Store::open(path)?;
            let indices: Vec<u64> = (0..store.len()).collect();
            println!("ok {}", store.gather_packed(&indices)?.0.len());
        }
        "append" => println!("ok {}", Store::open_writable(path)?.append_fixed(b"appended", 8)?),
        "delete" => println!("ok {}", Store::open_writable(path)?.delete(&[0])?),
        "compact" => {
            Store::open_writable(path)?.compact()?;
            println!("ok");
        }
        "recover" => println!("ok {}", Store::open_writable(path)?.len()),
        other => panic!("unknown action {other}"),
    }
    Ok(())
}

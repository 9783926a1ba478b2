//! Runs every target for some time on its seeds and on mutations of them, without libFuzzer.
//!
//! ```text
//! smoke [SECONDS [TARGET..]]      60 seconds over all targets by default
//! ```
//!
//! What a target panics on is written to `artifacts/TARGET/`, and the program fails. So is an input that takes longer than
//! a second, though that alone is no failure: the machine may be busy.
#![forbid(unsafe_code)]

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use loaderx_fuzz::{TARGETS, Target};
use loaderx_tests::random::Random;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().map_or(60, |text| text.parse().expect("a number of seconds"));
    let wanted: Vec<String> = arguments.collect();
    let targets: Vec<_> =
        TARGETS.iter().filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| w == name)).collect();
    let each = Duration::from_secs(seconds) / u32::try_from(targets.len()).expect("few targets").max(1);
    let mut failed = false;
    for (name, target) in targets {
        failed |= !run(name, *target, each);
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn run(name: &str, target: Target, time: Duration) -> bool {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seeds: Vec<Vec<u8>> = fs::read_dir(folder.join("seeds").join(name))
        .expect("the seeds of the target")
        .map(|entry| fs::read(entry.expect("an entry").path()).expect("a seed"))
        .collect();
    seeds.sort();
    let started = Instant::now();
    // Another stream of mutations each day would be no smoke test; a failure must repeat.
    let mut random = Random::new(name.len() as u64);
    let mut runs = 0_u64;
    let mut slowest = Duration::ZERO;
    while started.elapsed() < time {
        let mut input = seeds[random.below(seeds.len() as u64) as usize].clone();
        if runs >= seeds.len() as u64 {
            mutate(&mut input, &seeds, &mut random);
        } else {
            input.clone_from(&seeds[runs as usize]);
        }
        runs += 1;
        let began = Instant::now();
        if catch_unwind(|| target(&input)).is_err() {
            let file = keep(name, &format!("smoke-{runs}"), &input);
            println!("{name}: FAILED after {runs} runs, on {file}");
            return false;
        }
        let took = began.elapsed();
        if took > slowest {
            slowest = took;
            if took > Duration::from_secs(1) {
                let file = keep(name, &format!("slow-{runs}"), &input);
                println!("{name}: {:.1} s for {file}", took.as_secs_f64());
            }
        }
    }
    println!(
        "{name}: {runs} runs in {:.1} s, no failure; the slowest took {:.3} s",
        started.elapsed().as_secs_f64(),
        slowest.as_secs_f64()
    );
    true
}

/// Writes an input below `artifacts/`; gives the file's name.
fn keep(target: &str, name: &str, input: &[u8]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("artifacts").join(target);
    fs::create_dir_all(&folder).expect("a folder for the input");
    let file = folder.join(name);
    fs::write(&file, input).expect("to keep the input");
    file.display().to_string()
}

/// A few random changes: flipped bits, numbers at the edges, cuts, copies, parts of other seeds.
fn mutate(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    const EDGES: [u32; 10] =
        [0, 1, 2, 0x7f, 0xff, 0xffff, 0x0010_0000, 0x0100_0000, 0x7fff_ffff, 0xffff_ffff];
    for _ in 0..1 + random.below(5) {
        if input.is_empty() {
            input.push(random.bits() as u8);
        }
        let at = random.below(input.len() as u64) as usize;
        match random.below(7) {
            0 | 1 => input[at] ^= 1 << random.below(8),
            2 => input[at] = random.bits() as u8,
            3 => {
                let edge = EDGES[random.below(10) as usize].to_le_bytes();
                let width = (1 << random.below(3)).min(input.len() - at);
                input[at..at + width].copy_from_slice(&edge[..width]);
            }
            4 => input.truncate(at),
            5 => {
                let end = at + random.below((input.len() - at + 1) as u64) as usize;
                let copy = input[at..end].to_vec();
                let to = random.below(input.len() as u64) as usize;
                input.splice(to..to, copy);
            }
            _ => {
                let other = &seeds[random.below(seeds.len() as u64) as usize];
                let end = at.min(other.len());
                input[..end].copy_from_slice(&other[..end]);
            }
        }
    }
    input.truncate(1 << 14);
}

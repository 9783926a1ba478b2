//! A run that was stopped goes on as if it had not been.

use std::fs;

use crate::common::{Lab, losses, tree};

#[test]
fn losses_after_resume_are_those_of_an_uninterrupted_run() {
    let lab = Lab::new();
    let whole = losses(&lab.succeed(&["--steps", "9"]));
    assert_eq!(whole.len(), 9);

    let saved = lab.path("saved");
    let saved = saved.to_str().unwrap();
    let first = losses(&lab.succeed(&["--steps", "4", "--checkpoint", saved]));
    // Another number of workers and another codec deliver the same batches.
    let more = ["--steps", "9", "--checkpoint", saved, "--resume", "--workers", "0", "--codec", "zstd"];
    let second = losses(&lab.succeed(&more));
    assert_eq!((first.len(), second.len()), (4, 5));
    assert_eq!([first, second].concat(), whole);
}

#[test]
fn the_same_seed_repeats_a_run_and_another_one_does_not() {
    let lab = Lab::new();
    let run = |seed: &str| losses(&lab.succeed(&["--steps", "2", "--seed", seed]));
    assert_eq!(run("5"), run("5"));
    assert_ne!(run("5"), run("6"));
}

#[test]
fn the_final_line_counts_every_test_image() {
    let lab = Lab::new();
    let printed = lab.succeed(&["--steps", "1"]);
    let line = printed.lines().last().unwrap();
    assert!(line.starts_with("test accuracy: ") && line.ends_with(" of 50)"), "{line}");
    let right: f64 = line.split(['(', ' ']).rev().nth(2).unwrap().parse().unwrap();
    assert!(line.contains(&format!("{:.2} %", right * 2.0)), "{line}");
}

#[test]
fn only_the_newest_two_checkpoints_are_kept() {
    let lab = Lab::new();
    let saved = lab.path("saved");
    let folder = saved.to_str().unwrap();
    lab.succeed(&["--steps", "1", "--checkpoint", folder]);
    for steps in ["2", "3"] {
        lab.succeed(&["--steps", steps, "--checkpoint", folder, "--resume"]);
    }
    let mut names: Vec<String> = fs::read_dir(&saved)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["step-00000002", "step-00000003"]);
}

#[test]
fn a_checkpoint_of_another_run_is_refused_and_left_alone() {
    let lab = Lab::new();
    let saved = lab.path("saved");
    let folder = saved.to_str().unwrap();
    lab.succeed(&["--steps", "1", "--checkpoint", folder]);
    let before = tree(&saved);
    let resume =
        |more: &[&str]| lab.fail(&[&["--steps", "2", "--checkpoint", folder, "--resume"][..], more].concat());
    let error = lab.fail(&["--steps", "2", "--checkpoint", folder]);
    assert!(error.contains("--resume") && error.contains("step-00000001"), "{error}");
    let error = resume(&["--lr", "0.5"]);
    assert!(error.contains("0.5") && error.contains("0.002"), "{error}");
    let error = resume(&["--seed", "9"]);
    assert!(error.contains("seed"), "{error}");
    let error = resume(&["--batch-size", "16"]);
    assert!(error.contains("16"), "{error}");
    assert_eq!(tree(&saved), before);
}

#[test]
fn a_damaged_checkpoint_is_named() {
    let lab = Lab::new();
    let saved = lab.path("saved");
    let folder = saved.to_str().unwrap();
    lab.succeed(&["--steps", "1", "--checkpoint", folder]);
    for name in ["model.bpk", "optimizer.bpk", "loader.state", "learning-rate.txt"] {
        let file = saved.join("step-00000001").join(name);
        let whole = fs::read(&file).unwrap();
        fs::write(&file, &whole[..whole.len() / 2]).unwrap();
        let error = lab.fail(&["--steps", "2", "--checkpoint", folder, "--resume"]);
        assert!(error.contains(name), "{error}");
        fs::remove_file(&file).unwrap();
        let error = lab.fail(&["--steps", "2", "--checkpoint", folder, "--resume"]);
        assert!(error.contains(name), "{error}");
        fs::write(&file, whole).unwrap();
    }
    let empty = lab.path("empty");
    let error = lab.fail(&["--checkpoint", empty.to_str().unwrap(), "--resume"]);
    assert!(error.contains("no checkpoint"), "{error}");
}

/// Ctrl-C: a clean end with a checkpoint that the next run goes on from.
#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_the_next_run_goes_on() {
    use std::io::{BufRead, BufReader, Read};

    let lab = Lab::new();
    let saved = lab.path("saved");
    let folder = saved.to_str().unwrap();
    let mut child = lab.start(&["--steps", "1000000", "--checkpoint", folder]);
    let mut printed = BufReader::new(child.stdout.take().unwrap());
    let mut all = String::new();
    while losses(&all).len() < 2 {
        assert_ne!(printed.read_line(&mut all).unwrap(), 0, "{all}");
    }
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    printed.read_to_string(&mut all).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{all}");
    assert!(all.contains("go on with --resume"), "{all}");

    let stopped = losses(&all);
    let steps = (stopped.len() + 2).to_string();
    let rest = losses(&lab.succeed(&["--steps", &steps, "--checkpoint", folder, "--resume"]));
    assert_eq!(rest.len(), 2);
    assert_eq!([stopped, rest].concat(), losses(&lab.succeed(&["--steps", &steps])));
}

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// Where a loader is: the step that it delivers next, and a fingerprint of what decides the steps.
///
/// Save it with the model. It counts the steps that the training loop received, never those that were prefetched,
/// so the run that resumes from it receives the next one. Taking it costs nanoseconds at any step; it does not
/// depend on the number of workers, the prefetch or the rank, so one rank's state serves all ranks, and a world
/// of another size.
///
/// It is serialisable with serde; [`LoaderState::to_bytes`] is there for those who have no format of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Saved", try_from = "Saved")]
pub struct LoaderState {
    step: u64,
    fingerprint: Arc<Fingerprint>,
}

/// What has to be equal for the same steps to follow, part by part so that a refusal can name the part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) seed: u64,
    pub(super) sampler: String,
    pub(super) streams: Vec<(String, String)>,
}

/// The serialised form. Fields may be added in a later version, never changed.
#[derive(Clone, Serialize, Deserialize)]
struct Saved {
    version: u32,
    step: u64,
    seed: u64,
    sampler: String,
    streams: Vec<(String, String)>,
}

const VERSION: u32 = 1;

impl From<LoaderState> for Saved {
    fn from(state: LoaderState) -> Self {
        let Fingerprint { seed, sampler, streams } = Arc::unwrap_or_clone(state.fingerprint);
        Self { version: VERSION, step: state.step, seed, sampler, streams }
    }
}

impl TryFrom<Saved> for LoaderState {
    type Error = Error;

    fn try_from(saved: Saved) -> Result<Self> {
        let Saved { version, step, seed, sampler, streams } = saved;
        if version != VERSION {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("a loader state of version {version}, this build reads version {VERSION}"),
            ));
        }
        Ok(Self::new(step, Arc::new(Fingerprint { seed, sampler, streams })))
    }
}

impl LoaderState {
    pub(super) fn new(step: u64, fingerprint: Arc<Fingerprint>) -> Self {
        Self { step, fingerprint }
    }

    /// The step that is delivered next.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// The state as bytes (MessagePack), to store in a checkpoint.
    ///
    /// # Errors
    ///
    /// When memory runs out.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        rmp_serde::to_vec_named(self).map_err(|error| {
            Error::new(ErrorKind::InvalidArgument, "failed to serialise a loader state").caused_by(error)
        })
    }

    /// Reads what [`LoaderState::to_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] when the bytes are something else, damaged, or of a newer version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        rmp_serde::from_slice(bytes).map_err(|error| {
            Error::corrupt(format!("{} bytes are not a saved loader state", bytes.len())).caused_by(error)
        })
    }

    /// Refuses a state of another configuration, naming the first part that differs.
    pub(super) fn require(&self, here: &Fingerprint) -> Result<()> {
        let saved = &*self.fingerprint;
        let refuse = |part: &str, saved: &dyn fmt::Display, here: &dyn fmt::Display| {
            Err(Error::new(
                ErrorKind::StateMismatch,
                format!("the state was saved with another {part}: {saved}, here it is {here}"),
            )
            .with_hint(
                "build the loader as it was when the state was saved, or start anew with `seek` if the \
                 change is meant",
            ))
        };
        if saved.sampler != here.sampler {
            return refuse("sampler", &saved.sampler, &here.sampler);
        }
        if saved.seed != here.seed {
            return refuse("seed", &saved.seed, &here.seed);
        }
        let names = |streams: &[(String, String)]| {
            format!("{:?}", streams.iter().map(|(name, _)| name).collect::<Vec<_>>())
        };
        if saved.streams.len() != here.streams.len()
            || saved.streams.iter().zip(&here.streams).any(|(saved, here)| saved.0 != here.0)
        {
            return refuse("list of streams", &names(&saved.streams), &names(&here.streams));
        }
        for ((name, saved), (_, here)) in saved.streams.iter().zip(&here.streams) {
            if saved != here {
                return refuse(&format!("format of stream {name:?}"), saved, here);
            }
        }
        Ok(())
    }
}

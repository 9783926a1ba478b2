//! Record maps: decode or augment each record inside the gather, straight into its row of the batch.

mod mapped;
mod out_row;
mod rng;
mod stored;

pub use mapped::{MapResult, Mapped};
pub use out_row::OutRow;
pub use rng::RecordRng;
pub use stored::Stored;

//! Samplers: the rules, the published vectors, the statistics.

mod lengths;
mod rules;
mod statistics;
mod vectors;
mod weights;

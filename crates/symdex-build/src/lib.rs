//! From a debug file to an index.
//!
//! Data flows one way: [`input`] finds debug files, [`slices`] splits one by architecture, [`Image::load`] reads a slice's
//! headers, and [`build`] makes the index.

pub mod audit;
mod build;
mod dwarf;
mod error;
mod flatten;
mod image;
mod merge;
mod pools;
mod report;
mod slice;
mod symbols;

pub use build::{Built, Options, build};
pub use error::Error;
pub use image::Image;
pub use slice::{Slice, slices, slices_for};
pub use symbols::FunctionSymbol;

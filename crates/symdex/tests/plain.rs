//! Tests that need nothing besides the repository.

mod damage;
mod format_document;
mod lookup;
mod read_file;
mod readme;
mod refused;

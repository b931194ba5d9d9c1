//! Tests that need nothing besides the repository.

mod aliases;
mod built_before;
mod checks;
mod compilers;
mod debug_files;
mod debug_info_document;
mod elf;
mod embedded;
mod files;
mod go;
mod golden;
mod limits;
mod lines;
mod macho;
mod names;
mod ranges;
mod shared_cache;
mod sharing;
mod split;
mod stated_ranges;
mod testdata;
mod threads;
mod up_to_date;

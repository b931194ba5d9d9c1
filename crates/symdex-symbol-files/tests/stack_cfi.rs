//! Breakpad's walker finds the same caller by the exported records `STACK CFI` as the index by its unwind rows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use breakpad_symbols::{FrameWalker, SimpleModule, SymbolFile};
use symdex::{Arch, FrameState, Index, LinePolicy, UnwindRule, UnwindValue};
use symdex_build::{BuildOptions, Companions, Image, slices};
use symdex_symbol_files::write_breakpad;

use crate::common::{raw, testdata};

/// A number that depends on all bits of `seed`.
fn mixed(seed: u64) -> u64 {
    (seed ^ seed >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A frame whose registers and memory have made-up values. Where the registers point to does not matter.
struct Frame<'a> {
    instruction: u64,
    arch: &'a Arch,
    /// What the walker finds, by name.
    caller: BTreeMap<String, u64>,
}

impl FrameState for Frame<'_> {
    fn register(&mut self, register: u16) -> Option<u64> {
        Some(mixed(u64::from(register) + 1))
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        Some(mixed(address))
    }
}

impl FrameWalker for Frame<'_> {
    fn get_instruction(&self) -> u64 {
        self.instruction
    }

    fn has_grand_callee(&self) -> bool {
        false
    }

    fn get_grand_callee_parameter_size(&self) -> u32 {
        0
    }

    fn get_register_at_address(&self, address: u64) -> Option<u64> {
        Some(mixed(address))
    }

    fn get_callee_register(&self, name: &str) -> Option<u64> {
        let number = (0..100).find(|number| self.arch.register_name(*number) == Some(name))?;
        Some(mixed(u64::from(number) + 1))
    }

    fn set_caller_register(&mut self, name: &str, value: u64) -> Option<()> {
        self.caller.insert(name.to_owned(), value);
        Some(())
    }

    fn clear_caller_register(&mut self, name: &str) {
        self.caller.remove(name);
    }

    fn set_cfa(&mut self, value: u64) -> Option<()> {
        self.set_caller_register(".cfa", value)
    }

    fn set_ra(&mut self, value: u64) -> Option<()> {
        self.set_caller_register(".ra", value)
    }
}

/// The C library of this process, which has many rows and needs no build with debug information. Not every system has
/// it.
fn c_library() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines()
        .filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])))
        .find(|path| path.file_name().is_some_and(|name| name == "libc.so.6"))
}

/// The exported rows are imported as they were, without the rules that Breakpad cannot express.
fn assert_imported_again(index: &Index<Vec<u8>>, text: &[u8]) {
    let file = symdex_symbol_files::read(text).expect("a symbol file");
    let built = BuildOptions::new().unwind_rows(true).build_symbol_file_into(&file, Vec::new());
    let again = Index::open(built.expect("builds").bytes).expect("opens");
    again.verify().expect("intact");
    assert_eq!(again.metadata().partial, []);
    let is_expressed = |value| !matches!(value, UnwindValue::Expression(_) | UnwindValue::Unknown);
    for row in index.unwind_rows().expect("rows") {
        let row = row.expect("intact");
        let found = again.unwind_row(row.range().start).expect("intact");
        assert_eq!(found.is_some(), is_expressed(row.cfa()), "{row:?}");
        let Some(found) = found else { continue };
        let expected = row.rules().filter(|(register, rule)| match rule {
            UnwindRule::Stored(value) | UnwindRule::Value(value) => is_expressed(*value),
            UnwindRule::Undefined => *register == row.return_register(),
            _ => false,
        });
        assert!(found.rules().eq(expected), "{row:?} {found:?}");
        assert_eq!((found.cfa(), found.range().end), (row.cfa(), row.range().end));
    }
}

/// Compares every row of the image at `path`. Returns how many can be expressed, and how many cannot.
fn compare(path: &Path) -> (usize, usize) {
    let bytes = std::fs::read(path).expect("readable");
    let slice = slices(&bytes).expect("a debug file").remove(0);
    let companions = Companions::default();
    let image = Image::load(&slice, path, &companions).expect("loads");
    let built = BuildOptions::new().unwind_rows(true).build(&image).expect("builds");
    let index = Index::open(built.bytes).expect("opens");
    let arch = &index.metadata().arch;
    let mut text = Vec::new();
    write_breakpad(&index, LinePolicy::Exact, &raw, "Linux", &mut text).expect("exports");
    let symbols = SymbolFile::from_bytes(&text).expect("is read");
    assert_imported_again(&index, &text);
    let (mut compared, mut left_out) = (0, 0);
    for row in index.unwind_rows().expect("rows") {
        let row = row.expect("intact");
        for instruction in [row.range().start.0, row.range().end.0 - 1] {
            let mut frame = Frame { instruction, arch, caller: BTreeMap::new() };
            let walked = symbols.walk_frame(&SimpleModule::default(), &mut frame);
            let found = std::mem::take(&mut frame.caller);
            if matches!(row.cfa(), UnwindValue::Expression(_) | UnwindValue::Unknown) {
                assert_eq!(walked, None, "{path:?} {instruction:#x}");
                left_out += 1;
                continue;
            }
            let cfa = row.find_cfa(&mut frame).expect("known");
            let mut expected = BTreeMap::from([(".cfa".to_owned(), cfa)]);
            // A frame without a caller has the return address 0.
            let return_address = row.find_register(row.return_register(), cfa, &mut frame).unwrap_or(0);
            expected.insert(".ra".to_owned(), return_address);
            for (register, rule) in row.rules().filter(|(number, _)| *number != row.return_register()) {
                let (UnwindRule::Stored(value) | UnwindRule::Value(value)) = rule else { continue };
                let name = arch.register_name(register).expect("a name").to_owned();
                if !matches!(value, UnwindValue::Expression(_) | UnwindValue::Unknown) {
                    expected.insert(name, row.find_register(register, cfa, &mut frame).expect("known"));
                }
            }
            assert_eq!((walked, found), (Some(()), expected), "{path:?} {instruction:#x}");
            compared += 1;
        }
    }
    (compared, left_out)
}

#[test]
fn breakpads_walker_finds_the_caller_that_the_index_finds() {
    for name in ["elf/gcc-names.so", "elf/gcc-parts.so"] {
        let (compared, left_out) = compare(&testdata().join(name));
        println!("{name}: {compared} frames, {left_out} cannot be expressed");
        assert!(compared > 20, "{name}: {compared}");
    }
    if let Some(path) = c_library() {
        let (compared, left_out) = compare(&path);
        println!("{}: {compared} frames, {left_out} cannot be expressed", path.display());
        assert!(compared > 10_000 && left_out < compared / 100, "{compared}, {left_out}");
    }
}

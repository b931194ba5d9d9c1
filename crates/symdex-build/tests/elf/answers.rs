//! Which of several answers counts (docs/DEBUG-INFO.md, "Rows at one address"), and files that have none.

use symdex::Table::{Dwarf, SymbolTable};
use symdex::{ImageOffset, Index, LinePolicy, Scratch, Seen, Table};
use symdex_build::{Companions, Image, slices};
use symdex_testkit::images::debug_file::{BASE, Die, Elf, Unit, debug_sections};

use super::{function, load, of, with_dwarf};
use crate::checks::answers;

#[test]
fn of_rows_at_one_address_the_last_counts() {
    let unit = Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)));
    let unit = unit.sequence(&[(0x1000, 1, 5, true), (0x1000, 1, 6, true), (0x1010, 1, 7, true)], 0x1100);
    let elf = Elf { base: BASE, ..Elf::default() }.debug(debug_sections(&[unit]));
    assert_eq!(answers(&elf.bytes(), Dwarf), ["1000..1010 f a.c:6", "1010..1100 f a.c:7"]);
}

#[test]
fn what_has_nothing_to_answer_gets_no_index() {
    let build =
        |elf: &Elf| symdex_build::build(&load(&elf.bytes(), None)).map(|_| ()).map_err(|e| e.to_string());
    let nothing = build(&Elf::default()).expect_err("nothing to answer");
    assert!(nothing.contains("nothing to answer") && nothing.contains("before it was stripped"), "{nothing}");
    // Functions and symbols outside of the code are not nothing.
    let symbol = build(&of(&[function("f", 0x5000, 0x10)])).expect_err("outside");
    assert!(symbol.contains("0 functions and 1 function symbols"), "{symbol}");
    let unit = Unit::new((0x5000, 0x5100)).child(Die::function("f", (0x5000, 0x5100)));
    let dwarf = Elf { base: BASE, ..Elf::default() }.debug(debug_sections(&[unit]));
    let dwarf = build(&dwarf).expect_err("outside");
    assert!(dwarf.contains("1 functions and 0 function symbols"), "{dwarf}");
    // A symbol elsewhere in the code is an answer.
    assert_eq!(build(&of(&[function("f", 0x5000, 0x10), function("g", 0x1000, 0x10)])), Ok(()));
}

#[test]
fn an_index_states_what_its_builder_has_found() {
    let file = with_dwarf().bytes();
    let index = Index::open(symdex_build::build(&load(&file, None)).expect("builds").bytes).expect("written");
    let seen = Seen { functions: 1, rows: 2, symbols: 2, ..Seen::default() };
    assert_eq!(index.metadata().counts.seen, seen);
}

/// The one frame at an image offset: name, line, where the function starts, and the table.
fn frame_at(file: &[u8], offset: u64) -> Option<(String, Option<u32>, Option<u64>, Table)> {
    let companions = Companions::default();
    let image = Image::load(&slices(file).expect("an ELF file")[0], "made-up", &companions).expect("loads");
    let built = symdex_build::build(&image).expect("builds");
    let index = Index::open(built.bytes).expect("just written");
    let mut scratch = Scratch::default();
    let frames = index.lookup(ImageOffset(offset), LinePolicy::Exact, &mut scratch).expect("whole")?;
    assert_eq!(frames.len(), 1);
    let frame = frames.iter().next()?;
    let name = String::from_utf8_lossy(frame.name.unwrap_or(b"-")).into_owned();
    Some((name, frame.line, frame.function_start.map(|start| start.0), frame.table))
}

/// docs/DEBUG-INFO.md, "Code after the end of a function" and "Lines without a function".
#[test]
fn where_debug_information_ends_the_symbol_table_goes_on() {
    let unit = Unit::new((0x1000, 0x1300)).child(Die::function("f", (0x1000, 0x1080)));
    let unit = unit.sequence(&[(0x1000, 1, 5, true)], 0x1080).sequence(&[(0x1200, 1, 9, true)], 0x1280);
    let symbols = vec![function("f", BASE + 0x1000, 0x100), function("assembly", BASE + 0x1200, 0x100)];
    let file = Elf { base: BASE, symbols, ..Elf::default() }.debug(debug_sections(&[unit])).bytes();
    let frame = |name: &str, line, start, table| Some((name.to_owned(), line, Some(start), table));
    assert_eq!(frame_at(&file, 0x107f), frame("f", Some(5), 0x1000, Dwarf));
    assert_eq!(frame_at(&file, 0x1080), frame("f", None, 0x1000, SymbolTable));
    assert_eq!(frame_at(&file, 0x10ff), frame("f", None, 0x1000, SymbolTable));
    assert_eq!(frame_at(&file, 0x1100), None);
    // A line that no subprogram covers has the symbol's name. Behind the line only the symbol answers.
    assert_eq!(frame_at(&file, 0x1200), frame("assembly", Some(9), 0x1200, Dwarf));
    assert_eq!(frame_at(&file, 0x1280), frame("assembly", None, 0x1200, SymbolTable));
}

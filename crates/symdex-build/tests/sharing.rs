//! Small files whose parts are shared by thousands of entries or units (docs/DEBUG-INFO.md, "Shared parts"). What is
//! within the limits is answered, and what is above them is counted.

#![expect(clippy::cast_possible_truncation, reason = "the debug files made here are small")]

use crate::checks::{answers, built};
use gimli::constants as dw;
use symdex::{Index, Table};
use symdex_testkit::images::debug_file::{BASE, CODE, Die, MachO, Unit, Value, debug_file, macho};

/// Returns the reasons why the index of `file` is partial, with counts.
fn lost(file: &[u8]) -> Vec<(String, u64)> {
    let index = Index::open(built(file).bytes).expect("just written");
    index.verify().expect("whole");
    index.metadata().partial.iter().map(|partial| (partial.reason.clone(), partial.count)).collect()
}

fn with_function() -> Unit {
    Unit::new((0x1000, 0x1100)).child(Die::function("f", (0x1000, 0x1100)))
}

#[test]
fn a_line_program_that_units_share_is_read_a_bounded_number_of_times() {
    const UNITS: usize = 200;
    let rows: Vec<_> = (0..20_000).map(|row| (0x1000 + row % 0x100, 1, row as i64 + 1, true)).collect();
    let first = with_function().sequence(&rows, 0x1100);
    let file = |units: usize| {
        let sharing = (1..units).map(|_| with_function().lines_of(0));
        debug_file(
            &[with_function().sequence(&rows, 0x1100)].into_iter().chain(sharing).collect::<Vec<_>>(),
            &[],
        )
    };
    let reason = "units without lines: too many share a line program";
    assert_eq!(lost(&debug_file(&[first], &[])), []);
    let lost = lost(&file(UNITS));
    assert!(matches!(&lost[..], [(found, 100..200)] if found == reason), "{lost:?}");
    // The first units have their lines. Of the rows at 0x1000, the last one has line 1 + 78 * 256.
    assert_eq!(answers(&file(UNITS), Table::Dwarf)[0], "1000..1001 f a.c:19969");
}

/// A unit whose functions all refer to one list, `entries`, at the beginning of `.debug_ranges`.
fn sharing_ranges(entries: &[(u64, u64)], functions: usize) -> Unit {
    let list =
        Die::new(dw::DW_TAG_subprogram).name("first").with(dw::DW_AT_ranges, Value::Ranges(entries.to_vec()));
    let others = (1..functions)
        .map(|_| Die::new(dw::DW_TAG_subprogram).name("other").with(dw::DW_AT_ranges, Value::RangesAt(0)));
    let unit = Unit::new((CODE.start, CODE.end)).child(list);
    others.fold(unit, |unit, other| unit.child(other))
}

#[test]
fn range_lists_that_functions_share_are_read_a_bounded_number_of_times() {
    let in_code: Vec<_> =
        (0..20_000).map(|n| BASE + 0x1000 + n % 0x100 * 2).map(|svma| (svma, svma + 1)).collect();
    // Entries that state no code take as long to read.
    let empty = vec![(BASE + 0x1000, BASE + 0x1000); 20_000];
    for (entries, answered) in [(in_code, 256), (empty, 0)] {
        let file = debug_file(&[sharing_ranges(&entries, 200)], &[]);
        let lost = lost(&file);
        assert!(
            matches!(&lost[..], [(reason, 100..200)] if reason == "unreadable range lists of functions"),
            "{lost:?}"
        );
        assert_eq!(answers(&file, Table::Dwarf).len(), answered);
        // A list that few functions share is read for all of them.
        assert_eq!(self::lost(&debug_file(&[sharing_ranges(&entries, 20)], &[])), []);
    }
}

/// The ranges of units decide about the order in which they are walked. The answers do not depend on that order.
#[test]
fn range_lists_that_units_share_cost_no_answers() {
    let entries = vec![(BASE + 0x1000, BASE + 0x1000); 100_000];
    let units = (0..500u64).map(|number| {
        let list = if number == 0 { Value::Ranges(entries.clone()) } else { Value::RangesAt(0) };
        let start = 0x1000 + 4 * number;
        Unit::bare().root(dw::DW_AT_ranges, list).child(Die::function("f", (start, start + 4)))
    });
    let file = debug_file(&units.collect::<Vec<_>>(), &[]);
    assert_eq!(lost(&file), []);
    assert_eq!(answers(&file, Table::Dwarf).len(), 500);
}

#[test]
fn names_that_are_ends_of_one_string_are_kept_up_to_the_files_own_size() {
    let functions = (0..500u32).map(|number| {
        let start = 0x1000 + 4 * u64::from(number);
        let die = Die::new(dw::DW_TAG_subprogram).range((start, start + 4));
        die.with(dw::DW_AT_linkage_name, Value::TextAt(number))
    });
    let unit = functions.fold(Unit::new((CODE.start, CODE.end)), Unit::child);
    let file = debug_file(&[unit], &[]);
    // 500 names of almost 30,000 bytes are 15 MB.
    let built = built(&file);
    let index = Index::open(built.bytes).expect("just written");
    assert_eq!(index.metadata().counts.functions, 500);
    let lost = lost(&file);
    assert!(matches!(&lost[..], [(reason, 400..500)] if reason.starts_with("names left out")), "{lost:?}");
    let found = answers(&file, Table::Dwarf);
    assert!(found[0].starts_with("1000..1004 xxx"), "{}", found[0]);
    assert!(found[499].ends_with(" - -"), "{}", found[499]);
}

#[test]
fn paths_that_repeat_a_long_directory_are_kept_up_to_the_files_own_size() {
    const NAMES: [&str; 16] =
        ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "a", "b", "c", "d", "e", "f"];
    let directory: &'static str = "/x".repeat(30_000).leak();
    let rows: Vec<_> = (0..256u64).map(|row| (0x1000 + row, row % 240 + 1, 1, true)).collect();
    let files: Vec<&'static str> =
        (0..240).map(|n| &*format!("{}{}", NAMES[n / 16], NAMES[n % 16]).leak()).collect();
    let unit = with_function().directory(directory).files(&files).sequence(&rows, 0x1100);
    // 240 paths of 60,000 bytes are 14 MB.
    let lost = lost(&debug_file(&[unit], &[]));
    assert!(
        matches!(&lost[..], [(reason, 200..240)] if reason.starts_with("file paths left out")),
        "{lost:?}"
    );
}

#[test]
fn abbreviation_tables_that_overlap_are_read_a_bounded_number_of_times() {
    const TABLES: usize = 1000;
    let mut file: MachO = macho(&[with_function()], &[]);
    let section = |name: &str| -> usize {
        file.debug.iter().position(|(known, _)| *known == name).expect("the section")
    };
    let (abbrev, info) = (section("__debug_abbrev"), section("__debug_info"));
    let first = file.debug[abbrev].1.len();
    // A table begins at each abbreviation and goes on to the last one. An abbreviation is: its code, which takes two
    // bytes, DW_TAG_array_type without children, 20 times DW_AT_sibling as a DW_FORM_ref1, and two zeros.
    let code = |number: usize| [0x80 | (number & 0x7f) as u8, 1 + (number >> 7) as u8];
    let rest = [&[1, 0][..], &[1, 0x11].repeat(20), &[0, 0]].concat();
    let abbreviations = (0..TABLES).map(|number| [&code(number)[..], &rest].concat());
    file.debug[abbrev].1.extend(abbreviations.collect::<Vec<_>>().concat());
    file.debug[abbrev].1.push(0);
    for table in 0..TABLES {
        let offset = (first + table * (2 + rest.len())) as u32;
        // Each unit is one entry of the last abbreviation.
        let entry = [&code(TABLES - 1)[..], &[0; 20]].concat();
        let header = [&29u32.to_le_bytes()[..], &[4, 0], &offset.to_le_bytes(), &[8]].concat();
        file.debug[info].1.extend([header, entry].concat());
    }
    let file = file.bytes();
    let failed = built(&file).report.failed_units;
    // The limit of four times the section and 1 MiB is enough for some 28 tables.
    assert!((900..1000).contains(&failed), "{failed}");
    let lost = lost(&file);
    let listed = |reason| lost.iter().filter(|(found, _)| found.contains(reason)).count();
    // 20 reasons are listed.
    assert_eq!(listed("its abbreviations overlap too many others"), 20, "{lost:?}");
    assert!(lost.contains(&("more units that could not be read".to_owned(), failed - 20)), "{lost:?}");
    assert_eq!(answers(&file, Table::Dwarf), ["1000..1100 f -"]);
}

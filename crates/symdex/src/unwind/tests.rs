//! Rows that are written and read back, and damaged sections.

use super::*;
use crate::format::{Checksums, PageChecks, PageReader, SectionKind};
use crate::image::ImageId;
use crate::write::page_sums::PageSums;
use crate::write::{EncodedUnwindRows, UnwindRange, UnwindRules, UnwindTable};

/// A section that is read by itself.
struct Section {
    id: ImageId,
    bytes: Vec<u8>,
    checksums: Vec<u8>,
    checked: PageChecks,
}

impl Section {
    fn new(bytes: Vec<u8>) -> Self {
        let id = ImageId::new(&[7]).expect("one byte is an id");
        let checksums = PageSums::of(&id, SectionKind::UnwindPage, &bytes);
        let checked = PageChecks::new(bytes.len() as u64);
        Self { id, bytes, checksums, checked }
    }

    fn pages(&self) -> PageReader<'_> {
        let Self { id, bytes, checksums, checked } = self;
        let kind = SectionKind::UnwindPage;
        PageReader { kind, section: bytes, sums: Checksums::new(id, kind), checksums, checked }
    }
}

/// Numbers that look random, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Rules as a function has them after it has pushed this many registers.
fn pushed(count: u16, unlike: i64) -> UnwindRules<'static> {
    let offset = 8 + 8 * i64::from(count) + unlike;
    let mut rules = UnwindRules::new(UnwindValue::Register { register: 7, offset }, 16);
    let stored = |number: u16| (number, UnwindRule::Stored(UnwindValue::Cfa(-8 - 8 * i64::from(number))));
    rules.registers = (0..count).map(stored).collect();
    rules.registers.push((16, UnwindRule::Stored(UnwindValue::Cfa(-8))));
    rules
}

/// Rules with each kind of rule and of value.
fn strange() -> Vec<UnwindRules<'static>> {
    let plt = &[0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22];
    let mut signal = UnwindRules::new(UnwindValue::Loaded { register: 7, offset: 160, add: 0 }, 16);
    let at = |offset| UnwindRule::Stored(UnwindValue::Register { register: 7, offset });
    signal.registers = (0..17).map(|number| (number, at(40 + 8 * i64::from(number)))).collect();
    signal.is_signal_frame = true;
    let mut last = UnwindRules::new(UnwindValue::Register { register: 31, offset: -16 }, 30);
    last.registers = vec![
        (0, UnwindRule::SameValue),
        (19, UnwindRule::Value(UnwindValue::Cfa(-40))),
        (20, UnwindRule::Value(UnwindValue::Register { register: 21, offset: 0 })),
        (22, UnwindRule::Value(UnwindValue::Expression(plt))),
        (23, UnwindRule::Stored(UnwindValue::Expression(&[0x23, 0x10]))),
        (24, UnwindRule::Value(UnwindValue::Unknown)),
        (30, UnwindRule::Undefined),
        (65534, UnwindRule::Stored(UnwindValue::Loaded { register: 500, offset: i64::MIN, add: i64::MAX })),
    ];
    (last.is_return_address_signed, last.holds_at_calls_only) = (true, true);
    vec![
        UnwindRules::new(UnwindValue::Expression(plt), 16),
        UnwindRules::new(UnwindValue::Unknown, 16),
        signal,
        last,
    ]
}

/// Many functions with gaps between them, and the strange rules.
fn many() -> (UnwindTable, Vec<UnwindRange>) {
    let (mut table, mut ranges, mut random) = (UnwindTable::default(), Vec::new(), Random(1));
    let mut at = 0x1000;
    let mut add = |table: &mut UnwindTable, at: &mut u64, length: u64, rules: &UnwindRules<'_>| {
        let rules = table.number(rules).expect("small");
        ranges.push(UnwindRange { start: *at, end: *at + length, rules });
        *at += length;
    };
    for function in 0..400 {
        let pushes = u16::try_from(random.below(7)).expect("small");
        for count in 0..pushes {
            add(&mut table, &mut at, 1 + u64::from(count > 2), &pushed(count, 0));
        }
        let unlike = if random.below(9) == 0 { i64::from(function) * 16 } else { 0 };
        add(&mut table, &mut at, 1 + random.below(900), &pushed(pushes, unlike));
        if function % 100 == 50 {
            strange().iter().for_each(|rules| add(&mut table, &mut at, 1 + random.below(70_000), rules));
        }
        at = if random.below(3) == 0 { at } else { at.next_multiple_of(16) + 16 * random.below(2) };
    }
    (table, ranges)
}

/// A row with all that can be asked of it, to compare.
fn described(rules: &UnwindRules<'_>) -> String {
    format!("{rules:?}")
}

#[test]
fn each_address_has_the_row_that_was_written() {
    let (mut table, ranges) = many();
    let encoded = EncodedUnwindRows::new(&table, &ranges).expect("in order");
    assert!(encoded.section.len() < ranges.len() * 4, "{} bytes", encoded.section.len());
    let section = Section::new(encoded.section);
    let pages = section.pages();
    let decoded = UnwindSection::decode(&pages).expect("whole");
    let reader = UnwindReader { section: &decoded, pages, mask: u64::MAX };
    let [_, rows] = reader.verify().expect("whole");
    assert!(rows > 1500 && rows <= ranges.len() as u64);
    assert!(reader.find(0xfff).expect("whole").is_none());
    for range in &ranges {
        for at in [range.start, range.end - 1] {
            let row = reader.find(at).expect("whole").expect("a row");
            assert!(row.start <= range.start && range.end <= row.end, "{range:?} {row:?}");
            assert_eq!(table.number(&UnwindRules::from(&row)).expect("small"), range.rules);
        }
    }
    let last = ranges.last().expect("some").end;
    for at in (0x1000..last + 100).step_by(97) {
        let next = ranges.partition_point(|range| range.end <= at);
        let is_written = ranges.get(next).is_some_and(|range| range.start <= at);
        assert_eq!(reader.find(at).expect("whole").is_some(), is_written, "{at:#x}");
    }
    let from = |start: u64| reader.rows_from(start).map(|row| row.expect("whole")).collect::<Vec<_>>();
    let all = from(0);
    assert_eq!(all.len() as u64, rows);
    for start in [0x1000, 0x1001, 0x4321, last - 1, last, u64::MAX] {
        assert!(from(start) == all.iter().filter(|row| row.end > start).copied().collect::<Vec<_>>());
    }
}

#[test]
fn every_kind_of_rule_round_trips() {
    for rules in strange() {
        let mut table = UnwindTable::default();
        let number = table.number(&rules).expect("small");
        let range = UnwindRange { start: 5, end: 6, rules: number };
        let section = Section::new(EncodedUnwindRows::new(&table, &[range]).expect("one").section);
        let pages = section.pages();
        let decoded = UnwindSection::decode(&pages).expect("whole");
        let reader = UnwindReader { section: &decoded, pages, mask: u64::MAX };
        let row = reader.find(5).expect("whole").expect("a row");
        assert_eq!(described(&UnwindRules::from(&row)), described(&rules));
        assert_eq!(row.is_signal_frame(), rules.is_signal_frame);
        assert_eq!(OwnedUnwindRow::from(row).row(), row);
        assert!(reader.find(4).expect("whole").is_none() && reader.find(6).expect("whole").is_none());
    }
}

#[test]
fn an_unknown_expression_is_marked_as_such() {
    let mut table = UnwindTable::default();
    let call = UnwindRules::new(UnwindValue::Expression(&[0x98, 0, 0]), 16);
    let unknown = UnwindRules::new(UnwindValue::Unknown, 16);
    assert_eq!(table.number(&call).expect("small"), table.number(&unknown).expect("small"));
    let long = vec![0x31; 256];
    let long = UnwindRules::new(UnwindValue::Expression(&long), 16);
    assert_eq!(table.number(&long).expect("small"), table.number(&unknown).expect("small"));
}

#[test]
fn what_the_format_cannot_hold_is_refused() {
    let mut table = UnwindTable::default();
    let number = table.number(&pushed(3, 0)).expect("small");
    let range = |start, end, rules| UnwindRange { start, end, rules };
    for ranges in [
        &[range(5, 5, number)][..],
        &[range(5, 9, number), range(8, 10, number)],
        &[range(5, 9, number), range(2, 3, number)],
        &[range(5, 9, 0)],
        &[range(5, 9, 77)],
        &[range(5, 1 << 47, number)],
    ] {
        assert!(EncodedUnwindRows::new(&table, ranges).is_err(), "{ranges:?}");
    }
    let mut many = pushed(129, 0);
    many.registers.truncate(129);
    assert!(table.number(&many).is_err());
    let mut unordered = pushed(3, 0);
    unordered.registers.swap(0, 1);
    assert!(table.number(&unordered).is_err());
    assert!(table.number(&UnwindRules::new(UnwindValue::Cfa(0), 16)).is_err());
}

/// Reads all of a section whose checksums are right.
fn read_all(bytes: Vec<u8>) -> Result<(), Error> {
    let section = Section::new(bytes);
    let pages = section.pages();
    let decoded = UnwindSection::decode(&pages)?;
    let reader = UnwindReader { section: &decoded, pages, mask: u64::MAX };
    for at in (0..0x3000).step_by(1111) {
        if let Some(row) = reader.find(at)? {
            assert!((row.start..row.end).contains(&at));
        }
    }
    reader.verify().map(drop)
}

#[test]
fn damage_is_an_error_and_no_panic_and_ends() {
    let (table, mut ranges) = many();
    ranges.truncate(120);
    let intact = EncodedUnwindRows::new(&table, &ranges).expect("in order").section;
    read_all(intact.clone()).expect("intact");
    for len in 0..intact.len() {
        assert!(read_all(intact[..len].to_vec()).is_err_and(|error| error.cause().is_damage()), "{len}");
    }
    let mut found = 0;
    for at in 0..intact.len() {
        for flip in [1, 0x80] {
            let mut damaged = intact.clone();
            damaged[at] ^= flip;
            found += usize::from(read_all(damaged).is_err());
        }
    }
    assert!(2 * found > 3 * intact.len() / 2, "most changes of the tables are found: {found}");
}

#[test]
fn an_empty_section_has_gaps_only() {
    let section = Section::new(EncodedUnwindRows::new(&UnwindTable::default(), &[]).expect("empty").section);
    let pages = section.pages();
    let decoded = UnwindSection::decode(&pages).expect("whole");
    let reader = UnwindReader { section: &decoded, pages, mask: u64::MAX };
    assert_eq!(reader.verify().expect("whole"), [1, 0]);
    assert!(reader.find(0).expect("whole").is_none());
}

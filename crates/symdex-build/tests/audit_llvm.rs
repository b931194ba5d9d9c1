//! The audit against llvm-symbolizer's answers: it names why they differ, and fails what nothing explains.

use object::elf;
use symdex::Index;
use symdex_build::audit::{AuditReport, Class, Frame, LlvmAnswers, Options, Peer, PeerReport, audit_with};
use symdex_build::{Companions, Image, slices};
use symdex_testimages::debug_file::{
    BASE, CODE, Die, Elf, ElfSymbol, MachO, Unit, debug_sections, macho, whole,
};

/// What an audit says where llvm-symbolizer answers these frames, innermost first, at every address.
fn audited_with_llvm(file: &[u8], answer: &[(&'static str, &'static str, u32)]) -> AuditReport {
    let slice = &slices(file).expect("a Mach-O file")[0];
    let companions = Companions::default();
    let image = Image::load(slice, "made-up", &companions).expect("loads");
    let built = symdex_build::build(&image, &Default::default(), &|_, _| {}).expect("builds");
    let index = Index::open(built.bytes).expect("just written");
    let text = |text: &'static str| (!text.is_empty()).then(|| text.as_bytes().into());
    let frame = |&(name, file, line): &(&'static str, &'static str, u32)| Frame {
        name: text(name),
        file: text(file),
        line: (!file.is_empty()).then_some(line),
    };
    let answer: Vec<Frame<'static>> = answer.iter().map(frame).collect();
    let ask = |svmas: Vec<u64>| {
        let answers = svmas.into_iter().map(|_| Ok(answer.clone())).collect::<Vec<_>>();
        Ok(Box::new(answers.into_iter()) as LlvmAnswers<'_>)
    };
    let options = Options { llvm_symbolizer: Some(&ask), ..Options::default() };
    audit_with(&image, &index, &options).expect("is read")
}

#[test]
fn llvm_symbolizers_answers_are_compared_too() {
    let function = Die::function("f", (CODE.start, CODE.end)).linkage_name("f");
    let unit = Unit::new(whole()).child(function).sequence(&[(CODE.start, 0, 2, true)], CODE.end);
    // As long as its code, so that llvm-symbolizer would not cut the symbols.
    let file = macho(&[unit], &[("f", CODE.start), ("g", CODE.start)]);
    let file = MachO { debug_offset: 0x4000, ..file }.bytes();
    let classes = |answer: &[(&'static str, &'static str, u32)]| {
        let report = audited_with_llvm(&file, answer);
        let PeerReport { agreements, classes } = &report.peers[&Peer::LlvmSymbolizer];
        assert_eq!(report.peers[&Peer::Addr2line].agreements, report.addresses);
        (*agreements, classes.keys().copied().collect::<Vec<_>>(), report.failures().len())
    };
    let all = audited_with_llvm(&file, &[("f", "/src/a.c", 2)]).addresses;
    assert_eq!(classes(&[("f", "/src/a.c", 2)]), (all, vec![], 0));
    // Another symbol at the function's start, and a file that no table lists: number 0.
    assert_eq!(classes(&[("g", "/src/a.c", 2)]), (0, vec![Class::SymbolAlias], 0));
    assert_eq!(classes(&[("g", "", 0)]), (0, vec![Class::SymbolAlias, Class::NoFile], 0));
    let nothing_explains = |answer: &[(&'static str, &'static str, u32)]| {
        let report = audited_with_llvm(&file, answer);
        assert_eq!((report.unexplained_len, report.failures().len()), (report.addresses, 1), "{report}");
        assert!(report.unexplained.iter().all(|difference| difference.peer == Peer::LlvmSymbolizer));
        assert!(!report.peers.contains_key(&Peer::LlvmSymbolizer));
    };
    nothing_explains(&[("h", "/src/a.c", 2)]);
    nothing_explains(&[("f", "/src/a.c", 3)]);
    nothing_explains(&[("f", "/src/a.h", 2)]);
    nothing_explains(&[("f", "/src/a.c", 2), ("f", "/src/a.c", 2)]);
    nothing_explains(&[("", "", 0)]);
}

/// llvm-symbolizer lets a section be no longer than the file; a dSYM has sections without their code.
#[test]
fn a_symbol_that_llvm_symbolizer_ends_where_the_file_ends_has_a_class_and_others_have_none() {
    let file = |debug_offset| {
        // Code that is declared and has neither functions nor lines: what is compared are the ends of the range.
        let file = macho(&[Unit::new((0x2000, 0x2100))], &[("f", 0x1010), ("last", 0x2f00)]);
        MachO { debug_offset, ..file }.bytes()
    };
    let small = file(0);
    assert!(small.len() < 0x1000, "so f seems to end before 0x2000");
    let report = audited_with_llvm(&small, &[("", "", 0)]);
    let PeerReport { agreements, classes } = &report.peers[&Peer::LlvmSymbolizer];
    assert_eq!(
        (*agreements, report.unexplained_len),
        (3, 6),
        "no symbol up to 0x1010; six addresses at both ends of f and of last that it finds: {report}"
    );
    assert_eq!(classes.keys().copied().collect::<Vec<_>>(), [Class::SymbolCutShort]);
    // A file that could hold the section, and another answer than none.
    for (file, answer) in [(file(0x4000), ("", "", 0)), (small, ("g", "", 0))] {
        let report = audited_with_llvm(&file, &[answer]);
        assert!(report.unexplained_len >= report.addresses - 3, "{report}");
    }
}

/// The classes of llvm-symbolizer's answer at every address of `elf`; nothing where some address stays unexplained.
fn classes_with_llvm(elf: &Elf, answer: (&'static str, &'static str, u32)) -> Option<Vec<Class>> {
    let report = audited_with_llvm(&elf.bytes(), &[answer]);
    let classes = &report.peers.get(&Peer::LlvmSymbolizer)?.classes;
    (report.failures().is_empty()).then(|| classes.keys().copied().collect())
}

/// A function `f` all over the code.
fn all_code() -> ElfSymbol {
    ElfSymbol::function("f", CODE.start, CODE.end - CODE.start)
}

#[test]
fn llvm_symbolizer_names_the_source_file_of_local_symbols() {
    let source =
        ElfSymbol { section: elf::SHN_ABS.0, ..ElfSymbol::function("a.c", 0, 0).kind(elf::STT_FILE) };
    let local = all_code().binding(elf::STB_LOCAL);
    let of = |symbols: &[ElfSymbol]| Elf { symbols: symbols.to_vec(), ..Elf::default() };
    let classes = |elf| classes_with_llvm(&elf, ("f", "a.c", 0));
    assert_eq!(classes(of(&[source.clone(), local.clone()])), Some(vec![Class::LineZero, Class::SymbolFile]));
    assert_eq!(classes(of(&[source, all_code()])), None);
    assert_eq!(classes(of(&[local])), None);
}

#[test]
fn llvm_symbolizer_reads_one_symbol_table() {
    let elsewhere = ElfSymbol::function("g", 0x500, 0x10);
    let elf = Elf { symbols: vec![elsewhere], dynamic_symbols: vec![all_code()], ..Elf::default() };
    assert_eq!(classes_with_llvm(&elf, ("", "", 0)), Some(vec![Class::SymbolMissed]));
    assert_eq!(classes_with_llvm(&elf, ("g", "", 0)), None);
    let stripped = Elf { symbols: Vec::new(), ..elf };
    assert_eq!(classes_with_llvm(&stripped, ("f", "", 0)), Some(vec![]));
    assert_eq!(classes_with_llvm(&stripped, ("", "", 0)), None);
}

#[test]
fn llvm_symbolizer_reads_no_zdebug_sections() {
    let function = Die::function("f", (CODE.start, CODE.end));
    let unit = Unit::new(whole()).child(function).sequence(&[(CODE.start, 1, 2, true)], CODE.end);
    let symbol = ElfSymbol { value: BASE + CODE.start, ..all_code() };
    let elf = Elf { base: BASE, symbols: vec![symbol], ..Elf::default() }.debug(debug_sections(&[unit]));
    assert_eq!(classes_with_llvm(&elf, ("f", "", 0)), None);
    let compressed = elf.section(".zdebug_gdb_scripts", Vec::new());
    assert_eq!(classes_with_llvm(&compressed, ("f", "", 0)), Some(vec![Class::OldCompression]));
}

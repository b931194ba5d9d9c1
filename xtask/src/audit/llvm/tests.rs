//! The audit against llvm-symbolizer's answers: it names why they differ, and fails what nothing explains.

use std::fs;
use std::path::Path;

use gimli::constants as dw;
use object::elf;
use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_audit::{ADDR2LINE, AskedPeer, AuditOptions, AuditReport, Frame, PeerFrames, PeerReport};
use symdex_build::{Companions, Image, slices};
use symdex_testkit::images::debug_file::{
    BASE, CODE, CODE_FLAGS, Die, Elf, ElfSymbol, ID, MachO, Section, Symbol, Unit, Value, debug_addr,
    debug_sections, image, macho, object, referring, rnglists, split_unit, supplementary_units, whole, write,
};

use super::{LLVM_SYMBOLIZER, LlvmPeer, location};

/// What an audit says if llvm-symbolizer gives the frames of `answer` for each SVMA, innermost first.
fn audited(file: &[u8], path: &Path, answer: impl Fn(u64) -> Vec<Frame<'static>> + Sync) -> AuditReport {
    let companions = Companions::default();
    let image = Image::load(&slices(file).expect("a debug file")[0], path, &companions).expect("loads");
    let ask = |svmas: Vec<u64>| {
        let answers: Vec<_> = svmas.into_iter().map(|svma| Ok(answer(svma))).collect();
        Ok(Box::new(answers.into_iter()) as PeerFrames<'_>)
    };
    let asked = AskedPeer { peer: &LlvmPeer::of(&image), ask: &ask };
    AuditOptions::new().peer(asked).audit(&image, &index(&image)).expect("is read")
}

fn index(image: &Image<'_>) -> Index<Vec<u8>> {
    let built = symdex_build::build(image).expect("builds");
    Index::open(built.bytes).expect("just written")
}

/// The same if it gives these frames at every address.
fn audited_with_llvm(file: &[u8], answer: &[(&'static str, &'static str, u32)]) -> AuditReport {
    let text = |text: &'static str| (!text.is_empty()).then(|| text.as_bytes().into());
    let frame = |&(name, file, line): &(&'static str, &'static str, u32)| Frame {
        name: text(name),
        file: text(file),
        line: (!file.is_empty()).then_some(line),
    };
    let answer: Vec<Frame<'static>> = answer.iter().map(frame).collect();
    audited(file, "made-up".as_ref(), |_| answer.clone())
}

fn names(report: &PeerReport) -> Vec<&'static str> {
    report.classes.keys().map(|class| class.name()).collect()
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
        let theirs = &report.peers[LLVM_SYMBOLIZER];
        assert_eq!(report.peers[ADDR2LINE].agreements, report.addresses);
        (theirs.agreements, names(theirs), report.failures().len())
    };
    let all = audited_with_llvm(&file, &[("f", "/src/a.c", 2)]).addresses;
    assert_eq!(classes(&[("f", "/src/a.c", 2)]), (all, vec![], 0));
    // Another symbol at the function's start, and a file that no table lists: number 0.
    assert_eq!(classes(&[("g", "/src/a.c", 2)]), (0, vec!["symbol alias"], 0));
    assert_eq!(classes(&[("g", "", 0)]), (0, vec!["line without file", "symbol alias"], 0));
    let nothing_explains = |answer: &[(&'static str, &'static str, u32)]| {
        let report = audited_with_llvm(&file, answer);
        assert_eq!((report.unexplained_len, report.failures().len()), (report.addresses, 1), "{report}");
        assert!(report.unexplained.iter().all(|difference| difference.peer == LLVM_SYMBOLIZER));
        assert!(!report.peers.contains_key(LLVM_SYMBOLIZER));
    };
    nothing_explains(&[("h", "/src/a.c", 2)]);
    nothing_explains(&[("f", "/src/a.c", 3)]);
    nothing_explains(&[("f", "/src/a.h", 2)]);
    nothing_explains(&[("f", "/src/a.c", 2), ("f", "/src/a.c", 2)]);
    nothing_explains(&[("", "", 0)]);
}

#[test]
fn llvm_symbolizer_has_a_file_for_a_call_that_states_none() {
    let g = || Die::new(dw::DW_TAG_subprogram).name("g").label("g");
    let call = || {
        let call = Die::new(dw::DW_TAG_inlined_subroutine).refers(dw::DW_AT_abstract_origin, "g");
        call.with(dw::DW_AT_call_line, Value::Number(7))
    };
    let classes = |call: Die, outer: (&'static str, &'static str, u32)| {
        let function = Die::function("f", (CODE.start, CODE.end)).child(call.range((CODE.start, CODE.end)));
        let unit =
            Unit::new(whole()).child(function).child(g()).sequence(&[(CODE.start, 1, 2, true)], CODE.end);
        let file = macho(&[unit], &[("f", CODE.start)]);
        let file = MachO { debug_offset: 0x4000, ..file }.bytes();
        let report = audited_with_llvm(&file, &[("g", "/src/a.c", 2), outer]);
        let unexplained = report.unexplained_len;
        let peer = report.peers.get(LLVM_SYMBOLIZER);
        (unexplained == 0).then(|| peer.map_or(Vec::new(), names))
    };
    assert_eq!(classes(call(), ("f", "/src/root.c", 7)), Some(vec!["call without file"]));
    assert_eq!(classes(call(), ("f", "/src/root.c", 8)), None);
    assert_eq!(classes(Die::inlined("g", 7), ("f", "/src/a.c", 7)), Some(vec![]));
    assert_eq!(classes(Die::inlined("g", 7), ("f", "/src/root.c", 7)), None);
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
    let theirs = &report.peers[LLVM_SYMBOLIZER];
    assert_eq!(
        (theirs.agreements, report.unexplained_len),
        (3, 6),
        "no symbol up to 0x1010; six addresses at both ends of f and of last that it finds: {report}"
    );
    assert_eq!(names(theirs), ["symbol cut short"]);
    // A file that could hold the section, and another answer than none.
    for (file, answer) in [(file(0x4000), ("", "", 0)), (small, ("g", "", 0))] {
        let report = audited_with_llvm(&file, &[answer]);
        assert!(report.unexplained_len >= report.addresses - 3, "{report}");
    }
}

/// The file is smaller than its first section, so that llvm-symbolizer does not see the end of that section.
#[test]
fn llvm_symbolizer_extends_symbols_to_the_next_section_of_macho() {
    let stubs = Section {
        name: "__stubs",
        range: CODE.end..CODE.end + 0x100,
        flags: CODE_FLAGS,
        ..Section::default()
    };
    let mut file = macho(&[], &[("last", CODE.end - 0x10)]);
    file.text.push(stubs);
    let frame = |svma: u64| Frame {
        name: (svma >= BASE + CODE.end - 0x10).then(|| b"last".as_slice().into()),
        ..Frame::default()
    };
    let report = audited(&file.bytes(), "made-up".as_ref(), |svma| vec![frame(svma)]);
    assert_eq!(report.failures(), [""; 0], "{report}");
    let theirs = &report.peers[LLVM_SYMBOLIZER];
    assert_eq!(names(theirs), ["symbol of another section"]);
    assert!(theirs.agreements > 0 && theirs.classes.values().all(|class| class.example.offset >= CODE.end));
}

/// The classes of llvm-symbolizer's answer at every address of `elf`; nothing where some address stays unexplained.
fn classes_with_llvm(elf: &Elf, answer: (&'static str, &'static str, u32)) -> Option<Vec<&'static str>> {
    let report = audited_with_llvm(&elf.bytes(), &[answer]);
    let theirs = report.peers.get(LLVM_SYMBOLIZER)?;
    report.failures().is_empty().then(|| names(theirs))
}

/// A function `f` all over the code.
fn all_code() -> ElfSymbol {
    ElfSymbol::function("f", CODE.start, CODE.end - CODE.start)
}

#[test]
fn llvm_symbolizer_shortens_hidden_names() {
    let function = Die::function("__hidden#1_", (CODE.start, CODE.end));
    let unit = Unit::new(whole()).child(function).sequence(&[(CODE.start, 0, 2, true)], CODE.end);
    let file = macho(&[unit], &[]);
    let symbol = Symbol::raw(b"__hidden#1_", BASE + CODE.start);
    let file = MachO { debug_offset: 0x4000, symbols: vec![symbol], ..file }.bytes();
    let report = audited_with_llvm(&file, &[("_hidden#1_", "/src/a.c", 2)]);
    assert_eq!(report.failures(), [""; 0], "{report}");
    assert_eq!(names(&report.peers[LLVM_SYMBOLIZER]), ["hidden name"]);
}

/// Each name that llvm-symbolizer can take from a symbol has a class of its own, which says where the symbol is.
#[test]
fn symbols_are_told_apart_by_their_places() {
    let (low, entry) = ((CODE.start, CODE.start + 0x100), CODE.start + 0x800);
    let classes = |function: Die, symbols: &[(&'static str, u64)], theirs: &'static str| {
        let function = function.ranges(&[(entry, CODE.end), low]);
        let unit = Unit::new(whole()).child(function);
        let unit = unit.sequence(&[(low.0, 1, 9, true)], low.1).sequence(&[(entry, 1, 2, true)], CODE.end);
        let symbol = |&(name, at): &(_, u64)| {
            let end = if at < entry { low.1 } else { CODE.end };
            ElfSymbol::function(name, BASE + at, end - at)
        };
        let symbols: Vec<_> = symbols.iter().map(symbol).collect();
        let file = Elf { base: BASE, symbols, ..Elf::default() }.debug(debug_sections(&[unit]));
        let answer = |svma: u64| {
            let line = match svma - BASE {
                offset if (low.0..low.1).contains(&offset) => 9,
                offset if (entry..CODE.end).contains(&offset) => 2,
                _ => return vec![Frame::default()],
            };
            let [name, file] = [theirs, "/src/a.c"].map(|text| Some(text.as_bytes().into()));
            vec![Frame { name, file, line: Some(line) }]
        };
        let report = audited(&file.bytes(), "made-up".as_ref(), answer);
        assert_eq!(report.wrong(), [""; 0], "{report}");
        // The name is that of one symbol, so the addresses of others stay unexplained.
        report.peers.get(LLVM_SYMBOLIZER).map_or(Vec::new(), names)
    };
    let linked = || Die::new(dw::DW_TAG_subprogram).name("f").linkage_name("_Z1fv");
    let plain = || Die::new(dw::DW_TAG_subprogram).name("f");
    assert_eq!(
        classes(linked(), &[("_Z1fv", entry), ("_Z1fv.cold", low.0)], "_Z1fv.cold"),
        ["symbol of a part"]
    );
    assert_eq!(classes(plain(), &[("f", entry), ("f.cold", low.0)], "f.cold"), ["symbol of a part"]);
    assert_eq!(classes(linked(), &[("_Z1fv.part.0", entry)], "_Z1fv.part.0"), ["symbol of a copy"]);
    assert_eq!(classes(linked(), &[("g", entry)], "g"), ["symbol not stated"]);
    assert_eq!(classes(plain(), &[("g", entry), ("h", entry)], "h"), ["symbol not stated"]);
    assert_eq!(classes(linked(), &[("_Z1fv", entry), ("g", entry)], "g"), ["symbol alias"]);
    assert_eq!(classes(linked(), &[("_Z1fv", entry), ("label", entry + 4)], "label"), ["symbol elsewhere"]);
    let block = ("_Z1fv.__part.1", entry + 4);
    assert_eq!(classes(linked(), &[("_Z1fv", entry), block], block.0), ["symbol of a block"]);
    // No symbol has the name. A plain name is explained only where llvm-symbolizer finds no symbol: here in the part.
    assert_eq!(classes(linked(), &[("_Z1fv", entry)], "f"), [""; 0]);
    assert_eq!(classes(plain(), &[("f.isra.0", entry)], "f"), ["symbol name"]);
}

#[test]
fn llvm_symbolizer_names_the_source_file_of_local_symbols() {
    let source =
        ElfSymbol { section: elf::SHN_ABS.0, ..ElfSymbol::function("a.c", 0, 0).kind(elf::STT_FILE) };
    let local = all_code().binding(elf::STB_LOCAL);
    let of = |symbols: &[ElfSymbol]| Elf { symbols: symbols.to_vec(), ..Elf::default() };
    let classes = |elf| classes_with_llvm(&elf, ("f", "a.c", 0));
    assert_eq!(classes(of(&[source.clone(), local.clone()])), Some(vec!["file of a symbol", "line zero"]));
    assert_eq!(classes(of(&[source, all_code()])), None);
    assert_eq!(classes(of(&[local])), None);
}

#[test]
fn llvm_symbolizer_reads_one_symbol_table() {
    let elsewhere = ElfSymbol::function("g", 0x500, 0x10);
    let elf = Elf { symbols: vec![elsewhere], dynamic_symbols: vec![all_code()], ..Elf::default() };
    assert_eq!(classes_with_llvm(&elf, ("", "", 0)), Some(vec!["symbol missed"]));
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
    assert_eq!(classes_with_llvm(&compressed, ("f", "", 0)), Some(vec!["old compression"]));
}

/// The classes if llvm-symbolizer answers as the index of `without`, a file without its companions, at every address of
/// `path`.
fn classes_without_companions(path: &Path, without: &[u8]) -> Vec<&'static str> {
    let companions = Companions::default();
    let nowhere = Path::new("made-up");
    let slice = slices(without).expect("an ELF file").remove(0);
    let theirs = index(&Image::load(&slice, nowhere, &companions).expect("loads"));
    let answer = |svma: u64| {
        let owned = |text: Option<&[u8]>| text.map(|text| text.to_vec().into());
        let frame = |frame: symdex::Frame<'_>| Frame {
            name: owned(frame.name),
            file: owned(frame.file),
            line: frame.line,
        };
        let mut scratch = Scratch::default();
        let found = theirs.lookup(ImageOffset(svma - BASE), LinePolicy::Exact, &mut scratch).expect("whole");
        found.map_or(vec![Frame::default()], |frames| frames.iter().map(frame).collect())
    };
    let report = audited(&fs::read(path).expect("there"), path, answer);
    assert_eq!(report.failures(), [""; 0], "{report}");
    names(&report.peers[LLVM_SYMBOLIZER])
}

#[test]
fn llvm_symbolizer_reads_no_supplementary_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("liba.so");
    let sup = Elf { base: 0, build_id: Some(vec![9; 20]), code: None, ..Elf::default() };
    let sup = sup.debug(debug_sections(&supplementary_units())).section(".debug_str", b"\0strung\0".to_vec());
    let file = referring(dw::DW_FORM_GNU_ref_alt, dw::DW_FORM_GNU_strp_alt);
    let file = file.section(".gnu_debugaltlink", [&b"common\0"[..], &[9; 20]].concat());
    write(&path, &file);
    write(&folder.path().join("common"), &sup);
    assert_eq!(classes_without_companions(&path, &file.bytes()), ["supplementary file"]);
}

#[test]
fn llvm_symbolizer_misses_split_units_that_were_moved() {
    for version in [4, 5] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("liba.so");
        let (skeleton, split) = split_unit(version, 0x1000, ID, 8);
        let file = image(&[skeleton]).section(".debug_addr", debug_addr(&[0x1000]));
        write(&path, &file);
        let split = object(&[split]).section(".debug_rnglists.dwo", rnglists());
        write(&folder.path().join("a.dwo"), &split);
        assert_eq!(classes_without_companions(&path, &file.bytes()), ["split unit"], "version {version}");
    }
}

#[test]
fn locations_are_split_at_the_last_two_colons() {
    let text = |text: &str| {
        location(text.as_bytes()).map(|frame| {
            let file = frame.file.map(|file| String::from_utf8_lossy(&file).into_owned());
            (file.unwrap_or_default(), frame.line)
        })
    };
    assert_eq!(text("C:/a b.c:12:3"), Some(("C:/a b.c".to_owned(), Some(12))));
    assert_eq!(text("/a.swift:0:0"), Some(("/a.swift".to_owned(), Some(0))));
    assert_eq!(text("??:0:0"), Some((String::new(), None)));
    assert_eq!(text("??:7:0"), Some((String::new(), Some(7))));
    assert_eq!(text("/a.c:x:0"), None);
}

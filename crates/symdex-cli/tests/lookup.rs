//! `symdex lookup`: answers as text and as JSON.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use crate::common::{
    command, debug_file, dsym, folder, index_of, symdex, symdex_on, without_debug_information,
};
use serde_json::json;
use symdex_testkit::images::debug_file::{Elf, ElfSection, ElfSymbol};

/// The answer at 0x400 of inline-dwarf4, whose base is 0x100000000: `row` is inlined into `mip`, and `mip` into
/// `pyramid`, which starts at 0x3a0. The lines are those of llvm-symbolizer.
const CHAIN: &str = "\
0x400         row at /src/symdex/inline/level/../grid.h:15 (inlined)
              mip at /src/symdex/inline/level/mip.h:7 (inlined)
              pyramid + 0x60 at /src/symdex/inline/level/mip.h:11
";

#[test]
fn a_chain_reads_innermost_first() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    assert_eq!(symdex_on(&index, "lookup {} 0x400").ok(), CHAIN);
    // The same address in decimal, as the debug file states it, and in a process.
    let frames = |text: &str| text.lines().map(|line| line[14..].to_owned()).collect::<Vec<_>>();
    let others = ["lookup {} 1024", "lookup {} --svma 0x100000400", "lookup {} --load 0x7000 0x7400"];
    for other in others {
        assert_eq!(frames(&symdex_on(&index, other).ok()[..]), frames(CHAIN), "{other}");
    }
    let outer = symdex_on(&index, "lookup {} --no-inlines 0x400").ok();
    assert_eq!(outer, "0x400         pyramid + 0x60 at /src/symdex/inline/level/mip.h:11\n");
}

/// A dSYM, the file in it, and one slice of a universal file have the answers of the index.
#[test]
fn a_debug_file_answers_as_its_index_does() {
    let root = folder();
    let addresses = "0x3a0 0x400 0x408 0x61b 0x730 0x654 0x374 0x0 0x999999 main";
    for name in ["inline-dwarf4", "outliner", "icf", "no-aranges", "swift-names", "lto"] {
        let index = index_of(name, root.path());
        for options in ["", "--json ", "--lines exact --no-demangle ", "--svma --no-inlines "] {
            let line = format!("lookup {{}} {options}{addresses}");
            let expected = symdex_on(&index, &line);
            for debug_file in [dsym(name), debug_file(name)] {
                let found = symdex_on(&debug_file, &line);
                assert_eq!((found.code, &found.out), (expected.code, &expected.out), "{name} {line}");
                assert_eq!(found.err, "");
            }
        }
    }
    let fat = symdex_on(&dsym("fat"), "lookup {} 0x400");
    assert_eq!(fat.code, Some(2), "{}", fat.out);
    assert!(fat.err.contains("choose one of its images with --arch or --id"), "{}", fat.err);
    assert_ne!(symdex_on(&dsym("fat"), "lookup {} --arch arm64 0x3a0").code, Some(2));
    let other = symdex_on(&dsym("fat"), "lookup {} --arch riscv 0x400");
    assert_eq!(other.code, Some(3), "{}", other.err);
}

#[test]
fn a_binary_beside_its_dsym_is_one_image() {
    for binary in ["a-binary", "z-binary"] {
        let root = folder();
        fs::write(root.path().join(binary), without_debug_information(&debug_file("inline-dwarf4")))
            .expect("written");
        let inside = root.path().join("m.dSYM/Contents/Resources/DWARF");
        fs::create_dir_all(&inside).expect("a folder");
        fs::copy(debug_file("inline-dwarf4"), inside.join("m")).expect("copied");
        assert_eq!(symdex_on(root.path(), "lookup {} 0x400").ok(), CHAIN, "{binary}");
        // A second file with the same debug information does not change the answer.
        fs::copy(debug_file("inline-dwarf4"), root.path().join("again")).expect("copied");
        assert_eq!(symdex_on(root.path(), "lookup {} 0x400").ok(), CHAIN, "{binary}");
        let atos = symdex_on(root.path(), "atos -o {} -offset 0x400").ok();
        assert!(atos.starts_with("pyramid (in ") && atos.ends_with(" (mip.h:11)\n"), "{atos}");
    }
}

#[test]
fn images_to_choose_from_are_named_by_their_paths_in_the_folder() {
    let root = folder();
    for name in ["cxx", "icf"] {
        let inside = root.path().join(name);
        fs::create_dir(&inside).expect("a folder");
        fs::copy(debug_file(name), inside.join("App")).expect("copied");
    }
    let several = symdex_on(root.path(), "lookup {} 0x400");
    assert_eq!(several.code, Some(2), "{}", several.err);
    assert!(several.err.contains("it has cxx/App (arm64, "), "{}", several.err);
    assert!(several.err.contains(", icf/App (arm64, "), "{}", several.err);
}

#[test]
fn an_unreadable_file_is_reported_only_if_no_other_has_the_image() {
    let root = folder();
    let whole = fs::read(debug_file("cxx")).expect("a debug file");
    fs::write(root.path().join("a-damaged"), &whole[..100]).expect("written");
    fs::copy(debug_file("inline-dwarf4"), root.path().join("b")).expect("copied");
    assert_eq!(symdex_on(root.path(), "lookup {} 0x400").ok(), CHAIN);
    let other = symdex_on(root.path(), "lookup {} --id ffff 0x400");
    assert_eq!((other.code, &*other.out), (Some(4), ""), "{}", other.err);
    assert!(other.err.contains("a-damaged: the file is cut short"), "{}", other.err);
}

#[test]
fn a_folder_with_only_archives_says_to_unpack_them() {
    let root = folder();
    fs::write(root.path().join("a.zip"), "PK").expect("written");
    let report = root.path().join("report.ips");
    fs::write(&report, "{}").expect("written");
    let named = "archives in a folder are not read: a.zip; give them to symdex build as inputs";
    let report = format!("symbolicate {} --dsym {{}}", report.display());
    for line in ["lookup {} 0x400", "lookup {} --id ffff 0x400", "atos -o {} 0x400", "ids {}", &report] {
        let finished = symdex_on(root.path(), line);
        assert_ne!(finished.code, Some(0), "{line}");
        assert_eq!(finished.err.matches(named).count(), 1, "{line}: {}", finished.err);
    }
}

#[test]
fn json_has_every_field() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let frame = |name: &str, file: &str, line: u32, inlined: bool| {
        json!({
            "function": name, "name": name, "file": format!("/src/symdex/inline/level/{file}"), "line": line,
            "inlined": inlined, "function_start": "0x3a0", "function_offset": 0x60, "table": "dwarf",
        })
    };
    let chain = [
        frame("row", "../grid.h", 15, true),
        frame("mip", "mip.h", 7, true),
        frame("pyramid", "mip.h", 11, false),
    ];
    let answers =
        symdex_on(&index, "lookup {} --json --load 0x100000000 0x100000400 0x10000061b 0x100000000 0xfff");
    assert_eq!(answers.code, Some(3));
    let [found, alone, gap, below] = &answers.json()[..] else { panic!("{}", answers.out) };
    assert_eq!(*found, json!({"address": "0x400", "functions": chain}));
    assert_eq!(
        *alone,
        json!({"address": "0x61b", "functions": [{
            "function": "depth", "name": "depth", "file": "/src/symdex/inline/main.c", "line": 25, "inlined": false,
            "function_start": "0x610", "function_offset": 0xb, "table": "dwarf",
        }]})
    );
    assert_eq!(*gap, json!({"address": "0x0", "functions": [], "reason": "not in the image's code"}));
    assert_eq!((&below["address"], &below["error"]["kind"]), (&json!("0xfff"), &json!("not_found")));
}

#[test]
fn line_policies_and_the_symbol_table() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    // The row of line 0 is not is_stmt. It comes after an is_stmt row of line 15.
    assert!(
        symdex_on(&index, "lookup {} 0x408")
            .ok()
            .starts_with("0x408         row at /src/symdex/inline/level/../grid.h:15 ")
    );
    assert!(symdex_on(&index, "lookup {} --lines exact 0x408").ok().contains("/grid.h:0 (inlined)\n"));
    // plain.c was compiled without -g.
    assert_eq!(
        symdex_on(&index, "lookup {} 0x730").ok(),
        "0x730         plain_hidden + 0x4 (symbol table)\n"
    );
    let json = symdex_on(&index, "lookup {} --json 0x730").json();
    assert_eq!(
        json[0]["functions"],
        json!([{
            "function": "plain_hidden", "name": "plain_hidden", "file": null, "line": null, "inlined": false,
            "function_start": "0x72c", "function_offset": 4, "table": "symbol_table",
        }])
    );
    let outliner = index_of("outliner", root.path());
    assert_eq!(
        symdex_on(&outliner, "lookup {} --lines exact 0x654").ok(),
        "0x654         OUTLINED_FUNCTION_0 + 0x4\n"
    );
    assert!(symdex_on(&outliner, "lookup {} 0x654").ok().ends_with(" at /src/symdex/layout/outline.c:56\n"));
}

#[test]
fn other_names_of_a_function_are_counted() {
    let root = folder();
    let index = index_of("icf", root.path());
    let json = symdex_on(&index, "lookup {} --json 0x374").json();
    let frame = &json[0]["functions"][0];
    let aliases = frame["aliases"].as_array().expect("it has some");
    let mut names: Vec<_> = aliases.iter().chain([&frame["name"]]).map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, [Some("price_a"), Some("price_b"), Some("price_c")]);
    assert!(symdex_on(&index, "lookup {} 0x374").ok().ends_with(" (and 2 other names)\n"));
    assert!(
        symdex_on(&index, "inspect {}")
            .ok()
            .lines()
            .any(|line| line.starts_with("aliases                 2 "))
    );
}

#[test]
fn names_are_demangled_unless_told_otherwise() {
    let root = folder();
    let index = index_of("swift-names", root.path());
    let swift = symdex_on(&index, "lookup {} --no-inlines 0x388").ok();
    assert!(swift.contains(" closure #1 ") && swift.contains(" in Timeline.append("), "{swift}");
    let raw = symdex_on(&index, "lookup {} --no-inlines --no-demangle 0x388").ok();
    assert!(raw.contains("$s4Feed8TimelineC6appendyS2iFS2iXEfU_ "), "{raw}");
    let json = symdex_on(&index, "lookup {} --json 0x388").json();
    assert_eq!(json[0]["functions"][0]["name"], "$s4Feed8TimelineC6appendyS2iFS2iXEfU_");
    assert!(json[0]["functions"][0]["function"].as_str().is_some_and(|text| text.starts_with("closure #1 ")));
}

#[test]
fn an_image_in_a_folder_is_found_flat_or_fanned_out() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let id = index.file_stem().expect("a name").to_string_lossy().into_owned();
    let dashed = format!("{}-{}", id[..8].to_uppercase(), &id[8..]);
    let lookup = || {
        symdex([
            "lookup".as_ref(),
            root.path().as_os_str(),
            "--id".as_ref(),
            dashed.as_ref(),
            "0x400".as_ref(),
        ])
    };
    assert_eq!(lookup().ok(), CHAIN);
    let fanned = root.path().join(&id[..2]);
    std::fs::create_dir(&fanned).expect("a folder");
    std::fs::rename(&index, fanned.join(index.file_name().expect("a name"))).expect("moved");
    assert_eq!(lookup().ok(), CHAIN);
    // The file has the name of this image and is the index of another.
    let other = index_of("cxx", root.path());
    let wrong =
        symdex(["lookup".as_ref(), other.as_os_str(), "--id".as_ref(), dashed.as_ref(), "0x400".as_ref()]);
    assert_eq!(wrong.code, Some(3), "{}", wrong.err);
    assert!(wrong.err.contains(&format!("not of {id}")), "{}", wrong.err);
}

#[test]
fn the_first_digits_of_an_id_name_an_index_if_only_one_begins_so() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let id = index.file_stem().expect("a name").to_string_lossy().into_owned();
    let lookup = |id: &str| symdex_on(root.path(), &format!("lookup {{}} --id {id} 0x400"));
    assert_eq!(lookup(&id[..4]).ok(), CHAIN);
    index_of("cxx", root.path());
    assert_eq!(lookup(&id[..12]).ok(), CHAIN);
    let several = lookup(&id[..4]);
    assert_eq!((several.code, several.out.as_str()), (Some(2), ""));
    assert!(several.err.contains(&id) && several.err.ends_with("; give more digits\n"), "{}", several.err);
    let none = lookup("ffff");
    assert_eq!(none.code, Some(3), "{}", none.err);
    let message = "no index in this folder or below it has an id that begins with ffff";
    assert!(none.err.contains(message), "{}", none.err);
    let debug_files = symdex_on(&crate::common::testdata().join("dsyms"), "lookup {} --id ffff 0x400");
    assert_eq!(debug_files.code, Some(3), "the code is that of a folder of debug files: {}", debug_files.err);
    let which = symdex_on(root.path(), "lookup {} 0x400");
    assert!(
        which.code == Some(2) && which.err.contains(&format!("{id} (inline-dwarf4, arm64)")),
        "{}",
        which.err
    );
}

#[test]
fn a_letter_among_the_digits_makes_an_address_hexadecimal() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let lookup = |line: &str| symdex_on(&index, &format!("lookup {{}} {line}")).ok();
    assert_eq!(lookup("--load b0000 b0400"), CHAIN.replacen("0x400", "b0400", 1));
    assert_eq!(lookup("1024"), CHAIN.replacen("0x400", "1024 ", 1));
    let padded = CHAIN.replacen("0x400       ", "00000400    ", 1);
    assert_eq!(lookup("00000400"), padded);
}

#[test]
fn a_list_of_decimal_and_hexadecimal_addresses_is_refused() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let mixed = symdex_on(&index, "lookup {} 0000000000000400 1024");
    assert_eq!((mixed.code, mixed.out.as_str()), (Some(2), ""));
    let expected = "symdex: `1024` is decimal and `0000000000000400` is hexadecimal; write all addresses in \
                    hexadecimal, with 0x\n";
    assert_eq!(mixed.err, expected);
}

/// A message says why there is no answer, and which option was forgotten.
#[test]
fn an_address_without_an_answer_has_a_reason() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let why = |line: &str| {
        let answer = symdex_on(&index, &format!("lookup {{}} {line}"));
        assert_eq!(answer.code, Some(3), "{}", answer.err);
        answer
            .out
            .split_once("nothing known here: ")
            .map(|(_, why)| why.trim_end().to_owned())
            .unwrap_or(answer.out)
    };
    assert_eq!(why("0x1"), "not in the image's code");
    let end = "beyond the end of the image's code, 0x738: ";
    assert_eq!(why("0x100000400"), format!("{end}did you mean --svma?"));
    assert_eq!(
        why("--load 0x1000 0x555555555000"),
        format!("{end}is it the load address of another image, or of another run?")
    );
    assert!(why("0x7f8f6378a1b8").starts_with(&format!("{end}an address of a process needs --load")));
    assert!(why("--svma 0x7f8f6378a1b8").starts_with(&format!("{end}is it an address of a process?")));
    assert!(
        why("--svma 0x400")
            .ends_with("below the image, which starts at 0x100000000; is it an offset, without --svma?\n")
    );
    let json = symdex_on(&index, "lookup {} --json 0x100000400 0x400").json();
    assert_eq!(
        (&json[0]["functions"], &json[0]["reason"]),
        (&serde_json::json!([]), &format!("{end}did you mean --svma?").into())
    );
    assert_eq!(json[1].get("reason"), None);
}

#[test]
fn gaps_and_wrong_addresses_are_reported_and_the_rest_is_answered() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let gap = symdex_on(&index, "lookup {} 0x1 0x400");
    assert_eq!((gap.code, gap.err.as_str()), (Some(3), ""));
    assert_eq!(gap.out, format!("0x1           nothing known here: not in the image's code\n{CHAIN}"));
    let wrong = symdex_on(&index, "lookup {} main 0x400");
    assert_eq!(wrong.code, Some(2));
    let expected = "main          error: not an address: expected a hexadecimal number with 0x, with a digit from \
                    a to f, \
                    or of 8, 12 or 16 digits; or a decimal number\n";
    assert_eq!(wrong.out, format!("{expected}{CHAIN}"));
}

#[test]
fn standard_input_is_answered_line_by_line() {
    let root = folder();
    for file in [index_of("inline-dwarf4", root.path()), dsym("inline-dwarf4")] {
        is_answered_line_by_line(&file);
    }
}

fn is_answered_line_by_line(index: &std::path::Path) {
    let mut child = command()
        .args(["lookup".as_ref(), index.as_os_str(), "--json".as_ref()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut input = child.stdin.take().expect("piped");
    let mut output = BufReader::new(child.stdout.take().expect("piped"));
    // Each address is written after the answer to the one before. Without a flush, this would block.
    let mut ask = |line: &[u8]| {
        input.write_all(line).expect("taken");
        let mut answer = String::new();
        output.read_line(&mut answer).expect("answered");
        serde_json::from_str::<serde_json::Value>(&answer).expect("a line of JSON")
    };
    assert_eq!(ask(b"0x400\n")["functions"][2]["function"], "pyramid");
    assert_eq!(ask(b"what?\n")["error"]["kind"], "usage");
    assert_eq!(ask(b"\n\xff\xfe\n")["address"], "\u{fffd}\u{fffd}");
    assert_eq!(ask(b"  0000000000000400\r\n")["address"], "0x400");
    let mixed = ask(b"1024\n");
    assert!(
        mixed["error"]["message"]
            .as_str()
            .is_some_and(|text| text.starts_with("`1024` is decimal and `0x400`"))
    );
    drop(input);
    assert_eq!(child.wait().expect("ended").code(), Some(2));
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let root = folder();
    let index = index_of("inline-dwarf4", root.path());
    let addresses = vec!["0x400"; 10_000];
    for arguments in [vec!["lookup"], vec!["atos", "-offset", "-o"]] {
        let mut child = command()
            .args(arguments)
            .arg(&index)
            .args(&addresses)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        drop(child.stdout.take());
        let finished = crate::common::CommandOutput::from(child.wait_with_output().expect("ended"));
        assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""));
    }
}

/// A file with a function at 1 MiB and a larger one in the upper half of the address space, as in a kernel.
#[test]
fn a_debug_file_answers_in_all_of_its_code_however_far_apart() {
    let (root, base, low) = (folder(), 0xffff_ffff_8100_0000, 0x10_0000);
    let boot = ElfSection {
        name: ".boot".to_owned(),
        kind: object::elf::SHT_PROGBITS.0,
        flags: 6,
        address: low,
        bytes: vec![0x90; 0x20],
        ..ElfSection::default()
    };
    let symbols =
        vec![ElfSymbol::function("kernel", base + 0x1000, 0x40), ElfSymbol::function("boot", low, 0x20)];
    let elf = Elf { base, symbols, sections: vec![boot], other_segments: vec![low], ..Elf::default() };
    let path = root.path().join("vmlinux");
    fs::write(&path, elf.bytes()).expect("written");
    let said = |args: &str| symdex_on(&path, args);
    for (address, name) in [("0x100004", "boot"), ("0xffffffff81001004", "kernel")] {
        let found = said(&format!("lookup {{}} --svma {address}"));
        assert_eq!(found.code, Some(0), "{}", found.err);
        assert!(found.out.contains(&format!("{name} + 0x4")), "{}", found.out);
        assert_eq!(said(&format!("atos -o {{}} {address}")).out, format!("{name} (in vmlinux) + 4\n"));
        let symbolized = said(&format!("llvm-symbolizer -e {{}} {address}")).out;
        assert!(symbolized.starts_with(&format!("{name}\n")), "{symbolized}");
    }
    assert_eq!(said("lookup {} --svma 0x1000").code, Some(3), "there is no code");
    // An index has the larger part, and says what it lacks.
    let built = said(&format!("build {{}} -o {}", root.path().join("indexes").display()));
    assert!(built.err.contains("the code at 0x100000..0x100020 is not in the 4 GiB"), "{}", built.err);
}

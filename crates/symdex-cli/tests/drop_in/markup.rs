//! `--filter-markup` of both programs on the same text.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use symdex_testkit::program;

use super::common::{command, folder, symdex, testdata};
use super::compared::{images, output};

/// Where the text says that the module is loaded.
const LOADED: u64 = 0x7acb_a69d_5000;

/// A debug folder with an ELF file in it, and the build id of the file.
fn debug_folder(folder: &Path) -> String {
    let elf = testdata().join("elf/gcc-parts.so");
    let listed = symdex(["inspect".as_ref(), "--json".as_ref(), index_of(&elf, folder).as_os_str()]);
    let id = listed.json()[0]["id"].as_str().expect("an id").to_owned();
    let of_id = folder.join("debug/.build-id").join(&id[..2]);
    std::fs::create_dir_all(&of_id).expect("made");
    std::fs::copy(&elf, of_id.join(format!("{}.debug", &id[2..]))).expect("copied");
    id
}

/// The index of the ELF file, in `indexes`.
fn index_of(elf: &Path, folder: &Path) -> PathBuf {
    let indexes = folder.join("indexes");
    symdex(["build".as_ref(), elf.as_os_str(), "-o".as_ref(), indexes.as_os_str()]).ok();
    let mut files = std::fs::read_dir(indexes).expect("a folder");
    files.next().expect("an index").expect("readable").path()
}

/// The output of both programs for `text`, in which columns are 0. `<` and `>` stand for the braces of elements.
fn filtered(debug: &Path, options: &[&str], text: &str) -> [String; 2] {
    let text = braces(text);
    let column = regex::Regex::new(r"([:m])[0-9]+((?:\x1b\[[0-9;]+m)? \()").expect("valid");
    let mut ours = command();
    ours.arg("llvm-symbolizer");
    [ours, program("llvm-symbolizer-19", "--version")].map(|mut command| {
        command.arg("--filter-markup").arg("--debug-file-directory").arg(debug).args(options);
        column.replace_all(&output(command, &text), "${1}0$2").into_owned()
    })
}

fn braces(text: &str) -> String {
    text.replace('<', "{{{").replace('>', "}}}")
}

/// The lines that state what is loaded: the code, and the data after it.
fn context(id: &str) -> String {
    format!(
        "<module:0:libparts.so:elf:{id}>\n<mmap:{LOADED:#x}:0x2000:load:0:rx:0x0>\n\
         <mmap:{:#x}:0x2000:load:0:rw:0x3000>\n",
        LOADED + 0x3000
    )
}

fn assert_same(debug: &Path, options: &[&str], text: &str) -> String {
    let [ours, theirs] = filtered(debug, options, text);
    assert_eq!(ours, theirs, "{options:?} {text:?}");
    ours
}

pub(crate) fn markup_is_replaced_as_by_llvm_symbolizer() {
    let folder = folder();
    let id = debug_folder(folder.path());
    let debug = folder.path().join("debug");
    let at = |offset: u64| format!("{:#x}", LOADED + offset);
    let mut text = format!("first <reset>\nplain\n[1] {}", context(&id));
    let (inlined, constant, symbol) = (at(0x1186), at(0x1112), at(0x4038));
    write!(
        text,
        "[2] <module:0x1:missing \"x\":elf:ABCDEF0123456789> after\n\
         [3] <mmap:0x8acba69d5000:0x5000:load:1:R:0x0>\n\
         [4] <bt:0:{inlined}:pc> [5] <bt:1:{inlined}>\n<bt:1234567:{constant}:ra>\r\n\
         <pc:{constant}>, <pc:{constant}:ra>\n\
         <data:{symbol}> <data:{constant}> <data:0x0>\n\
         <symbol:_ZN5paint7refreshEi> <symbol:main> <symbol:_Z1f\n\
         \x1b[31mred <symbol:_Z1fv> \x1b[1mbold <bt:0:{inlined}:pc>\x1b[0m \x1b[34m\
         <pc:{constant}>\n\x1b[1m<bt:0:{inlined}:pc>\r\n"
    )
    .expect("a string takes all");
    for element in [
        "unknown:1:2",
        "UP:1",
        "",
        ":x",
        "symbol",
        "symbol:a:b",
        "symbol:",
        "pc",
        "pc:1",
        "pc:00",
        "pc:0x",
        "bt",
        "bt:1",
        "bt:x:0x1",
        "bt:+1:0x1",
        "bt:1:0x1:zz",
        "bt:1:0x1:pc:more",
        "pc:0x1:pc:more",
        "pc:0x1:zz",
        "data",
        "data:0x10000000000000000",
        "module:0:twice:elf:ab",
        "module:2:x:macho:ab",
        "module:2:x:elf",
        "module:2:x:elf:xy",
        "module:zz:x:elf:ab",
        "mmap:0x1:0x2:load:9:r:0x0",
        "mmap:0x1:0x2:load:0:q:0x0",
        "mmap:0x1:0x2:load:0::0x0",
        "mmap:0x1:0x2:file:0:r:0x0",
        "mmap:0x1:0x2:load:0:r",
        "mmap:0x7acba69d5001:0x2:load:0:r:0x0",
        "mmap:0x7acba69d4fff:0x2:load:0:r:0x0",
        "mmap:0x1:010:load:0:xwr:0x0",
        "mmap:0x100:010:load:0:RWX:0x0:more",
        "module:3:a:elf:abc:more",
        "reset:more",
        "module:0:again:elf:ab",
    ] {
        writeln!(text, "a <{element}> b").expect("a string takes all");
        writeln!(text, "next <bt:0:{constant}>").expect("a string takes all");
    }
    text.push_str("the end has no line feed <pc:");
    for options in [&[][..], &["-s"], &["--no-demangle"], &["--functions=none"], &["--color=never"]] {
        let same = assert_same(&debug, options, &text);
        assert!(same.contains("#0.1  0x00007acba69d6186 "), "{same}");
    }
    let colored = assert_same(&debug, &["--color"], &text);
    assert!(colored.contains("\x1b[0;1;32mtwice\x1b[0;1;34m"), "{colored}");
}

pub(crate) fn markup_differs_only_where_the_answers_do() {
    let folder = folder();
    let id = debug_folder(folder.path());
    let debug = folder.path().join("debug");
    let elf = testdata().join("elf/gcc-parts.so");
    let addresses = images(&elf).remove(0).addresses;
    let (mut text, mut plain) = (context(&id), String::new());
    for address in &addresses {
        writeln!(text, "<bt:0:{:#x}:pc>\nend", LOADED + address).expect("a string takes all");
        writeln!(plain, "{address:#x}").expect("a string takes all");
    }
    let [ours, theirs] = filtered(&debug, &[], &text);
    let mut other = command();
    other.arg("llvm-symbolizer").arg("-e").arg(&elf);
    let mut reference = program("llvm-symbolizer-19", "--version");
    reference.arg("-e").arg(&elf);
    let [our_answers, their_answers] =
        [other, reference].map(|command| super::compared::without_columns(&output(command, &plain)));
    let (answers, references) = (our_answers.split("\n\n"), their_answers.split("\n\n"));
    let (mut same, mut different) = (0, 0);
    for ((ours, theirs), (answer, reference)) in
        ours.split("end\n").zip(theirs.split("end\n")).zip(answers.zip(references))
    {
        assert_eq!(ours == theirs, answer == reference, "{ours}\n{theirs}\n{answer}\n{reference}");
        if ours == theirs { same += 1 } else { different += 1 }
    }
    assert_eq!(same + different, addresses.len() + 1);
    assert!(same > addresses.len() / 2, "{same} of {}", addresses.len());
}

pub(crate) fn markup_is_answered_from_indexes() {
    let folder = folder();
    let id = debug_folder(folder.path());
    let text = format!("{}<bt:0:{:#x}:pc>\n", context(&id), LOADED + 0x1186);
    let [of_file, of_index] = [("--debug-dir", "debug"), ("--index", "indexes")].map(|(option, sources)| {
        let mut ours = command();
        ours.args(["llvm-symbolizer", "--filter-markup", option]).arg(folder.path().join(sources));
        output(ours, &braces(&text))
    });
    assert!(of_index.contains("twice /src/symdex/elf/parts.h:6:0 (libparts.so+0x1186)"), "{of_index}");
    assert_eq!(of_file, of_index);
    // A request by build id is answered from the same file.
    let mut ours = command();
    ours.arg("llvm-symbolizer").arg("--debug-dir").arg(folder.path().join("debug"));
    let answer = output(ours, &format!("BUILDID:{id} 0x1186\nDATA BUILDID:{id} 0x4038\n"));
    assert!(answer.starts_with("twice\n/src/symdex/elf/parts.h:6:0\nrescale\n"), "{answer}");
    assert!(answer.contains("\nlog_size\n16440 4\n"), "{answer}");
}

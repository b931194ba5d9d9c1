//! Kernel modules, against the same objects once lld has linked them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use symdex::{ImageOffset, Index, LinePolicy, Scratch};
use symdex_build::{Companions, Image, slices};
use symdex_testkit::program;

use crate::checks::image_answers;

/// A module with code in four sections, the last of which the kernel drops after the start.
const SOURCE: &str = "\
asm(\".pushsection .note.gnu.build-id, \\\"a\\\", %note\\n.long 4, 8, 3\\n.asciz \\\"GNU\\\"\\n.quad 0x1122334455667788\\n.popsection\");
#define IN(name) __attribute__((section(name), noinline))
struct module { long data[8]; };
IN(\".gnu.linkonce.this_module\") struct module this_module = {{1}};
volatile int count;
static inline __attribute__((always_inline)) int inlined(int n) { return count + n; }
IN(\".init.text\") int start(void) { return inlined(1); }
int plain(int n) {
  count++;
  return inlined(n) * 3;
}
IN(\".text.unlikely\") int cold(int n) { return plain(n) + inlined(2); }
IN(\".exit.text\") void leave(void) { count = cold(3); }
";

fn run(command: &mut Command) {
    let output = command.output().expect("runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The address of each function, and what answers its bytes: names, files and lines.
fn functions(path: &Path) -> BTreeMap<String, (u64, Vec<String>)> {
    let bytes = std::fs::read(path).expect("compiled");
    let companions = Companions::default();
    let image = Image::load(&slices(&bytes).expect("an ELF file")[0], path, &companions).expect("loads");
    assert!(!image_answers(&image, symdex::Table::Dwarf).is_empty());
    let index = Index::open(symdex_build::build(&image).expect("builds").bytes).expect("opens");
    let (mut scratch, mut functions) = (Scratch::default(), BTreeMap::new());
    for symbol in image.symbols().iter().filter(|symbol| symbol.name.is_some()) {
        let mut answers = Vec::new();
        for offset in symbol.start..symbol.end {
            let frames = index.lookup(ImageOffset(offset), LinePolicy::Exact, &mut scratch);
            let frames = frames.expect("intact").expect("a function");
            let text = |bytes: Option<&[u8]>| String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned();
            let frame = |frame: symdex::Frame<'_>| {
                format!("{} {} {:?};", text(frame.name), text(frame.file), frame.line)
            };
            answers.push(frames.iter().map(frame).collect());
        }
        let name = String::from_utf8_lossy(symbol.name.unwrap_or_default()).into_owned();
        functions.insert(name, (image.info().base + symbol.start, answers));
    }
    functions
}

pub(crate) fn modules_answer_as_once_they_are_linked() {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("module.c");
    let mut functions_seen = 0;
    for (target, note) in [("x86_64", "@"), ("aarch64", "%"), ("i686", "@"), ("armv7a", "%")] {
        std::fs::write(&source, SOURCE.replace("%note", &format!("{note}note"))).expect("written");
        for (number, flags) in [&["-gdwarf-5"][..], &["-gdwarf-4"], &["-gz=zlib"]].into_iter().enumerate() {
            let module = folder.path().join(format!("{target}{number}.ko"));
            let mut clang = program("clang-19", "--version");
            clang.args(["-target", &format!("{target}-linux-gnu"), "-c", "-g", "-O1"]);
            clang.args(["-fno-pic", "-fno-asynchronous-unwind-tables"]);
            clang.args(flags).arg("-o").arg(&module).arg(&source);
            run(&mut clang);
            let linked = module.with_extension("linked");
            let mut lld = program("ld.lld-19", "--version");
            run(lld.args(["-e", "plain", "-o"]).arg(&linked).arg(&module));
            let (module, linked) = (functions(&module), functions(&linked));
            assert_eq!(module.keys().collect::<Vec<_>>(), ["cold", "leave", "plain", "start"], "{target}");
            for (name, (_, answers)) in &module {
                assert_eq!(answers, &linked[name].1, "{target} {flags:?} {name}");
                assert!(answers.iter().any(|frames| frames.contains("inlined")) || name == "leave");
            }
            // As the kernel lays them out: executable sections in the order of the file, those of `.init` last.
            assert_eq!(module["plain"].0, 0, "{target}");
            assert!(["cold", "leave"].iter().all(|name| module[*name].0 < module["start"].0), "{module:?}");
            functions_seen += module.len();
        }
    }
    assert_eq!(functions_seen, 4 * 4 * 3);
}

//! Minidumps and microdumps: the walk of their stacks, and the reports that they become.

use std::cell::RefCell;

use symdex_minidump::walk;
use symdex_report::{Options, Source, symbolicate};
use symdex_testkit::minidump::{DumpedModule, DumpedProcess, DumpedThread, Processor};

use crate::source::{Unwound, app, nothing};

thread_local! {
    static UNWOUND: RefCell<Unwound> = RefCell::new(Unwound::of_indexes());
}

pub fn run(data: &[u8]) {
    check(data, &mut nothing);
    check(data, &mut app);
    UNWOUND.with_borrow_mut(|unwound| check(data, unwound));
}

fn check(data: &[u8], source: &mut (impl Source + Send)) {
    let Some(Ok(mut walked)) = walk(data, source) else { return };
    let symbolicated = symbolicate(&walked.report, source, &Options::new());
    symbolicated.write_text(&mut Vec::new()).expect("memory");
    let process = &mut walked.process;
    process.write_text(&symbolicated, &mut Vec::new()).expect("memory");
    process.write_json(&symbolicated, &mut Vec::new()).expect("memory");
}

#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let app =
        [0x6d, 0xcd, 0x4e, 0x9d, 0xd3, 0xb1, 0x3a, 0x0e, 0x8d, 0xff, 0x6a, 0x5a, 0x4b, 0xe1, 0xb1, 0xb0];
    let stack: Vec<u8> = (0..32u64).flat_map(|word| (0x40_0000 + 0x37 * word).to_le_bytes()).collect();
    let dump = |processor, registers: usize| {
        let module = DumpedModule {
            base: 0x40_0000,
            size: 0x1000,
            path: "/data/app/App".to_owned(),
            build_id: app.to_vec(),
        };
        let registers = vec![0x7000; registers - 1].into_iter().chain([0x40_0030]).collect();
        let thread = DumpedThread { id: 1, registers, stack_address: 0x7000, stack: stack.clone() };
        DumpedProcess { modules: vec![module], threads: vec![thread], processor, ..DumpedProcess::default() }
    };
    vec![
        dump(Processor::X86_64, 17).to_bytes(),
        dump(Processor::Arm64, 33).to_bytes(),
        dump(Processor::Arm, 16).to_bytes(),
        dump(Processor::Arm64, 33).to_microdump("F/google-breakpad( 1): ").into_bytes(),
        dump(Processor::Arm, 16).to_microdump("").into_bytes(),
    ]
}

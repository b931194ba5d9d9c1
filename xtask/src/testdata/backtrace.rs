//! The threads of the demo's crash: which function of which image calls which.
//!
//! The addresses come from the linked images. The chains of inlined functions are checked against llvm-symbolizer.

use super::disassembly::Callee;
use super::disassembly::Callee::{Register, Symbol};

/// The three images of the demo.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image {
    App,
    Kit,
    Plain,
}

pub(crate) struct Thread {
    pub(crate) name: Option<&'static str>,
    /// The frames, innermost first.
    pub(crate) frames: &'static [Frame],
}

/// A frame. `chain` has the short DWARF names of its functions, innermost first. The last one is the concrete function.
pub(crate) enum Frame {
    /// The thread stopped at the nth instruction with this mnemonic.
    Fault {
        image: Image,
        function: &'static str,
        mnemonic: &'static str,
        nth: usize,
        chain: &'static [&'static str],
    },
    /// The function waits for the nth call of `callee` to return.
    Call { image: Image, function: &'static str, callee: Callee, nth: usize, chain: &'static [&'static str] },
    /// A frame in an image of the operating system, for which there is no file.
    System { image: &'static str, offset: u64, known_as: Option<&'static str> },
}

/// The nth call of a symbol.
const fn call(
    image: Image,
    function: &'static str,
    callee: &'static str,
    nth: usize,
    chain: &'static [&'static str],
) -> Frame {
    Frame::Call { image, function, callee: Symbol(callee), nth, chain }
}

/// The first call through a register.
const fn indirect(image: Image, function: &'static str, chain: &'static [&'static str]) -> Frame {
    Frame::Call { image, function, callee: Register, nth: 0, chain }
}

const fn system(image: &'static str, offset: u64) -> Frame {
    Frame::System { image, offset, known_as: None }
}

const fn known(image: &'static str, offset: u64, known_as: &'static str) -> Frame {
    Frame::System { image, offset, known_as: Some(known_as) }
}

const ABORT_WITH: &str = "__ZN7demokit12_GLOBAL__N_110abort_withERKNS_5FaultE";
const FAIL: &str = "__ZNK7demokit7Decoder4failEj";
const ON_MISMATCH: &str = "__ZN7demokit7Decoder11on_mismatchEPvj";
const DECODER_RUN: &str = "__ZN7demokit7Decoder3runEv";
const WAIT_FOR_WORK: &str = "__ZN7demokit10Prefetcher13wait_for_workEv";
const VISIT: &str = "__ZN6engine8Renderer5visitERKNS_4NodeERNS_7VisitorE";
const DRAW_ROW: &str = "__ZN6engine8Renderer8draw_rowEi";
const LEAF: &str = "__ZN6engine12_GLOBAL__N_112PaintVisitor4leafERKNS_4NodeE";
const RENDER_BLOCK: &str = "___32-[DemoCanvas renderScene:scale:]_block_invoke";
const PREFETCH_BLOCK: &str = "___30-[DemoCanvas startPrefetchOn:]_block_invoke";
const INSTALL_CLOSURE: &str = "_$s7DemoApp10TileLoaderC7installyyFS2icfU_";
const DECODE: &str = "_$s7DemoApp10TileLoaderC6decodeySixSzRzlFSi_Tg5";
const DID_TAP: &str = "_$s7DemoApp14ViewControllerC12didTapRenderyyypF";
const DID_TAP_OBJC: &str = "_$s7DemoApp14ViewControllerC12didTapRenderyyypFTo";

const VISIT_CHILD: Frame = call(Image::App, VISIT, VISIT, 0, &["operator()", "each_child", "visit"]);
const EXPAND_NESTED: Frame =
    call(Image::Kit, "_dk_rle_expand", "_dk_rle_expand", 0, &["expand_run", "dk_rle_expand"]);

/// The threads. Thread 0 crashes: a tap draws a scene, a missing tile is decoded, a checksum is wrong, and logging the
/// error writes through a null pointer.
pub(crate) static THREADS: &[Thread] = &[
    Thread { name: Some("Dispatch queue: com.apple.main-thread"), frames: CRASHED },
    Thread { name: Some("Dispatch queue: com.example.demo.prefetch"), frames: PREFETCHING },
    Thread { name: Some("com.apple.uikit.eventfetch-thread"), frames: FETCHING_EVENTS },
    Thread { name: None, frames: IDLE },
];

static CRASHED: &[Frame] = &[
    Frame::Fault {
        image: Image::Kit,
        function: ABORT_WITH,
        mnemonic: "str",
        nth: 1,
        chain: &["push", "append", "abort_with"],
    },
    // The next two calls do not return. Each is the last instruction of its function, so that its return address lies
    // in the next function.
    call(Image::Kit, FAIL, ABORT_WITH, 0, &["fail"]),
    call(Image::Kit, ON_MISMATCH, FAIL, 0, &["on_mismatch"]),
    indirect(Image::Plain, "_fold_bytes", &[]),
    call(Image::Plain, "_plain_checksum", "_fold_bytes", 0, &[]),
    call(Image::Kit, "_dk_rle_expand", "_plain_checksum", 0, &["expand_run", "dk_rle_expand"]),
    EXPAND_NESTED,
    EXPAND_NESTED,
    call(Image::Kit, DECODER_RUN, "_dk_rle_expand", 0, &["operator()", "each_span", "run"]),
    call(Image::Kit, "_dk_decode", DECODER_RUN, 0, &["dk_decode"]),
    call(Image::App, DECODE, "_dk_decode", 0, &["decode"]),
    call(Image::App, INSTALL_CLOSURE, DECODE, 0, &["install_closure_inner", "install_closure"]),
    indirect(Image::Kit, "_dk_tile_fetch", &["operator()", "get_or_load", "dk_tile_fetch"]),
    call(Image::App, LEAF, "_dk_tile_fetch", 0, &["texel", "leaf"]),
    indirect(Image::App, VISIT, &["visit"]),
    VISIT_CHILD,
    VISIT_CHILD,
    VISIT_CHILD,
    call(Image::App, DRAW_ROW, VISIT, 0, &["operator()", "with_depth", "draw_row"]),
    call(
        Image::App,
        "-[DemoCanvas(Drawing) drawRow:scale:]",
        DRAW_ROW,
        0,
        &["-[DemoCanvas(Drawing) drawRow:scale:]"],
    ),
    call(
        Image::App,
        RENDER_BLOCK,
        "_objc_msgSend",
        0,
        &["__32-[DemoCanvas renderScene:scale:]_block_invoke"],
    ),
    indirect(Image::Plain, "_draw_rows", &[]),
    // The second of two calls of the same function, for the second half of the rows.
    call(Image::Plain, "_plain_each_row", "_draw_rows", 1, &[]),
    call(
        Image::App,
        "-[DemoCanvas renderScene:scale:]",
        "_plain_each_row",
        0,
        &["-[DemoCanvas renderScene:scale:]"],
    ),
    call(Image::App, DID_TAP, "_objc_msgSend", 0, &["render", "didTapRender"]),
    call(Image::App, DID_TAP_OBJC, DID_TAP, 0, &["didTapRender_objc"]),
    system("UIKitCore", 0x00ce_4b1c),
    system("UIKitCore", 0x00b7_30d8),
    system("UIKitCore", 0x00dd_a2f4),
    system("CoreFoundation", 0x0009_9e70),
    system("CoreFoundation", 0x0001_e8c4),
    system("GraphicsServices", 0x0000_1988),
    system("UIKitCore", 0x0051_40ac),
    call(Image::App, "_main", "_UIApplicationMain", 0, &["run_app", "main"]),
    known("libdyld.dylib", 0x0001_6a84, "start + 4"),
];

static PREFETCHING: &[Frame] = &[
    known("libsystem_kernel.dylib", 0x0000_5f50, "__semwait_signal + 8"),
    system("libsystem_c.dylib", 0x0000_d4a4),
    system("libsystem_c.dylib", 0x0001_1e30),
    call(Image::Plain, "_plain_wait", "_usleep", 0, &[]),
    call(Image::Kit, WAIT_FOR_WORK, "_plain_wait", 0, &["pause", "wait_for_work"]),
    call(Image::Kit, "_dk_prefetch", WAIT_FOR_WORK, 0, &["run", "dk_prefetch"]),
    call(Image::App, PREFETCH_BLOCK, "_dk_prefetch", 0, &["__30-[DemoCanvas startPrefetchOn:]_block_invoke"]),
    system("libdispatch.dylib", 0x0000_24b4),
    system("libdispatch.dylib", 0x0000_3fdc),
    system("libdispatch.dylib", 0x0000_b694),
    known("libsystem_pthread.dylib", 0x0000_7f54, "start_wqthread + 8"),
];

static FETCHING_EVENTS: &[Frame] = &[
    known("libsystem_kernel.dylib", 0x0000_1504, "mach_msg_trap + 8"),
    system("CoreFoundation", 0x0001_e1b4),
    system("UIKitCore", 0x0062_3f18),
    known("libsystem_pthread.dylib", 0x0000_6cb0, "_pthread_start + 148"),
    known("libsystem_pthread.dylib", 0x0000_7f4c, "thread_start + 8"),
];

static IDLE: &[Frame] = &[known("libsystem_pthread.dylib", 0x0000_7f4c, "start_wqthread")];

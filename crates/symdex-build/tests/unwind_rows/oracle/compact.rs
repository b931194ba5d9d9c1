//! Rows of Apple's compact unwind information, `__unwind_info`, whose pages and encodings macho-unwind-info reads.
//!
//! That crate does not read the saved registers of ARM64 functions without a frame pointer, and reads those from d8 on
//! at other bits than `mach-o/compact_unwind_encoding.h` has them. These registers are read here.

use macho_unwind_info::opcodes::{OpcodeArm64, OpcodeX86_64, RegisterNameX86_64};
use macho_unwind_info::raw::consts::{PAGE_KIND_COMPRESSED, PAGE_KIND_REGULAR};
use macho_unwind_info::raw::{
    CompactUnwindInfoHeader, CompressedFunctionEntry, CompressedPage, Opcode, PageEntry, RegularPage,
};
use object::{File, Object as _, ObjectSection as _};
use symdex::FrameState as _;
use symdex_build::Image;

use super::{Machine, Results, Table, in_code};

/// The functions that have rules here, rather than in `__eh_frame`.
pub(super) struct CompactUnwind<'d> {
    arch: Arch,
    base: u64,
    ends: Vec<(u64, u64)>,
    encodings: Vec<u32>,
    sections: Vec<(u64, &'d [u8])>,
}

#[derive(Clone, Copy)]
enum Arch {
    X86_64,
    Arm64 { is_signed: bool },
}

/// Where a function keeps the values of its caller.
struct Frame {
    /// The canonical frame address: a register and an offset.
    cfa: (u16, i64),
    /// Registers, and where they are stored, relative to the canonical frame address.
    saved: Vec<(u16, i64)>,
    is_signed: bool,
}

impl<'d> CompactUnwind<'d> {
    /// The table of a file. `None` if no encodings are read for its architecture.
    pub(super) fn new(image: &Image<'_>, file: &File<'d>) -> Option<Self> {
        let arch = match image.info().arch.name.as_str() {
            "x86_64" | "x86_64h" => Arch::X86_64,
            "arm64" | "arm64v8" | "arm64_32" => Arch::Arm64 { is_signed: false },
            "arm64e" => Arch::Arm64 { is_signed: true },
            _ => return None,
        };
        let base = image.info().base;
        let section = file.section_by_name("__unwind_info");
        let bytes = section.and_then(|section| section.data().ok()).unwrap_or_default();
        let mut functions = functions(bytes).unwrap_or_default();
        functions.retain(|(.., encoding)| arch.is_here(*encoding));
        for (start, end, _) in &mut functions {
            *start = base.saturating_add(*start);
            *end = base.saturating_add(*end);
        }
        let (ends, encodings) = in_code(image, functions);
        let sections = file.sections().filter_map(|section| Some((section.address(), section.data().ok()?)));
        Some(Self { arch, base, ends, encodings, sections: sections.collect() })
    }

    /// The word at an address of the file.
    fn word(&self, address: u64) -> Option<u32> {
        self.sections.iter().find_map(|(start, bytes)| {
            let at = usize::try_from(address.checked_sub(*start)?).ok()?;
            bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
        })
    }

    /// The frame of a function. `None` if its encoding is not valid.
    fn frame(&self, start: u64, encoding: u32) -> Option<Frame> {
        match self.arch {
            Arch::X86_64 => {
                x86_64(encoding, |distance| self.word(self.base.wrapping_add(start).wrapping_add(distance)))
            }
            Arch::Arm64 { is_signed } => arm64(encoding, is_signed),
        }
    }
}

/// The functions: start and end as image offsets, and their encodings. `None` if the section is damaged.
fn functions(bytes: &[u8]) -> Option<Vec<(u64, u64, u32)>> {
    let header = CompactUnwindInfoHeader::parse(bytes).ok()?;
    (u32::from(header.version) == 1).then_some(())?;
    let (common, pages) = (header.global_opcodes(bytes).ok()?, header.pages(bytes).ok()?);
    let (last, pages) = pages.split_last()?;
    let mut starts = Vec::new();
    for page in pages {
        add_page(bytes, page, common, &mut starts)?;
        // Each function takes at least four bytes, unless pages are shared.
        (starts.len() <= bytes.len() / 4).then_some(())?;
    }
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([last.first_address().into()]);
    Some(starts.iter().zip(ends).map(|((start, encoding), end)| (*start, end, *encoding)).collect())
}

/// Appends where the functions of a page start, and their encodings.
fn add_page(bytes: &[u8], page: &PageEntry, common: &[Opcode], starts: &mut Vec<(u64, u32)>) -> Option<()> {
    let at = page.page_offset();
    match page.page_kind(bytes).ok()? {
        PAGE_KIND_REGULAR => {
            let functions = RegularPage::parse(bytes, at.into()).ok()?.functions(bytes, at).ok()?;
            starts.extend(functions.iter().map(|function| (function.address().into(), function.opcode())));
        }
        PAGE_KIND_COMPRESSED => {
            let compressed = CompressedPage::parse(bytes, at.into()).ok()?;
            let own = compressed.local_opcodes(bytes, at).ok()?;
            for function in compressed.functions(bytes, at).ok()? {
                let function = CompressedFunctionEntry::new((*function).into());
                let encoding = common.iter().chain(own).nth(function.opcode_index().into())?;
                let start = u64::from(page.first_address()) + u64::from(function.relative_address());
                starts.push((start, encoding.opcode()));
            }
        }
        _ => return None,
    }
    Some(())
}

impl Arch {
    /// Whether an encoding states rules itself.
    fn is_here(self, encoding: u32) -> bool {
        match self {
            Self::X86_64 => {
                !matches!(OpcodeX86_64::parse(encoding), OpcodeX86_64::Null | OpcodeX86_64::Dwarf { .. })
            }
            Self::Arm64 { .. } => {
                !matches!(OpcodeArm64::parse(encoding), OpcodeArm64::Null | OpcodeArm64::Dwarf { .. })
            }
        }
    }

    fn return_register(self) -> u16 {
        match self {
            Self::X86_64 => 16,
            Self::Arm64 { .. } => 30,
        }
    }
}

/// `code` reads a word of the function's code.
fn x86_64(encoding: u32, code: impl Fn(u64) -> Option<u32>) -> Option<Frame> {
    let number = |register: &Option<RegisterNameX86_64>| {
        register.map(|register| match register {
            RegisterNameX86_64::Rbx => 3,
            RegisterNameX86_64::Rbp => 6,
            RegisterNameX86_64::R12 => 12,
            RegisterNameX86_64::R13 => 13,
            RegisterNameX86_64::R14 => 14,
            RegisterNameX86_64::R15 => 15,
        })
    };
    let frameless = |size: i64, registers: [Option<RegisterNameX86_64>; 6]| {
        let registers = registers.iter().rev().filter_map(number);
        let saved = [16].into_iter().chain(registers).zip((1..).map(|place| -8 * place)).collect();
        Some(Frame { cfa: (7, size), saved, is_signed: false })
    };
    match OpcodeX86_64::parse(encoding) {
        OpcodeX86_64::FrameBased { stack_offset_in_bytes, saved_regs } => {
            let lowest = -16 - i64::from(stack_offset_in_bytes);
            let places = saved_regs.iter().rev().zip((0..).map(|place| lowest + 8 * place));
            let places = places.filter_map(|(register, place)| Some((number(register)?, place)));
            let saved = [(16, -8), (6, -16)].into_iter().chain(places).collect();
            Some(Frame { cfa: (6, 16), saved, is_signed: false })
        }
        OpcodeX86_64::FramelessImmediate { stack_size_in_bytes, saved_regs } => {
            frameless(stack_size_in_bytes.into(), saved_regs)
        }
        OpcodeX86_64::FramelessIndirect {
            immediate_offset_from_function_start,
            stack_adjust_in_bytes,
            saved_regs,
        } => {
            let size = code(immediate_offset_from_function_start.into())?;
            frameless(i64::from(size) + i64::from(stack_adjust_in_bytes), saved_regs)
        }
        _ => None,
    }
}

fn arm64(encoding: u32, is_signed: bool) -> Option<Frame> {
    let bit = |bit: u32| encoding >> bit & 1 == 1;
    let (cfa, first, x_pairs, is_signed) = match OpcodeArm64::parse(encoding) {
        OpcodeArm64::Frameless { stack_size_in_bytes } => {
            ((31, stack_size_in_bytes.into()), None, [0, 1, 2, 3, 4].map(bit), false)
        }
        OpcodeArm64::FrameBased {
            x19_and_x20_saved,
            x21_and_x22_saved,
            x23_and_x24_saved,
            x25_and_x26_saved,
            x27_and_x28_saved,
            ..
        } => {
            let pairs = [
                x19_and_x20_saved,
                x21_and_x22_saved,
                x23_and_x24_saved,
                x25_and_x26_saved,
                x27_and_x28_saved,
            ];
            ((29, 16), Some([30, 29]), pairs, is_signed)
        }
        _ => return None,
    };
    let d_pairs = [8, 9, 10, 11].map(bit);
    let firsts = [19, 21, 23, 25, 27, 72, 74, 76, 78];
    let pairs = firsts.into_iter().zip(x_pairs.into_iter().chain(d_pairs)).filter(|(_, is_saved)| *is_saved);
    // From the canonical frame address down: the return address and the frame pointer, and then the pairs.
    let pairs = first.into_iter().chain(pairs.map(|(first, _)| [first, first + 1]));
    let saved = pairs.flatten().zip((1..).map(|place| -8 * place)).collect();
    Some(Frame { cfa, saved, is_signed })
}

impl Table for CompactUnwind<'_> {
    fn entries(&self) -> &[(u64, u64)] {
        &self.ends
    }

    fn rows(&self, entry: usize, machine: &Machine, each: &mut dyn FnMut(u64, u64, Results)) {
        let (start, end) = self.ends[entry];
        let frame = self.frame(start, self.encodings[entry]);
        let plus = |value: u64, offset: i64| value.wrapping_add_signed(offset) & machine.mask;
        let mut state = *machine;
        let cfa = frame.as_ref().and_then(|Frame { cfa: (register, offset), .. }| {
            Some(plus(state.register(*register)?, *offset))
        });
        let is_signed = frame.as_ref().is_some_and(|frame| frame.is_signed);
        let registers = frame.iter().flat_map(|frame| &frame.saved).map(|(register, offset)| {
            (*register, cfa.and_then(|cfa| Machine { ..*machine }.word(plus(cfa, *offset))))
        });
        let properties = (self.arch.return_register(), false, is_signed);
        each(
            start,
            end,
            Results { cfa, registers: registers.collect(), properties, holds_at_calls_only: true },
        );
    }
}

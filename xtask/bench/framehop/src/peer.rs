//! framehop with the unwind tables of one image.

use anyhow::Result;
use framehop::aarch64::{CacheAarch64, UnwindRegsAarch64, UnwinderAarch64};
use framehop::x86_64::{CacheX86_64, UnwindRegsX86_64, UnwinderX86_64};
use framehop::{Error, ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder as _};
use object::{File, Object as _, ObjectSection as _};
use symdex_build::Image;

use crate::frame::{Numbers, Registers, word};

/// framehop, the tables of an image, and the registers of its architecture.
pub struct Peer<'d> {
    unwinder: Unwinder<'d>,
    /// Where the image is linked at; it is loaded there, too.
    pub base: u64,
    pub numbers: Numbers,
    /// Whether the frame is that of a caller, rather than the innermost one. On x86_64, framehop then takes the rule
    /// that compact unwind information has for the whole function, without a look at the instructions. On ARM64, a
    /// caller cannot have its return address in `lr`, so the frame is the innermost one.
    is_caller: bool,
}

enum Unwinder<'d> {
    X86_64(UnwinderX86_64<&'d [u8]>, Box<CacheX86_64>),
    Arm64(UnwinderAarch64<&'d [u8]>, Box<CacheAarch64>),
}

impl<'d> Peer<'d> {
    /// Returns `None` for other architectures.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn new(image: &Image<'d>, bytes: &'d [u8]) -> Result<Option<Self>> {
        let file = File::parse(bytes)?;
        let is_mach_o = matches!(file, File::MachO64(_));
        let arch = image.info().arch.name.as_str();
        let is_x86_64 = arch.starts_with("x86_64");
        if !is_x86_64 && !arch.starts_with("arm64") || arch == "arm64_32" {
            return Ok(None);
        }
        let base = image.info().base;
        // On x86_64, framehop reads the size of some frames from an instruction. On ARM64, no rule needs those.
        let module = module(&file, base, is_mach_o && is_x86_64);
        let (unwinder, numbers) = if is_x86_64 {
            let mut unwinder = UnwinderX86_64::new();
            unwinder.add_module(module);
            let numbers = Numbers { stack_pointer: 7, frame_pointer: 6, return_register: 16 };
            (Unwinder::X86_64(unwinder, Box::default()), numbers)
        } else {
            let mut unwinder = UnwinderAarch64::new();
            unwinder.add_module(module);
            let numbers = Numbers { stack_pointer: 31, frame_pointer: 29, return_register: 30 };
            (Unwinder::Arm64(unwinder, Box::default()), numbers)
        };
        Ok(Some(Self { unwinder, base, numbers, is_caller: is_mach_o && is_x86_64 }))
    }

    /// The caller of the frame with these registers at `address`. `None` if framehop takes it for the outermost frame.
    ///
    /// # Errors
    /// framehop fails.
    pub fn caller(&mut self, address: u64, frame: Registers) -> Result<Option<Registers>, Error> {
        let address = if self.is_caller {
            FrameAddress::from_return_address(address + 1).ok_or(Error::ReturnAddressIsNull)?
        } else {
            FrameAddress::from_instruction_pointer(address)
        };
        let Registers { stack_pointer, frame_pointer, return_address } = frame;
        let mut read = |address| Ok(word(address));
        match &mut self.unwinder {
            Unwinder::X86_64(unwinder, cache) => {
                let mut registers = UnwindRegsX86_64::new(return_address, stack_pointer, frame_pointer);
                let found = unwinder.unwind_frame(address, &mut registers, cache, &mut read)?;
                Ok(found.map(|return_address| Registers {
                    stack_pointer: registers.sp(),
                    frame_pointer: registers.bp(),
                    return_address,
                }))
            }
            Unwinder::Arm64(unwinder, cache) => {
                let mut registers = UnwindRegsAarch64::new(return_address, stack_pointer, frame_pointer);
                let found = unwinder.unwind_frame(address, &mut registers, cache, &mut read)?;
                Ok(found.map(|return_address| Registers {
                    stack_pointer: registers.sp(),
                    frame_pointer: registers.fp(),
                    return_address,
                }))
            }
        }
    }
}

/// The sections that framehop reads.
fn module<'d>(file: &File<'d>, base: u64, with_text: bool) -> Module<&'d [u8]> {
    let named = |names: [&str; 2]| names.into_iter().find_map(|name| file.section_by_name(name));
    let range = |names| named(names).map(|section| section.address()..section.address() + section.size());
    let data = |names| named(names).and_then(|section| section.data().ok());
    let sections = ExplicitModuleSectionInfo {
        base_svma: base,
        text_svma: range(["__text", ".text"]),
        text: data(["__text", ".text"]).filter(|_| with_text),
        stubs_svma: range(["__stubs", "__stubs"]),
        stub_helper_svma: range(["__stub_helper", "__stub_helper"]),
        got_svma: range(["__got", ".got"]),
        unwind_info: data(["__unwind_info", "__unwind_info"]),
        eh_frame_svma: range(["__eh_frame", ".eh_frame"]),
        eh_frame: data(["__eh_frame", ".eh_frame"]),
        eh_frame_hdr_svma: range([".eh_frame_hdr", ".eh_frame_hdr"]),
        eh_frame_hdr: data([".eh_frame_hdr", ".eh_frame_hdr"]),
        ..ExplicitModuleSectionInfo::default()
    };
    Module::new("image".to_owned(), base..u64::MAX, base, sections)
}

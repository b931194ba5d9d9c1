//! The instructions of the stubs of ELF images.

use object::elf;

/// The instructions of a stub, by instruction set.
#[derive(Clone, Copy, Debug)]
pub(super) enum Code {
    X86_64,
    X86,
    Arm64,
    Arm,
}

/// A stub: where it reads the address that it jumps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jump {
    /// The address of the pointer, which the dynamic linker fills.
    pub(super) slot: u64,
    /// How many bytes the stub has.
    pub(super) size: usize,
}

impl Code {
    pub(super) fn of(machine: elf::Machine) -> Option<Self> {
        match machine {
            elf::EM_X86_64 => Some(Self::X86_64),
            elf::EM_386 => Some(Self::X86),
            elf::EM_AARCH64 => Some(Self::Arm64),
            elf::EM_ARM => Some(Self::Arm),
            _ => None,
        }
    }

    /// The types of relocations that fill the slots of stubs with the address of a symbol.
    pub(super) fn by_symbol(self) -> [elf::RelocationType; 2] {
        match self {
            Self::X86_64 => [elf::R_X86_64_JUMP_SLOT, elf::R_X86_64_GLOB_DAT],
            Self::X86 => [elf::R_386_JMP_SLOT, elf::R_386_GLOB_DAT],
            Self::Arm64 => [elf::R_AARCH64_JUMP_SLOT, elf::R_AARCH64_GLOB_DAT],
            Self::Arm => [elf::R_ARM_JUMP_SLOT, elf::R_ARM_GLOB_DAT],
        }
    }

    /// The type of relocations that fill a slot with the address that a function of the image, the resolver, returns.
    pub(super) fn by_resolver(self) -> elf::RelocationType {
        match self {
            Self::X86_64 => elf::R_X86_64_IRELATIVE,
            Self::X86 => elf::R_386_IRELATIVE,
            Self::Arm64 => elf::R_AARCH64_IRELATIVE,
            Self::Arm => elf::R_ARM_IRELATIVE,
        }
    }

    /// Stubs begin at multiples of this many bytes.
    pub(super) fn alignment(self) -> usize {
        match self {
            Self::X86_64 | Self::X86 => 8,
            Self::Arm64 | Self::Arm => 4,
        }
    }

    /// The stub that begins `code`, which is at `address`. `got` is the address of `_GLOBAL_OFFSET_TABLE_`, which
    /// position-independent stubs of 32-bit x86 have in a register.
    pub(super) fn jump(self, code: &[u8], address: u64, got: Option<u64>) -> Option<Jump> {
        match self {
            Self::X86_64 => x86(code, &[0xf3, 0x0f, 0x1e, 0xfa], |opcode, operand, end| match opcode {
                [0xff, 0x25] => address.checked_add(end)?.checked_add_signed(i64::from(operand)),
                _ => None,
            }),
            Self::X86 => x86(code, &[0xf3, 0x0f, 0x1e, 0xfb], |opcode, operand, _| match opcode {
                [0xff, 0x25] => Some(u64::from(operand.cast_unsigned())),
                [0xff, 0xa3] => got?.checked_add_signed(i64::from(operand)),
                _ => None,
            }),
            Self::Arm64 => arm64(code, address),
            Self::Arm => arm(code, address),
        }
    }
}

/// A stub of x86: `jmp *operand`. `slot` returns the address of the slot from the jump's two bytes of opcode, its
/// operand, and the offset of the next instruction.
///
/// `endbr` may come first, or an instruction of mold that loads the number of the stub. Stubs with one of these, or
/// with a `push` after the jump for lazy binding, have 16 bytes, and others 8.
fn x86(code: &[u8], endbr: &[u8; 4], slot: impl FnOnce([u8; 2], i32, u64) -> Option<u64>) -> Option<Jump> {
    const BND: u8 = 0xf2;
    const PUSH: u8 = 0x68;
    let mut rest = code.strip_prefix(endbr).unwrap_or(code);
    if let [0x41, 0xbb, _, _, _, _, after @ ..] = rest {
        rest = after;
    }
    let is_long = rest.len() < code.len();
    let rest = rest.strip_prefix(&[BND]).unwrap_or(rest);
    let (jump, rest) = rest.split_first_chunk::<6>()?;
    let [a, b, operand @ ..] = *jump;
    let end = (code.len() - rest.len()) as u64;
    let slot = slot([a, b], i32::from_le_bytes(operand), end)?;
    Some(Jump { slot, size: if is_long || rest.first() == Some(&PUSH) { 16 } else { 8 } })
}

/// The instructions at the start of `code`.
fn words<const N: usize>(code: &[u8]) -> Option<[u32; N]> {
    let (words, _) = code.as_chunks::<4>();
    words.first_chunk().map(|words| words.map(u32::from_le_bytes))
}

/// A stub of arm64:
///
/// ```text
///     [bti c]
///     adrp x16, page
///     ldr  x17, [x16, #offset]
///     add  x16, x16, #offset
///     [autia1716]
///     br   x17
/// ```
///
/// With one of the optional instructions, or both, it has 24 bytes.
fn arm64(code: &[u8], address: u64) -> Option<Jump> {
    const BTI: [u8; 4] = 0xd503_245f_u32.to_le_bytes();
    const AUTIA: u32 = 0xd503_219f;
    const BR: u32 = 0xd61f_0220;
    let rest = code.strip_prefix(&BTI).unwrap_or(code);
    let [adrp, ldr, add, last] = words(rest)?;
    let is_signed = last == AUTIA;
    let br = if is_signed { words::<5>(rest)?[4] } else { last };
    if (adrp & 0x9f00_001f, ldr & 0xffc0_03ff, add & 0xffc0_03ff, br)
        != (0x9000_0010, 0xf940_0211, 0x9100_0210, BR)
    {
        return None;
    }
    let field = |word: u32| u64::from(word >> 10 & 0xfff);
    // 21 bits, of which the upper 19 and the lower 2 are apart, count pages.
    let pages = (adrp >> 5 & 0x7_ffff) << 2 | adrp >> 29 & 3;
    let distance = (i64::from((pages << 11).cast_signed()) >> 11) << 12;
    let here = address.checked_add((code.len() - rest.len()) as u64)?;
    let page = (here & !0xfff).checked_add_signed(distance)?;
    let offset = 8 * field(ldr);
    let is_plain = rest.len() == code.len() && !is_signed;
    (offset == field(add)).then_some(())?;
    Some(Jump { slot: page.checked_add(offset)?, size: if is_plain { 16 } else { 24 } })
}

/// A stub of ARM: `add ip, pc, #a; add ip, ip, #b; ldr pc, [ip, #c]!`, with one `add` more for greater distances, or
/// `ldr ip, [pc, #4]; add ip, ip, pc; ldr pc, [ip]` and the distance. A switch from Thumb code may come first.
fn arm(code: &[u8], address: u64) -> Option<Jump> {
    /// `bx pc; nop` and `bx pc; b .-2`.
    const FROM_THUMB: [[u8; 4]; 2] = [[0x78, 0x47, 0xc0, 0x46], [0x78, 0x47, 0xfd, 0xe7]];
    const ADD_IP_PC: u32 = 0xe28f_c000;
    const ADD_IP_IP: u32 = 0xe28c_c000;
    const LDR_PC: u32 = 0xe5bc_f000;
    /// What lld fills the fourth word with.
    const TRAP: [u8; 4] = 0xd4d4_d4d4_u32.to_le_bytes();
    let arm = FROM_THUMB.iter().find_map(|switch| code.strip_prefix(switch)).unwrap_or(code);
    let before = code.len() - arm.len();
    // Reading pc yields the address of the instruction and 8.
    let pc = address.checked_add(before as u64 + 8)?;
    // Addresses have 32 bits.
    let jump = |distance: u32, size| {
        let slot = u32::try_from(pc).ok()?.wrapping_add(distance);
        Some(Jump { slot: slot.into(), size: before + size })
    };
    // The constant is 8 bits, turned right by twice the number in the next 4.
    let constant = |word: u32| (word & 0xff).rotate_right(2 * (word >> 8 & 0xf));
    let sum = |first: u32, others: &[u32], last: u32| {
        let is_add = |word: u32, instruction| word & 0xffff_f000 == instruction;
        let is_it = is_add(first, ADD_IP_PC)
            && others.iter().all(|word| is_add(*word, ADD_IP_IP))
            && is_add(last, LDR_PC);
        let add = |sum: u32, word: &u32| sum.wrapping_add(constant(*word));
        is_it.then(|| others.iter().fold(constant(first), add).wrapping_add(last & 0xfff))
    };
    let [first, second, third] = words(arm)?;
    if let Some(distance) = sum(first, &[second], third) {
        return jump(distance, if arm[12..].starts_with(&TRAP) { 16 } else { 12 });
    }
    let fourth = words::<4>(arm)?[3];
    if [first, second, third] == [0xe59f_c004, 0xe08c_c00f, 0xe59c_f000] {
        // Here the second instruction reads pc.
        return jump(fourth.wrapping_add(4), 16);
    }
    jump(sum(first, &[second, third], fourth)?, 16)
}

//! A panic hook that writes the stack of a panic as a text that `symdex symbolicate` answers.
//!
//! A hook runs before the panic unwinds the stack, in a normal call. It may allocate, unlike a signal handler, so it
//! lists the images when the panic happens. It needs the standard library only, and unwind tables, which rustc writes
//! by default, also with `panic = "abort"`. The program may be stripped. It is for Linux and macOS with 64 bits.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::io::Write;
use std::panic::PanicHookInfo;

/// A linked binary in memory: where it begins and ends, its build id or UUID, and its name.
struct Image {
    start: usize,
    end: usize,
    id: Vec<u8>,
    name: String,
}

#[repr(C)]
struct UnwindContext(c_void);

unsafe extern "C" {
    /// Of the unwinder that every Rust program is linked with.
    fn _Unwind_Backtrace(each: extern "C" fn(*mut UnwindContext, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut UnwindContext) -> usize;
}

/// Writes each panic to standard error from now on, after the message of the hook that was there before.
pub fn install() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        before(info);
        // A failing standard error is no reason to panic in a hook.
        let _ = std::io::stderr().write_all(backtrace().as_bytes());
    }));
}

/// The stack of the caller: a title, then `image address load_address id` in each line, the innermost frame first.
/// Under this title, all addresses are return addresses.
pub fn backtrace() -> String {
    let (mut addresses, images) = (Vec::new(), images());
    // SAFETY: `push` has the type that the unwinder calls, and gets the list that it expects.
    unsafe { _Unwind_Backtrace(push, (&raw mut addresses).cast()) };
    let mut text = "Backtrace:\n".to_owned();
    for address in addresses {
        let Some(image) = images.iter().find(|image| (image.start..image.end).contains(&address)) else {
            text += &format!("? {address:#x} 0x0\n");
            continue;
        };
        let id: String = image.id.iter().map(|byte| format!("{byte:02x}")).collect();
        text += &format!("{} {address:#x} {:#x} {id}\n", image.name, image.start);
    }
    text
}

extern "C" fn push(context: *mut UnwindContext, addresses: *mut c_void) -> c_int {
    // SAFETY: the unwinder passes its own context, and the list of `backtrace`.
    let (address, addresses) = unsafe { (_Unwind_GetIP(context), &mut *addresses.cast::<Vec<usize>>()) };
    // The last frame of some threads has no address.
    if address != 0 {
        addresses.push(address);
    }
    // `_URC_NO_REASON` goes on, anything else stops.
    if addresses.len() < 256 { 0 } else { 5 }
}

/// The last part of a path, in which a space would end the name.
fn name(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default().replace(char::is_whitespace, "_");
    if name.is_empty() { "?".to_owned() } else { name }
}

#[cfg(target_os = "linux")]
fn images() -> Vec<Image> {
    /// `struct dl_phdr_info` and `Elf64_Phdr` of `link.h`.
    #[repr(C)]
    struct Info {
        address: usize,
        name: *const c_char,
        segments: *const Segment,
        len: u16,
    }
    #[repr(C)]
    struct Segment {
        kind: u32,
        flags: u32,
        offset: usize,
        vaddr: usize,
        paddr: usize,
        file_size: usize,
        size: usize,
        align: usize,
    }
    const LOAD: u32 = 1;
    const NOTE: u32 = 4;
    unsafe extern "C" {
        fn dl_iterate_phdr(each: extern "C" fn(*const Info, usize, *mut c_void) -> c_int, data: *mut c_void) -> c_int;
    }
    extern "C" fn add(info: *const Info, _: usize, images: *mut c_void) -> c_int {
        // SAFETY: the loader passes valid structures, and the list of `images`.
        let (info, images) = unsafe { (&*info, &mut *images.cast::<Vec<Image>>()) };
        let segments = unsafe { std::slice::from_raw_parts(info.segments, info.len.into()) };
        let mut path = unsafe { CStr::from_ptr(info.name) }.to_string_lossy().into_owned();
        if path.is_empty() {
            // The first one is the program.
            path = std::env::current_exe().unwrap_or_default().to_string_lossy().into_owned();
        }
        let mut image = Image { start: usize::MAX, end: 0, id: Vec::new(), name: name(&path) };
        for segment in segments {
            let start = info.address.wrapping_add(segment.vaddr);
            if segment.kind == LOAD {
                image.start = image.start.min(start);
                image.end = image.end.max(start + segment.size);
            } else if segment.kind == NOTE {
                // SAFETY: the segment is mapped while its image is.
                let notes = unsafe { std::slice::from_raw_parts(start as *const u8, segment.size) };
                image.id.extend_from_slice(build_id(notes).unwrap_or_default());
            }
        }
        images.push(image);
        0
    }
    let mut images: Vec<Image> = Vec::new();
    // SAFETY: `add` has the type that the loader calls, and gets the list that it expects.
    unsafe { dl_iterate_phdr(add, (&raw mut images).cast()) };
    images
}

/// The build id among notes: each has the sizes of its name and contents, its type, and both.
#[cfg(target_os = "linux")]
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let (head, rest) = notes.split_at_checked(12)?;
        let number = |at: usize| head[at..at + 4].try_into().map(u32::from_ne_bytes).unwrap_or_default() as usize;
        let (name_size, size, kind) = (number(0), number(4), number(8));
        let (name, rest) = rest.split_at_checked(name_size.next_multiple_of(4))?;
        if kind == 3 && name == b"GNU\0" {
            return rest.get(..size);
        }
        notes = rest.get(size.next_multiple_of(4)..)?;
    }
}

#[cfg(target_os = "macos")]
fn images() -> Vec<Image> {
    /// `struct mach_header_64` of `mach-o/loader.h`. Load commands follow it.
    #[repr(C)]
    struct Header {
        magic_and_cpu: [u32; 4],
        commands: u32,
        sizes_and_flags: [u32; 3],
    }
    const SEGMENT: u32 = 0x19;
    const UUID: u32 = 0x1b;
    unsafe extern "C" {
        fn _dyld_image_count() -> u32;
        fn _dyld_get_image_header(image: u32) -> *const Header;
        fn _dyld_get_image_name(image: u32) -> *const c_char;
    }
    let mut images = Vec::new();
    // SAFETY: dyld returns null for an image that is gone, and the commands of other images are as the header says.
    unsafe {
        for number in 0.._dyld_image_count() {
            let (header, path) = (_dyld_get_image_header(number), _dyld_get_image_name(number));
            if header.is_null() || path.is_null() {
                continue;
            }
            let path = CStr::from_ptr(path).to_string_lossy();
            let (start, mut id, mut size) = (header as usize, Vec::new(), 0);
            let mut command = header.add(1).cast::<u8>();
            for _ in 0..(*header).commands {
                let [kind, command_size] = command.cast::<[u32; 2]>().read_unaligned();
                if kind == UUID {
                    id = std::slice::from_raw_parts(command.add(8), 16).to_vec();
                } else if kind == SEGMENT && std::slice::from_raw_parts(command.add(8), 7) == b"__TEXT\0" {
                    size = command.add(32).cast::<u64>().read_unaligned() as usize;
                }
                command = command.add(command_size as usize);
            }
            images.push(Image { start, end: start + size, id, name: name(&path) });
        }
    }
    images
}

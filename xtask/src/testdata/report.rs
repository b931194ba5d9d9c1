//! Writes the demo's crash as Apple's `.crash` text, report version 104, not symbolicated.

use std::fmt::Write;

use anyhow::{Context, Result};
use xxhash_rust::xxh3::xxh3_128;

const BUNDLE: &str =
    "/private/var/containers/Bundle/Application/5A3C1E6F-6C1B-4B57-9C40-7E1D2F0B8A11/DemoApp.app";

/// An image of the demo in the process.
pub(crate) struct Loaded {
    pub(crate) name: String,
    /// The path in the app's folder.
    pub(crate) path: String,
    pub(crate) address: u64,
    /// The size of `__TEXT`.
    pub(crate) size: u64,
    pub(crate) uuid: [u8; 16],
}

/// An image of the operating system. The numbers are made up.
struct System {
    path: &'static str,
    address: u64,
    size: u64,
}

const fn library(path: &'static str, address: u64, size: u64) -> System {
    System { path, address, size }
}

static SYSTEM: &[System] = &[
    library("/System/Library/Frameworks/CoreFoundation.framework/CoreFoundation", 0x1_80c4_2000, 0x43_d000),
    library("/usr/lib/system/libdispatch.dylib", 0x1_80a1_9000, 0x4_8000),
    library("/usr/lib/system/libdyld.dylib", 0x1_0505_8000, 0x1_b000),
    library("/usr/lib/system/libsystem_c.dylib", 0x1_8b6d_0000, 0x8_0000),
    library("/usr/lib/system/libsystem_kernel.dylib", 0x1_b8a1_c000, 0x3_4000),
    library("/usr/lib/system/libsystem_pthread.dylib", 0x1_dbd3_5000, 0x1_0000),
    library(
        "/System/Library/PrivateFrameworks/GraphicsServices.framework/GraphicsServices",
        0x1_9d2f_f000,
        0x9000,
    ),
    library("/System/Library/PrivateFrameworks/UIKitCore.framework/UIKitCore", 0x1_8341_a000, 0x17b_1000),
];

impl System {
    fn name(&self) -> &'static str {
        self.path.rsplit('/').next().unwrap_or(self.path)
    }
}

/// The columns of a frame's line after its number.
pub(crate) struct Line {
    image: String,
    address: u64,
    text: String,
}

impl Line {
    /// A frame without a symbol: `load address + offset`.
    pub(crate) fn raw(image: &str, load_address: u64, offset: u64) -> Self {
        let text = format!("{load_address:#x} + {offset}");
        Self { image: image.to_owned(), address: load_address + offset, text }
    }
}

/// A frame of a system image, with or without a symbol.
///
/// # Errors
/// [`SYSTEM`] does not contain the image.
pub(crate) fn system_line(image: &str, offset: u64, known_as: Option<&str>) -> Result<Line> {
    let found = SYSTEM.iter().find(|system| system.name() == image);
    let found = found.with_context(|| format!("no system image {image}"))?;
    let raw = Line::raw(image, found.address, offset);
    Ok(Line { text: known_as.map_or(raw.text, str::to_owned), ..raw })
}

/// Writes the report. The registers in `null_registers` are 0, because the faulting instruction used them.
///
/// # Errors
/// The first thread has no frames.
pub(crate) fn write(
    threads: &[(Option<&str>, Vec<Line>)],
    loaded: &[&Loaded],
    null_registers: &[usize],
) -> Result<String> {
    let mut out = String::from(HEAD);
    for (number, (name, lines)) in threads.iter().enumerate() {
        out.push('\n');
        if let Some(name) = name {
            writeln!(out, "Thread {number} name:  {name}")?;
        }
        writeln!(out, "Thread {number}{}:", if number == 0 { " Crashed" } else { "" })?;
        for (frame, line) in lines.iter().enumerate() {
            writeln!(out, "{frame:<4}{:<30}\t{:#018x} {}", line.image, line.address, line.text)?;
        }
    }
    let (_, crashed) = threads.first().context("a crash without a thread")?;
    registers(&mut out, crashed, null_registers)?;
    out.push_str("\nBinary Images:\n");
    binary_images(&mut out, loaded)?;
    out.push_str("\nEOF\n");
    Ok(out)
}

const HEAD: &str = "\
Incident Identifier: 0D7B1E5C-3A52-4C0E-9E0F-51C6A7A0D3F2
CrashReporter Key:   4f1c8be2a0d94b6e9c3b7d5f6a1e2d3c4b5a6978
Hardware Model:      iPhone13,2
Process:             DemoApp [4242]
Path:                /private/var/containers/Bundle/Application/5A3C1E6F-6C1B-4B57-9C40-7E1D2F0B8A11/DemoApp.app/DemoApp
Identifier:          com.example.DemoApp
Version:             42 (1.2.3)
Code Type:           ARM-64 (Native)
Role:                Foreground
Parent Process:      launchd [1]
Coalition:           com.example.DemoApp [731]


Date/Time:           2024-03-01 09:41:00.1234 +0800
Launch Time:         2024-03-01 09:40:52.9876 +0800
OS Version:          iPhone OS 15.4.1 (19E258)
Release Type:        User
Baseband Version:    2.53.01
Report Version:      104

Exception Type:  EXC_BAD_ACCESS (SIGSEGV)
Exception Subtype: KERN_INVALID_ADDRESS at 0x0000000000000000
VM Region Info: 0 is not in any region.
Exception Codes: 0x0000000000000001, 0x0000000000000000
Termination Reason: SIGNAL 11 Segmentation fault: 11
Terminating Process: exc handler [4242]
Triggered by Thread:  0
";

/// Writes the registers. `pc` and `lr` come from the first two frames. The others are made up, except those in
/// `null_registers`.
fn registers(out: &mut String, crashed: &[Line], null_registers: &[usize]) -> Result<()> {
    let [first, second, ..] = crashed else { anyhow::bail!("a crashed thread with fewer than two frames") };
    let stack = 0x1_6b5c_8a00_u64;
    out.push_str("\nThread 0 crashed with ARM Thread State (64-bit):\n");
    for number in 0..29 {
        let small = xxh3_128(&[u8::try_from(number)?]) & 0xffff;
        let value = if null_registers.contains(&number) { 0 } else { small };
        write!(out, "  {:>4}: {value:#018x}", format!("x{number}"))?;
        out.push_str(if number % 4 == 3 { "\n" } else { "" });
    }
    writeln!(out, "    fp: {:#018x}    lr: {:#018x}", stack + 0x20, second.address)?;
    writeln!(out, "    sp: {stack:#018x}    pc: {:#018x}  cpsr: 0x60001000", first.address)?;
    writeln!(out, "   esr: 0x92000046 (Data Abort) byte write Translation fault")?;
    Ok(())
}

/// Writes the list of images, by address. Images of the demo have a `+`.
fn binary_images(out: &mut String, loaded: &[&Loaded]) -> Result<()> {
    let mut images: Vec<(u64, u64, String, [u8; 16], String)> = Vec::new();
    for image in loaded {
        let path = format!("{BUNDLE}/{}", image.path);
        images.push((image.address, image.size, format!("+{}", image.name), image.uuid, path));
    }
    for image in SYSTEM {
        let uuid = xxh3_128(image.path.as_bytes()).to_be_bytes();
        images.push((image.address, image.size, image.name().to_owned(), uuid, image.path.to_owned()));
    }
    images.sort();
    for (address, size, name, uuid, path) in images {
        let id: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(out, "{address:#11x} - {:#11x} {name} arm64  <{id}> {path}", address + size - 1)?;
    }
    Ok(())
}

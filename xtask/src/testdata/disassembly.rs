//! The instructions of a linked image. They tell the return addresses of calls.

use std::path::Path;

use anyhow::{Context, Result};

use crate::tools::Tools;

/// The target of a call instruction.
pub(crate) enum Callee {
    /// A symbol, in this image or through a stub.
    Symbol(&'static str),
    /// The address in a register: a function pointer, a block, a virtual function.
    Register,
}

/// The code of an image, in address order.
pub(crate) struct Disassembly {
    instructions: Vec<Instruction>,
}

struct Instruction {
    function: String,
    address: u64,
    mnemonic: String,
    operands: String,
}

impl Disassembly {
    /// Disassembles a thin arm64 image.
    ///
    /// # Errors
    /// llvm-objdump fails, or a line of its output cannot be parsed.
    pub(crate) fn of(tools: &Tools, image: &Path) -> Result<Self> {
        let folder = image.parent().context("an image without a parent folder")?;
        let args = ["--macho", "--disassemble", "--no-show-raw-insn"].map(Path::new);
        Self::parse(&tools.run("llvm-objdump", folder, args.into_iter().chain([image]))?)
    }

    fn parse(text: &str) -> Result<Self> {
        let mut function = "";
        let mut instructions = Vec::new();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let head = fields.next().unwrap_or_default();
            let Some(mnemonic) = fields.next() else {
                // `_name:` or `-[Class selector:]:` precedes the instructions of each function.
                function = head.strip_suffix(':').unwrap_or(function);
                continue;
            };
            let digits = head.trim().trim_end_matches(':');
            instructions.push(Instruction {
                function: function.to_owned(),
                address: u64::from_str_radix(digits, 16)
                    .with_context(|| format!("not an address: {line}"))?,
                mnemonic: mnemonic.to_owned(),
                operands: fields.next().unwrap_or_default().to_owned(),
            });
        }
        Ok(Self { instructions })
    }

    /// The return address of the `nth` call of `callee` in `function`.
    ///
    /// # Errors
    /// There is no such call. A tail call (`b`) does not count, because it leaves no frame.
    pub(crate) fn return_address(&self, function: &str, callee: &Callee, nth: usize) -> Result<u64> {
        let is_call = |instruction: &&Instruction| match callee {
            Callee::Register => instruction.mnemonic == "blr",
            Callee::Symbol(name) => instruction.mnemonic == "bl" && instruction.target() == *name,
        };
        let call = self.of_function(function).filter(is_call).nth(nth);
        let call = call.with_context(|| match callee {
            Callee::Register => format!("{function} has no call {nth} through a register"),
            Callee::Symbol(name) => format!("{function} has no call {nth} of {name}"),
        })?;
        Ok(call.address + 4)
    }

    /// The address of the `nth` instruction with this `mnemonic` in `function`, and the registers that its memory
    /// operand uses.
    ///
    /// # Errors
    /// There is no such instruction.
    pub(crate) fn access(&self, function: &str, mnemonic: &str, nth: usize) -> Result<(u64, Vec<usize>)> {
        let found =
            self.of_function(function).filter(|instruction| instruction.mnemonic == mnemonic).nth(nth);
        let found = found.with_context(|| format!("{function} has no {mnemonic} {nth}"))?;
        let place = found.operands.split(['[', ']']).nth(1).unwrap_or_default();
        let registers = place.split(", ").filter_map(|name| name.strip_prefix('x')?.parse().ok()).collect();
        Ok((found.address, registers))
    }

    /// The symbol whose code contains `address`, without Mach-O's `_`.
    ///
    /// # Errors
    /// The address is outside the code.
    pub(crate) fn function_at(&self, address: u64) -> Result<&str> {
        let found = self.instructions.iter().find(|code| (code.address..code.address + 4).contains(&address));
        let found = found.with_context(|| format!("no code at {address:#x}"))?;
        Ok(found.function.strip_prefix('_').unwrap_or(&found.function))
    }

    fn of_function<'a>(&'a self, function: &'a str) -> impl Iterator<Item = &'a Instruction> {
        self.instructions.iter().filter(move |instruction| instruction.function == function)
    }
}

impl Instruction {
    /// The symbol that a `bl` calls: `bl _name`, or `bl 0x4370 ; symbol stub for: _name`.
    fn target(&self) -> &str {
        self.operands.split_once("symbol stub for: ").map_or(self.operands.as_str(), |(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "img:\n(__TEXT,__text) section\n\
        -[Foo bar:]:\n    4000:\tbl\t_baz\n    4004:\tbl\t0x4370 ; symbol stub for: _far\n    4008:\tb\t_far\n\
        _baz:\n    400c:\tblr\tx8\n    4010:\tstr\td0, [x9, x11, lsl #3]\n";

    #[test]
    fn calls_return_to_the_next_instruction() {
        let code = Disassembly::parse(TEXT).unwrap();
        assert_eq!(code.return_address("-[Foo bar:]", &Callee::Symbol("_baz"), 0).unwrap(), 0x4004);
        assert_eq!(code.return_address("-[Foo bar:]", &Callee::Symbol("_far"), 0).unwrap(), 0x4008);
        assert_eq!(code.return_address("_baz", &Callee::Register, 0).unwrap(), 0x4010);
        let tail_call = code.return_address("-[Foo bar:]", &Callee::Symbol("_far"), 1);
        assert_eq!(tail_call.unwrap_err().to_string(), "-[Foo bar:] has no call 1 of _far");
    }

    #[test]
    fn accesses_have_the_registers_of_their_address() {
        let code = Disassembly::parse(TEXT).unwrap();
        assert_eq!(code.access("_baz", "str", 0).unwrap(), (0x4010, vec![9, 11]));
        assert_eq!(code.function_at(0x4013).unwrap(), "baz");
        assert!(code.function_at(0x4014).is_err());
    }
}

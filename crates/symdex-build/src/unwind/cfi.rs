//! Call frame information: `.eh_frame` and `.debug_frame` (DWARF 5, 6.4).

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, DebugFrame, EhFrame, FrameDescriptionEntry, LittleEndian, Operation,
    Register, RegisterRule, UnwindContext, UnwindExpression, UnwindOffset, UnwindSection, UnwindTableRow,
    Vendor,
};
use symdex::write::{UnwindRules, is_unwind_expression};
use symdex::{Arch, UnwindRule, UnwindValue};

use super::layer::Layer;
use super::{Allowance, Section, UnwindTables};
use crate::error::Error;
use crate::image::Reader;
use crate::keyed::KeyedMap;
use crate::report::Problems;

/// Calls `each` for each entry that describes code, up to the first damage. Returns that damage.
///
/// # Errors
///
/// Those of `each`.
pub(crate) fn each_entry<'d, S: UnwindSection<Reader<'d>>>(
    section: &S,
    bases: &BaseAddresses,
    mut each: impl FnMut(gimli::Result<FrameDescriptionEntry<Reader<'d>>>) -> Result<(), Error>,
) -> Result<Option<gimli::Error>, Error> {
    let mut entries = section.entries(bases);
    let mut commons = KeyedMap::default();
    loop {
        let entry = match entries.next() {
            Ok(Some(CieOrFde::Fde(entry))) => entry,
            Ok(Some(CieOrFde::Cie(_))) => continue,
            Ok(None) => return Ok(None),
            Err(error) => return Ok(Some(error)),
        };
        // Many entries may share one CIE, and reading a damaged one takes time as well.
        let common = |section: &S, bases: &BaseAddresses, offset: S::Offset| {
            let read = || section.cie_from_offset(bases, offset);
            commons.entry(UnwindOffset::into(offset)).or_insert_with(read).clone()
        };
        each(entry.parse(common))?;
    }
}

/// `.eh_frame` in `section`. `text` is the address that some of its pointers are relative to.
pub(crate) fn open_eh_frame<'d>(
    section: Section<'d>,
    text: u64,
    is_64_bit: bool,
) -> (EhFrame<Reader<'d>>, BaseAddresses) {
    let mut frames = EhFrame::new(section.bytes, LittleEndian);
    frames.set_address_size(if is_64_bit { 8 } else { 4 });
    (frames, BaseAddresses::default().set_eh_frame(section.address).set_text(text))
}

/// Adds the rows of `.eh_frame`.
pub(super) fn eh_frame<'d>(
    tables: &UnwindTables<'d>,
    layer: &mut Layer<'_, 'd>,
    problems: &mut Problems,
) -> Result<(), Error> {
    let arch = &layer.image.info.arch;
    let (mut frames, bases) = open_eh_frame(tables.eh_frame, tables.text, arch.is_64_bit());
    frames.set_vendor(vendor(arch));
    rows(&frames, &bases, tables.is_swapped, tables.eh_frame.bytes.len(), layer, problems)
}

/// Adds the rows of `.debug_frame`.
pub(super) fn debug_frame<'d>(
    tables: &UnwindTables<'d>,
    layer: &mut Layer<'_, 'd>,
    problems: &mut Problems,
) -> Result<(), Error> {
    let arch = &layer.image.info.arch;
    let mut frames = DebugFrame::new(tables.debug_frame.bytes, LittleEndian);
    frames.set_address_size(if arch.is_64_bit() { 8 } else { 4 });
    frames.set_vendor(vendor(arch));
    let bases = BaseAddresses::default().set_text(tables.text);
    rows(&frames, &bases, false, tables.debug_frame.bytes.len(), layer, problems)
}

fn vendor(arch: &Arch) -> Vendor {
    if arch.name.starts_with("arm64") { Vendor::AArch64 } else { Vendor::Default }
}

/// Adds the rows of a section of `size` bytes.
fn rows<'d, S: UnwindSection<Reader<'d>>>(
    section: &S,
    bases: &BaseAddresses,
    is_swapped: bool,
    size: usize,
    layer: &mut Layer<'_, 'd>,
    problems: &mut Problems,
) -> Result<(), Error> {
    let mut context = UnwindContext::new();
    let mut converter =
        Converter { section, is_swapped, unknown: 0, rules: UnwindRules::new(UnwindValue::Unknown, 0) };
    let mut allowance = Allowance::new(size, &layer.table);
    let mut damaged = 0;
    let end = each_entry(section, bases, |entry| {
        let Ok(entry) = entry else {
            damaged += 1;
            return Ok(());
        };
        // The instructions of a CIE are executed for each entry that refers to it.
        let cost = entry.entry_len().saturating_add(entry.cie().entry_len());
        if !allowance.take(cost, &layer.table) {
            return Ok(());
        }
        if !layer.begin(entry.initial_address(), entry.end_address())? {
            return Ok(());
        }
        converter.rules.is_signal_frame = entry.is_signal_trampoline();
        converter.rules.return_register = entry.cie().return_address_register().0;
        let mut table = match entry.rows(section, bases, &mut context) {
            Ok(table) => table,
            Err(_) => {
                damaged += 1;
                return Ok(());
            }
        };
        loop {
            match table.next_row() {
                Ok(Some(row)) => {
                    converter.convert(row, entry.cie().encoding());
                    layer.add(row.start_address(), row.end_address(), &converter.rules)?;
                }
                Ok(None) => return Ok(()),
                Err(_) => {
                    damaged += 1;
                    return Ok(());
                }
            }
        }
    })?;
    problems.add("unwind entries that cannot be read", damaged + u64::from(end.is_some()));
    problems.add("unwind rows that the index cannot express", converter.unknown);
    allowance.report(problems);
    Ok(())
}

/// Converts rows of gimli.
struct Converter<'s, 'd, S> {
    section: &'s S,
    is_swapped: bool,
    /// How many rows have an expression that an index cannot have.
    unknown: u64,
    /// The rules of the last row. Its vector is used again.
    rules: UnwindRules<'d>,
}

impl<'d, S: UnwindSection<Reader<'d>>> Converter<'_, 'd, S> {
    fn convert(&mut self, row: &UnwindTableRow<usize>, encoding: gimli::Encoding) {
        let unknown = self.unknown;
        self.rules.cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                UnwindValue::Register { register: self.register(*register), offset: *offset }
            }
            CfaRule::Expression(expression) => self.expression(expression, encoding),
        };
        self.rules.is_return_address_signed = false;
        self.rules.registers.clear();
        for (register, rule) in row.registers() {
            let rule = match rule {
                RegisterRule::Undefined => UnwindRule::Undefined,
                RegisterRule::SameValue => UnwindRule::SameValue,
                RegisterRule::Offset(offset) => UnwindRule::Stored(UnwindValue::Cfa(*offset)),
                RegisterRule::ValOffset(offset) => UnwindRule::Value(UnwindValue::Cfa(*offset)),
                RegisterRule::Register(other) => {
                    UnwindRule::Value(UnwindValue::Register { register: self.register(*other), offset: 0 })
                }
                RegisterRule::Expression(expression) => {
                    UnwindRule::Stored(self.expression(expression, encoding))
                }
                RegisterRule::ValExpression(expression) => {
                    UnwindRule::Value(self.expression(expression, encoding))
                }
                // The state of pointer authentication.
                RegisterRule::Constant(state) => {
                    self.rules.is_return_address_signed = *state != 0;
                    continue;
                }
                _ => UnwindRule::Value(UnwindValue::Unknown),
            };
            self.rules.registers.push((self.register(*register), rule));
        }
        self.rules.registers.sort_unstable_by_key(|(register, _)| *register);
        self.unknown = unknown + u64::from(self.unknown != unknown);
    }

    fn register(&self, register: Register) -> u16 {
        match register.0 {
            4 if self.is_swapped => 5,
            5 if self.is_swapped => 4,
            other => other,
        }
    }

    /// The value of an expression. Common ones have a shorter form.
    fn expression(
        &mut self,
        expression: &UnwindExpression<usize>,
        encoding: gimli::Encoding,
    ) -> UnwindValue<'d> {
        let Ok(expression) = expression.get(self.section) else {
            self.unknown += 1;
            return UnwindValue::Unknown;
        };
        let bytes = expression.0.slice();
        let mut operations = expression.operations(encoding);
        let mut next = || operations.next().ok().flatten();
        let simple = match next() {
            Some(Operation::RegisterOffset { register, offset, .. }) => {
                let register = self.register(register);
                match (next(), next(), next()) {
                    (None, ..) => Some(UnwindValue::Register { register, offset }),
                    (Some(Operation::Deref { space: false, size, .. }), None, _)
                        if size == encoding.address_size =>
                    {
                        Some(UnwindValue::Loaded { register, offset, add: 0 })
                    }
                    (
                        Some(Operation::Deref { space: false, size, .. }),
                        Some(Operation::PlusConstant { value }),
                        None,
                    ) if size == encoding.address_size => {
                        Some(UnwindValue::Loaded { register, offset, add: value.cast_signed() })
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        simple.unwrap_or_else(|| {
            let is_known = is_unwind_expression(bytes) && !self.is_swapped;
            self.unknown += u64::from(!is_known);
            if is_known { UnwindValue::Expression(bytes) } else { UnwindValue::Unknown }
        })
    }
}

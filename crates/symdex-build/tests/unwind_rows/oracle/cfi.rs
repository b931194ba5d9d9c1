//! Rows of `.eh_frame` and `.debug_frame`, as gimli reads and evaluates them.

use gimli::{
    AArch64, BaseAddresses, CfaRule, CieOrFde, EvaluationResult, FrameDescriptionEntry, Location, Register,
    RegisterRule, UnwindContext, UnwindExpression, UnwindSection, UnwindTableRow, Value,
};
use symdex::FrameState as _;
use symdex_build::Image;

use super::{Machine, Reader, Results, Table, in_code};

/// A section and its entries.
pub(super) struct CallFrames<'d, S> {
    section: S,
    bases: BaseAddresses,
    base: u64,
    ends: Vec<(u64, u64)>,
    entries: Vec<FrameDescriptionEntry<Reader<'d>>>,
}

impl<'d, S: UnwindSection<Reader<'d>>> CallFrames<'d, S> {
    pub(super) fn new(image: &Image<'_>, section: S, bases: BaseAddresses) -> Self {
        let mut all = Vec::new();
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(entry) = entry else { continue };
            let Ok(entry) = entry.parse(S::cie_from_offset) else { continue };
            all.push((entry.initial_address(), entry.end_address(), entry));
        }
        let (ends, entries) = in_code(image, all);
        Self { section, bases, base: image.info().base, ends, entries }
    }

    /// The results of a row.
    fn results(
        &self,
        entry: &FrameDescriptionEntry<Reader<'d>>,
        row: &UnwindTableRow<usize>,
        machine: &Machine,
    ) -> Results {
        let mut state = *machine;
        let mut known = |register: Register| state.register(register.0).unwrap_or_default();
        let word = |address: u64| Machine { ..*machine }.word(address);
        let plus = |value: u64, offset: i64| value.wrapping_add_signed(offset) & machine.mask;
        let evaluate = |expression: &UnwindExpression<usize>, cfa: Option<u64>| {
            self.evaluate(entry, expression, cfa, *machine)
        };
        let cfa = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => Some(plus(known(*register), *offset)),
            CfaRule::Expression(expression) => evaluate(expression, None),
        };
        let (mut registers, mut is_signed) = (Vec::new(), false);
        for (register, rule) in row.registers() {
            let value = match rule {
                RegisterRule::Undefined => None,
                RegisterRule::SameValue => Some(known(*register)),
                RegisterRule::Offset(offset) => cfa.and_then(|cfa| word(plus(cfa, *offset))),
                RegisterRule::ValOffset(offset) => cfa.map(|cfa| plus(cfa, *offset)),
                RegisterRule::Register(other) => Some(known(*other)),
                RegisterRule::Expression(expression) => evaluate(expression, cfa).and_then(word),
                RegisterRule::ValExpression(expression) => evaluate(expression, cfa),
                RegisterRule::Constant(value) if *register == AArch64::RA_SIGN_STATE => {
                    is_signed = *value != 0;
                    continue;
                }
                _ => None,
            };
            registers.push((register.0, value));
        }
        let properties = (entry.cie().return_address_register().0, entry.is_signal_trampoline(), is_signed);
        Results { cfa, registers, properties, holds_at_calls_only: false }
    }

    /// The result of an expression. `None` if it needs more than registers and memory.
    fn evaluate(
        &self,
        entry: &FrameDescriptionEntry<Reader<'d>>,
        expression: &UnwindExpression<usize>,
        cfa: Option<u64>,
        mut machine: Machine,
    ) -> Option<u64> {
        let mut evaluation = expression.get(&self.section).ok()?.evaluation(entry.cie().encoding());
        cfa.into_iter().for_each(|cfa| evaluation.set_initial_value(cfa));
        let mut state = evaluation.evaluate().ok()?;
        loop {
            state = match state {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresMemory { address, .. } => {
                    evaluation.resume_with_memory(Value::Generic(machine.word(address)?)).ok()?
                }
                EvaluationResult::RequiresRegister { register, .. } => {
                    evaluation.resume_with_register(Value::Generic(machine.register(register.0)?)).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().first()?.location {
            Location::Address { address } => Some(address & machine.mask),
            _ => None,
        }
    }
}

impl<'d, S: UnwindSection<Reader<'d>>> Table for CallFrames<'d, S> {
    fn entries(&self) -> &[(u64, u64)] {
        &self.ends
    }

    fn rows(&self, entry: usize, machine: &Machine, each: &mut dyn FnMut(u64, u64, Results)) {
        let ((start, end), entry) = (self.ends[entry], &self.entries[entry]);
        let mut context = UnwindContext::new();
        let Ok(mut table) = entry.rows(&self.section, &self.bases, &mut context) else { return };
        while let Ok(Some(row)) = table.next_row() {
            let [row_start, row_end] =
                [row.start_address(), row.end_address()].map(|address| address.saturating_sub(self.base));
            let (row_start, row_end) = (row_start.max(start), row_end.min(end));
            if row_start < row_end {
                each(row_start, row_end, self.results(entry, row, machine));
            }
        }
    }
}

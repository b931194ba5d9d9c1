package symdex

import "iter"

// An UnwindRow has the rules by which the registers of a frame lead to those of its caller. They hold for a range of
// code. Registers have the numbers that DWARF gives them on the image's architecture.
//
// [UnwindRow.FindCFA] and [UnwindRow.FindRegister] apply the rules.
type UnwindRow struct {
	// Range is the code for which the rules hold. Neighbouring rows differ.
	Range Range
	// CFA is the canonical frame address: the stack pointer of the caller, unless the row has a rule for that register.
	CFA UnwindValue
	// ReturnRegister is the register whose value in the caller is the return address. On x86 it is a number that no
	// register of the processor has (16, in 32-bit code 8); on ARM it is that of lr, or of pc if the function pops that.
	ReturnRegister uint16
	// SignalFrame says that a signal handler returns to this code. The caller was interrupted, so its address is that
	// of an instruction and not a return address.
	SignalFrame bool
	// ReturnAddressSigned says that the return address has a signature in its high bits (ARM64 pointer authentication).
	ReturnAddressSigned bool
	// CallsOnly says that the rules hold at calls only, not between the instructions that set up or remove the frame.
	CallsOnly bool
	// Rules are those of single registers, in ascending order. For other registers the calling convention decides: a
	// callee-saved register has its value, the value of another one is lost.
	Rules []RegisterRule

	// mask has the bits of a register.
	mask uint64
}

// A RegisterRule says how the caller's value of a register is found.
type RegisterRule struct {
	Register uint16
	Kind     RuleKind
	// Value is set for RuleStored and RuleValue.
	Value UnwindValue
}

// A RuleKind is the kind of a rule for a register.
type RuleKind uint8

const (
	// RuleUndefined says that the value is lost. If it is the return address, the frame has no caller.
	RuleUndefined RuleKind = iota
	// RuleSameValue says that the register still has the caller's value.
	RuleSameValue
	// RuleStored says that the value is in memory at the address Value.
	RuleStored
	// RuleValue says that the value is Value.
	RuleValue
)

// An UnwindValue says how a number is computed from the registers and the memory of a frame. Additions wrap around.
type UnwindValue struct {
	Kind ValueKind
	// Register is the register of ValueRegister and ValueLoaded.
	Register uint16
	// Offset is added to the CFA or to the register.
	Offset int64
	// Add is added to the word of ValueLoaded.
	Add int64
	// Expression is the DWARF expression of ValueExpression (DWARF 5, 2.5), at most 255 bytes, without branches and
	// calls. It begins with the CFA on its stack if it belongs to a register. It must not be modified.
	Expression []byte
}

// A ValueKind is the kind of an UnwindValue.
type ValueKind uint8

const (
	// ValueCFA is the CFA plus Offset.
	ValueCFA ValueKind = iota
	// ValueRegister is the value of Register plus Offset.
	ValueRegister
	// ValueLoaded is the word in memory at the value of Register plus Offset, plus Add.
	ValueLoaded
	// ValueExpression is the result of Expression.
	ValueExpression
	// ValueUnknown is a value that the debug file states in a way that the index cannot express.
	ValueUnknown
)

// Rule returns the rule of the row for a register. The result is false if it has none.
func (r *UnwindRow) Rule(register uint16) (rule RegisterRule, ok bool) {
	for _, rule := range r.Rules {
		if rule.Register == register {
			return rule, true
		}
	}
	return rule, false
}

// HasUnwindRows returns whether the index has unwind rows. They are an option of the build (symdex build --unwind).
func (ix *Index) HasUnwindRows() bool { return ix.unwind.size > 0 }

// UnwindRow returns the unwind row of the code at an image offset. The offset of a frame is that of
// [FrameAddress.ImageOffset]. The row is valid until the next call with this scratch and must not be modified.
//
// The error is [ErrNoUnwindRow] or a [*DamagedError].
func (ix *Index) UnwindRow(offset uint64, s *Scratch) (*UnwindRow, error) {
	u, err := ix.unwindRows()
	if err != nil {
		return nil, err
	}
	block, ok, err := u.blockOf(offset)
	if err != nil {
		return nil, err
	} else if !ok {
		return nil, ErrNoUnwindRow
	}
	ranges, err := u.ranges(block)
	for err == nil {
		var code Range
		if code, err = ranges.next(); err == nil && code.Start == code.End {
			err = ErrNoUnwindRow // the offset is after the last range of all
		} else if err == nil && offset < code.End {
			return u.row(code, ranges.rule, &s.row)
		}
	}
	return nil, err
}

// UnwindRows iterates over all unwind rows in address order. Each row is valid until the next one and must not be
// modified. The error is a [*DamagedError], after which there are no more rows.
func (ix *Index) UnwindRows() iter.Seq2[*UnwindRow, error] {
	return func(yield func(*UnwindRow, error) bool) {
		u, err := ix.unwindRows()
		if err == ErrNoUnwindRow {
			return
		}
		var row UnwindRow
		for block := uint64(0); err == nil && block < u.blocks.count; block++ {
			var ranges unwindRanges
			ranges, err = u.ranges(block)
			for err == nil {
				var code Range
				if code, err = ranges.next(); err != nil || code.Start == code.End {
					break
				}
				if _, err = u.row(code, ranges.rule, &row); err == ErrNoUnwindRow {
					err = nil
				} else if err == nil && !yield(&row, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

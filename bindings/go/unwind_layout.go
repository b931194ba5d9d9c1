package symdex

import "math"

const (
	maxLayout     = 4096
	maxRegisters  = 128
	maxExpression = 255
)

// Flags of a layout.
const (
	layoutSignalFrame = 1 << iota
	layoutSigned
	layoutCallsOnly
	layoutCFA
	layoutFlags = 1<<iota - 1
)

// row sets row to that of a range of code with this rule, which exists, and returns it.
func (u *unwindSection) row(code Range, rule uint64, row *UnwindRow) (*UnwindRow, error) {
	columns, err := u.rules.row(&u.section, rule)
	if err != nil {
		return nil, err
	}
	layout, register, offset := columns[1], columns[2], columns[3]
	if layout == 0 {
		return nil, ErrNoUnwindRow
	}
	*row = UnwindRow{Range: code, Rules: row.Rules[:0], mask: u.mask}
	bytes, err := u.layout(layout - 1)
	if err != nil {
		return nil, err
	}
	f := fields{rest: bytes}
	statesCFA := row.parseLayout(&f)
	if f.failed || len(f.rest) != 0 {
		return nil, damaged(u.name, "layout %d is invalid", layout-1)
	}
	if statesCFA && (register != 0 || offset != 0) || !statesCFA && (register == 0 || register-1 > math.MaxUint16) {
		return nil, damaged(u.name, "rule %d is invalid", rule)
	}
	if !statesCFA {
		row.CFA = UnwindValue{Kind: ValueRegister, Register: uint16(register - 1), Offset: unfold(offset)}
	}
	return row, nil
}

// layout returns the bytes of a layout.
func (u *unwindSection) layout(number uint64) ([]byte, error) {
	if number >= u.layouts.count {
		return nil, damaged(u.name, "there are %d layouts, and a rule has the layout %d", u.layouts.count, number)
	}
	size := u.layoutBytes.End - u.layoutBytes.Start
	columns, next, err := u.layouts.pair(&u.section, number, [2]uint64{size})
	if err != nil {
		return nil, err
	}
	start, end := columns[0], next[0]
	if start >= end || end > size || end-start > maxLayout {
		return nil, damaged(u.name, "layout %d is at %d to %d", number, start, end)
	}
	start, end = u.layoutBytes.Start+start, u.layoutBytes.Start+end
	return u.data[start:end:end], u.check(start, end)
}

// parseLayout reads a layout, and returns whether it states the CFA.
func (r *UnwindRow) parseLayout(f *fields) (statesCFA bool) {
	flags := f.varint()
	f.failed = f.failed || flags&^layoutFlags != 0
	r.SignalFrame = flags&layoutSignalFrame != 0
	r.ReturnAddressSigned = flags&layoutSigned != 0
	r.CallsOnly = flags&layoutCallsOnly != 0
	r.ReturnRegister = f.register()
	if statesCFA = flags&layoutCFA != 0; statesCFA {
		r.CFA = f.unwindValue(f.varint())
		f.failed = f.failed || r.CFA.Kind == ValueCFA
	}
	count, next := f.varint(), uint64(0)
	f.failed = f.failed || count > maxRegisters
	for ; count > 0 && !f.failed; count-- {
		number := next + uint64(f.register())
		rule := RegisterRule{Register: uint16(number)}
		if kind := f.varint(); kind < uint64(RuleStored) {
			rule.Kind = RuleKind(kind)
		} else {
			rule.Kind = RuleStored + RuleKind(kind%2)
			rule.Value = f.unwindValue(kind/2 - 1)
		}
		f.failed = f.failed || number >= math.MaxUint16
		r.Rules = append(r.Rules, rule)
		next = number + 1
	}
	return statesCFA
}

func (f *fields) register() uint16 {
	number := f.varint()
	f.failed = f.failed || number > math.MaxUint16
	return uint16(number)
}

// unwindValue reads a value of this kind.
func (f *fields) unwindValue(kind uint64) UnwindValue {
	switch kind {
	case uint64(ValueCFA):
		return UnwindValue{Kind: ValueCFA, Offset: unfold(f.varint())}
	case uint64(ValueRegister):
		return UnwindValue{Kind: ValueRegister, Register: f.register(), Offset: unfold(f.varint())}
	case uint64(ValueLoaded):
		return UnwindValue{
			Kind: ValueLoaded, Register: f.register(), Offset: unfold(f.varint()), Add: unfold(f.varint()),
		}
	case uint64(ValueExpression):
		size := f.varint()
		f.failed = f.failed || size > maxExpression
		expression := f.take(size)
		f.failed = f.failed || !isKnownExpression(expression)
		return UnwindValue{Kind: ValueExpression, Expression: expression}
	case uint64(ValueUnknown):
	default:
		f.failed = true
	}
	return UnwindValue{Kind: ValueUnknown}
}

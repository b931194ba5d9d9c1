package symdex

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// A FrameState has the registers of a frame, and the memory of its thread.
type FrameState interface {
	// Register returns the value of a register, by its DWARF number. The result is false if it is not known.
	Register(number uint16) (value uint64, ok bool)
	// Word returns the word at an address: little-endian, as many bytes as a register has. The result is false if the
	// memory is not known.
	Word(address uint64) (word uint64, ok bool)
}

// FindCFA returns the canonical frame address of the frame with this state. The result is false if it depends on
// registers or memory that are not known, or on what the index cannot express.
func (r *UnwindRow) FindCFA(state FrameState) (cfa uint64, ok bool) {
	return r.compute(&r.CFA, nil, state)
}

// FindRegister returns the caller's value of a register. The CFA is that of [UnwindRow.FindCFA]. A register without a
// rule has the value that it has in this frame. The result is false if the value is lost, or for the reasons of
// [UnwindRow.FindCFA].
func (r *UnwindRow) FindRegister(register uint16, cfa uint64, state FrameState) (value uint64, ok bool) {
	rule, hasRule := r.Rule(register)
	switch {
	case !hasRule || rule.Kind == RuleSameValue:
		value, ok = state.Register(register)
	case rule.Kind == RuleStored:
		var address uint64
		if address, ok = r.compute(&rule.Value, &cfa, state); ok {
			value, ok = state.Word(address)
		}
	case rule.Kind == RuleValue:
		value, ok = r.compute(&rule.Value, &cfa, state)
	}
	return value & r.mask, ok
}

// compute returns a value. There is no CFA if that is being computed.
func (r *UnwindRow) compute(v *UnwindValue, cfa *uint64, state FrameState) (value uint64, ok bool) {
	switch v.Kind {
	case ValueCFA:
		if cfa == nil {
			return 0, false
		}
		value, ok = *cfa+uint64(v.Offset), true
	case ValueRegister, ValueLoaded:
		value, ok = state.Register(v.Register)
		value += uint64(v.Offset)
		if ok && v.Kind == ValueLoaded {
			value, ok = state.Word(value & r.mask)
			value += uint64(v.Add)
		}
	case ValueExpression:
		return evaluate(v.Expression, cfa, r.mask, state)
	}
	return value & r.mask, ok
}

// Operations of expressions (DWARF 5, 7.7.1).
const (
	opDeref    = 0x06
	opConst1u  = 0x08
	opConst1s  = 0x09
	opConst2u  = 0x0a
	opConst2s  = 0x0b
	opConst4u  = 0x0c
	opConst4s  = 0x0d
	opConst8u  = 0x0e
	opConst8s  = 0x0f
	opConstU   = 0x10
	opConstS   = 0x11
	opDup      = 0x12
	opDrop     = 0x13
	opOver     = 0x14
	opPick     = 0x15
	opSwap     = 0x16
	opRot      = 0x17
	opAbs      = 0x19
	opAnd      = 0x1a
	opDiv      = 0x1b
	opMinus    = 0x1c
	opMod      = 0x1d
	opMul      = 0x1e
	opNeg      = 0x1f
	opNot      = 0x20
	opOr       = 0x21
	opPlus     = 0x22
	opPlusU    = 0x23
	opShl      = 0x24
	opShr      = 0x25
	opShra     = 0x26
	opXor      = 0x27
	opEq       = 0x29
	opGe       = 0x2a
	opGt       = 0x2b
	opLe       = 0x2c
	opLt       = 0x2d
	opNe       = 0x2e
	opLit0     = 0x30
	opLit31    = 0x4f
	opBreg0    = 0x70
	opBreg31   = 0x8f
	opBregX    = 0x92
	opNop      = 0x96
	stackLimit = 32
)

// operation is an operation of an expression with its operands.
type operation struct {
	code     byte
	register uint16
	// number is the constant, the offset or the position that the operation states.
	number uint64
}

// operation reads the next operation of an expression. It fails if the operation is cut or not known.
func (f *fields) operation() operation {
	o := operation{code: f.u8()}
	switch c := o.code; {
	case c == opConst1u || c == opPick:
		o.number = uint64(f.u8())
	case c == opConst1s:
		o.number = uint64(int8(f.u8()))
	case c == opConst2u || c == opConst2s:
		if taken := f.take(2); taken != nil {
			o.number = uint64(binary.LittleEndian.Uint16(taken))
		}
		if c == opConst2s {
			o.number = uint64(int16(o.number))
		}
	case c == opConst4u:
		o.number = uint64(f.u32())
	case c == opConst4s:
		o.number = uint64(int32(f.u32()))
	case c == opConst8u || c == opConst8s:
		o.number = f.u64()
	case c == opConstU || c == opPlusU:
		o.number = f.varint()
	case c == opConstS:
		o.number = f.signedVarint()
	case c >= opLit0 && c <= opLit31:
		o.number = uint64(c - opLit0)
	case c >= opBreg0 && c <= opBreg31:
		o.register, o.number = uint16(c-opBreg0), f.signedVarint()
	case c == opBregX:
		o.register, o.number = f.register(), f.signedVarint()
	case c == opDeref || c == opNop || c >= opDup && c <= opRot || c >= opAbs && c <= opXor || c >= opEq && c <= opNe:
		// These have no operands.
	default:
		f.failed = true
	}
	return o
}

// signedVarint reads a signed LEB128 number of at most ten bytes.
func (f *fields) signedVarint() uint64 {
	value := uint64(0)
	for shift := 0; shift < 64; shift += 7 {
		b := f.u8()
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			unused := max(0, 64-shift-7)
			return uint64(int64(value<<unused) >> unused)
		}
	}
	f.failed = true
	return 0
}

// isKnownExpression returns whether an expression has only operations that are known and whole.
func isKnownExpression(bytes []byte) bool {
	f := fields{rest: bytes}
	for len(f.rest) > 0 && !f.failed {
		f.operation()
	}
	return !f.failed
}

// expressionStack has the numbers that an expression works on.
type expressionStack struct {
	numbers [stackLimit]uint64
	size    int
	mask    uint64
	failed  bool
}

func (s *expressionStack) push(number uint64) {
	if s.size == len(s.numbers) {
		s.failed = true
		return
	}
	s.numbers[s.size] = number & s.mask
	s.size++
}

func (s *expressionStack) pop() uint64 {
	if s.size == 0 {
		s.failed = true
		return 0
	}
	s.size--
	return s.numbers[s.size]
}

// pick returns the number below so many others.
func (s *expressionStack) pick(above uint64) uint64 {
	if above >= uint64(s.size) {
		s.failed = true
		return 0
	}
	return s.numbers[s.size-1-int(above)]
}

// signed returns a number with the sign of the highest bit of a register.
func (s *expressionStack) signed(number uint64) int64 {
	unused := bits.LeadingZeros64(s.mask)
	return int64(number<<unused) >> unused
}

// evaluate returns the last number on the stack of an expression, which begins with the CFA if there is one. The result
// is false if the expression fails.
func evaluate(expression []byte, cfa *uint64, mask uint64, state FrameState) (value uint64, ok bool) {
	s := expressionStack{mask: mask}
	if cfa != nil {
		s.push(*cfa)
	}
	f := fields{rest: expression}
	for len(f.rest) > 0 && !s.failed {
		if o := f.operation(); f.failed || !s.apply(o, state) {
			return 0, false
		}
	}
	value = s.pop()
	return value, !s.failed
}

// apply executes an operation. The result is false if it needs a register or memory that is not known.
func (s *expressionStack) apply(o operation, state FrameState) bool {
	switch c := o.code; {
	case c >= opConst1u && c <= opConstS, c >= opLit0 && c <= opLit31:
		s.push(o.number)
	case c >= opBreg0 && c <= opBreg31, c == opBregX:
		value, ok := state.Register(o.register)
		s.push(value + o.number)
		return ok
	case c == opDeref:
		address := s.pop()
		if s.failed {
			return false
		}
		word, ok := state.Word(address)
		s.push(word)
		return ok
	case c == opPlusU:
		s.push(s.pop() + o.number)
	case c == opDup:
		s.push(s.pick(0))
	case c == opDrop:
		s.pop()
	case c == opOver:
		s.push(s.pick(1))
	case c == opPick:
		s.push(s.pick(o.number))
	case c == opSwap:
		top, second := s.pop(), s.pop()
		s.push(top)
		s.push(second)
	case c == opRot:
		top, second, third := s.pop(), s.pop(), s.pop()
		s.push(top)
		s.push(third)
		s.push(second)
	case c == opAbs:
		number := s.pop()
		if s.signed(number) < 0 {
			number = -number
		}
		s.push(number)
	case c == opNeg:
		s.push(-s.pop())
	case c == opNot:
		s.push(^s.pop())
	case c != opNop:
		right, left := s.pop(), s.pop()
		s.push(s.binary(c, left, right))
	}
	return true
}

// binary returns the result of an operation on two numbers, of which right was on top.
func (s *expressionStack) binary(code byte, left, right uint64) uint64 {
	signedLeft, signedRight := s.signed(left), s.signed(right)
	switch code {
	case opAnd:
		return left & right
	case opDiv:
		if signedRight == 0 || signedLeft == math.MinInt64 && signedRight == -1 {
			s.failed = true
			return 0
		}
		return uint64(signedLeft / signedRight)
	case opMinus:
		return left - right
	case opMod:
		if right == 0 {
			s.failed = true
			return 0
		}
		return left % right
	case opMul:
		return left * right
	case opOr:
		return left | right
	case opPlus:
		return left + right
	case opShl:
		return left << right
	case opShr:
		return left >> right
	case opShra:
		return uint64(signedLeft >> right)
	case opXor:
		return left ^ right
	case opEq:
		return truth(left == right)
	case opGe:
		return truth(signedLeft >= signedRight)
	case opGt:
		return truth(signedLeft > signedRight)
	case opLe:
		return truth(signedLeft <= signedRight)
	case opLt:
		return truth(signedLeft < signedRight)
	default: // opNe
		return truth(left != right)
	}
}

// truth returns the number that DWARF has for the result of a comparison.
func truth(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

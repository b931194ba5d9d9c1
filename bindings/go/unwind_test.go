package symdex

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const unwindGolden = "unwind-rows-1.symdex"

// printUnwindRows prints all unwind rows as the golden texts do, and compares each with the row of its first and its
// last byte.
func printUnwindRows(t *testing.T, index *Index) string {
	var text strings.Builder
	scratch := &Scratch{}
	for row, err := range index.UnwindRows() {
		if err != nil {
			t.Fatal(err)
		}
		for _, offset := range []uint64{row.Range.Start, row.Range.End - 1} {
			found, err := index.UnwindRow(offset, scratch)
			if err != nil || describeRow(found) != describeRow(row) {
				t.Fatalf("at %#x is %+v, %v instead of %+v", offset, found, err, row)
			}
		}
		fmt.Fprintln(&text, "unwind", describeRow(row))
	}
	return text.String()
}

func describeRow(row *UnwindRow) string {
	rules := []string{}
	for _, r := range row.Rules {
		rule := [...]string{"Undefined", "SameValue", "Stored", "Value"}[r.Kind]
		if r.Kind >= RuleStored {
			rule += "(" + describeValue(r.Value) + ")"
		}
		rules = append(rules, fmt.Sprintf("(%d, %s)", r.Register, rule))
	}
	return fmt.Sprintf("%#x..%#x %s %d [%s]",
		row.Range.Start, row.Range.End, describeValue(row.CFA), row.ReturnRegister, strings.Join(rules, ", "))
}

func describeValue(v UnwindValue) string {
	switch v.Kind {
	case ValueCFA:
		return fmt.Sprintf("Cfa(%d)", v.Offset)
	case ValueRegister:
		return fmt.Sprintf("Register { register: %d, offset: %d }", v.Register, v.Offset)
	case ValueLoaded:
		return fmt.Sprintf("Loaded { register: %d, offset: %d, add: %d }", v.Register, v.Offset, v.Add)
	case ValueExpression:
		return fmt.Sprintf("Expression(%s)", strings.ReplaceAll(fmt.Sprint(v.Expression), " ", ", "))
	}
	return "Unknown"
}

// The index of FORMAT.md with the unwind rows there.
func TestDocumentUnwindRows(t *testing.T) {
	index, section := documentIndex(t), documentBytes(t, "the unwind rows begin")
	end := len(index)
	data := slices.Concat(index, section)
	data[24] = 1 << unwindRowsBit
	repair(data)
	if !slices.Equal(data[end:end+len(section)], section) {
		t.Error("the checksum of the unwind rows is another one")
	}
	opened, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	saved := "[(29, Stored(Cfa(-16))), (30, Stored(Cfa(-8)))]\n"
	want := "unwind 0x100..0x104 Register { register: 31, offset: 0 } 30 []\n" +
		"unwind 0x104..0x13c Register { register: 31, offset: 16 } 30 " + saved +
		"unwind 0x13c..0x140 Register { register: 31, offset: 0 } 30 []\n" +
		"unwind 0x150..0x160 Register { register: 31, offset: 0 } 30 []\n"
	if got := printUnwindRows(t, opened); got != want {
		t.Errorf("the rows are\n%s\ninstead of\n%s", got, want)
	}
	for _, offset := range []uint64{0, 0xff, 0x140, 0x14f, 0x160, math.MaxUint64} {
		if row, err := opened.UnwindRow(offset, &Scratch{}); err != ErrNoUnwindRow {
			t.Errorf("at %#x: %+v, %v", offset, row, err)
		}
	}
	without, err := Open(documentIndex(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := without.UnwindRow(0x100, &Scratch{}); without.HasUnwindRows() || err != ErrNoUnwindRow {
		t.Errorf("an index without the section: %v", err)
	}
}

// stoppedFrame is the state of a frame in which the memory from 0x100 on is known: each word is its address plus 1.
type stoppedFrame struct{ registers []uint64 }

func (f *stoppedFrame) Register(number uint16) (uint64, bool) {
	if int(number) >= len(f.registers) {
		return 0, false
	}
	return f.registers[number], true
}

func (f *stoppedFrame) Word(address uint64) (uint64, bool) { return address + 1, address >= 0x100 }

func someFrame() *stoppedFrame {
	frame := &stoppedFrame{}
	for number := range uint64(17) {
		frame.registers = append(frame.registers, 0x1000*number+0xb)
	}
	return frame
}

// A stub of a procedure linkage table has its frame address in an expression, and a function saves registers.
func TestFindRegisters(t *testing.T) {
	index, err := Open(goldenFile(t, unwindGolden))
	if err != nil {
		t.Fatal(err)
	}
	frame, scratch := someFrame(), &Scratch{}
	for _, c := range []struct {
		offset, cfa, returnAddress, rbx uint64
	}{
		// The instruction pointer ends with 0xb: the stub has pushed a number.
		{0x1010, 0x700b + 16, 0x700b + 8 + 1, 0x300b},
		{0x109b, 0x700b + 32, 0x700b + 24 + 1, 0x700b + 8 + 1},
	} {
		row, err := index.UnwindRow(c.offset, scratch)
		if err != nil {
			t.Fatal(err)
		}
		cfa, ok := row.FindCFA(frame)
		address, hasAddress := row.FindRegister(row.ReturnRegister, cfa, frame)
		rbx, hasRBX := row.FindRegister(3, cfa, frame)
		if !ok || !hasAddress || !hasRBX || cfa != c.cfa || address != c.returnAddress || rbx != c.rbx {
			t.Errorf("at %#x: %#x, %#x, %#x instead of %#x, %#x, %#x",
				c.offset, cfa, address, rbx, c.cfa, c.returnAddress, c.rbx)
		}
		if _, ok := row.FindCFA(&stoppedFrame{}); ok {
			t.Errorf("at %#x: a frame address without registers", c.offset)
		}
	}
}

func TestExpressions(t *testing.T) {
	none, of := uint64(0), func(number uint64) *uint64 { return &number }
	for _, c := range []struct {
		expression []byte
		cfa        *uint64
		mask, want uint64
		ok         bool
	}{
		{[]byte{opPlusU, 0x10}, of(0x2000), math.MaxUint64, 0x2010, true},
		{[]byte{opPlusU, 0x10}, nil, math.MaxUint64, none, false},
		{[]byte{opBreg0 + 3, 0x75, opDeref}, nil, math.MaxUint64, 0x3001, true},
		{[]byte{opBregX, 16, 0, opConstS, 0x7f, opMul}, nil, math.MaxUint32, 1<<32 - 0x1000b, true},
		{[]byte{opBregX, 17, 0}, nil, math.MaxUint64, none, false},
		{[]byte{opConst1u, 0x10, opDeref}, nil, math.MaxUint64, none, false},
		{[]byte{opConst1s, 0xff}, nil, math.MaxUint32, 0xffffffff, true},
		{[]byte{opConst1s, 0xfe, opLit0 + 1, opShra}, nil, math.MaxUint32, 0xffffffff, true},
		{[]byte{opConst2s, 0xfc, 0xff, opLit0 + 2, opDiv}, nil, math.MaxUint32, 0xfffffffe, true},
		{[]byte{opLit0 + 1, opConst1u, 32, opShl}, nil, math.MaxUint32, 0, true},
		{[]byte{opLit0 + 1, opLit0, opDiv}, nil, math.MaxUint64, none, false},
		{[]byte{opLit0 + 1, opLit0, opMod}, nil, math.MaxUint64, none, false},
		{[]byte{opConst8u, 0, 0, 0, 0, 0, 0, 0, 0x80, opConst1s, 0xff, opDiv}, nil, math.MaxUint64, none, false},
		{[]byte{opLit0 + 1, opLit0 + 2, opLit0 + 3, opRot}, nil, math.MaxUint64, 2, true},
		{[]byte{opLit0 + 1, opLit0 + 2, opSwap, opMinus}, nil, math.MaxUint64, 1, true},
		{[]byte{opLit0 + 1, opLit0 + 2, opOver}, nil, math.MaxUint64, 1, true},
		{[]byte{opLit0 + 1, opLit0 + 2, opLit0 + 3, opPick, 2}, nil, math.MaxUint64, 1, true},
		{[]byte{opConst4s, 0xfe, 0xff, 0xff, 0xff, opAbs, opNeg, opNot}, nil, math.MaxUint64, 1, true},
		{[]byte{opConst1s, 0xff, opLit0, opLt, opNop}, nil, math.MaxUint64, 1, true},
		{[]byte{opDrop, opDrop}, of(0), math.MaxUint64, none, false},
		{slices.Repeat([]byte{opDup}, 64), of(0), math.MaxUint64, none, false},
		{[]byte{0x28, 0, 0}, of(0), math.MaxUint64, none, false}, // a branch
		{[]byte{opConst4u, 1, 2}, of(0), math.MaxUint64, none, false},
		{[]byte{opBreg0, 0x80}, of(0), math.MaxUint64, none, false},
	} {
		got, ok := evaluate(c.expression, c.cfa, c.mask, someFrame())
		if ok != c.ok || ok && got != c.want {
			t.Errorf("% x gives %#x, %v instead of %#x, %v", c.expression, got, ok, c.want, c.ok)
		}
	}
}

func TestUnwindRowAllocatesNothing(t *testing.T) {
	index, err := Open(goldenFile(t, unwindGolden))
	if err != nil {
		t.Fatal(err)
	}
	offsets, scratch := someOffsets(index, 200), &Scratch{}
	frame := someFrame()
	ask := func() {
		for _, offset := range offsets {
			row, err := index.UnwindRow(offset, scratch)
			if err == ErrNoUnwindRow {
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			if cfa, ok := row.FindCFA(frame); ok {
				row.FindRegister(row.ReturnRegister, cfa, frame)
			}
		}
	}
	if allocations := testing.AllocsPerRun(5, ask); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

// rowsOf returns the rows of an index as text, at most some thousands, and the error after them.
func rowsOf(t testing.TB, index *Index) (rows []string, failed error) {
	for row, err := range index.UnwindRows() {
		if err != nil && !errors.As(err, new(*DamagedError)) {
			t.Fatalf("an error of an unexpected type: %v", err)
		} else if err != nil {
			return rows, err
		}
		if rows = append(rows, describeRow(row)); len(rows) == 5000 {
			break
		}
	}
	return rows, nil
}

// unwindPlace returns where an index has its unwind rows.
func unwindPlace(t *testing.T, data []byte) Range {
	h, err := parseHeader(data)
	if err != nil {
		t.Fatal(err)
	}
	_, optional, err := h.parts(data)
	if err != nil {
		t.Fatal(err)
	}
	return optional[unwindRowsBit]
}

// With any bit of the section flipped, every row is the right one or an error.
func TestFlippedBitsOfUnwindRows(t *testing.T) {
	original := goldenFile(t, unwindGolden)
	index, err := Open(original)
	if err != nil {
		t.Fatal(err)
	}
	want, err := rowsOf(t, index)
	if err != nil || len(want) == 0 {
		t.Fatal(len(want), err)
	}
	place, wrong := unwindPlace(t, original), 0
	for bit := 8 * place.Start; bit < 8*place.End; bit++ {
		for _, repaired := range []bool{false, true} {
			flipped := slices.Clone(original)
			flipped[bit/8] ^= 1 << (bit % 8)
			if repaired {
				repair(flipped)
			}
			index, err := Open(flipped)
			if err != nil {
				t.Fatal(err)
			}
			rows, failed := rowsOf(t, index)
			if repaired && !reflect.DeepEqual(rows, want) {
				wrong++
			}
			if !repaired && (failed == nil || len(rows) > 0 && !reflect.DeepEqual(rows, want[:len(rows)])) {
				t.Fatalf("with bit %d flipped, there are %d rows and the error %v", bit, len(rows), failed)
			}
		}
	}
	if wrong == 0 {
		t.Error("no bit of the section changes a row")
	}
}

package symdex

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// commandRow is a row as symdex lookup --unwind-rows --json prints it.
type commandRow struct {
	Start         string            `json:"start"`
	End           string            `json:"end"`
	CFA           string            `json:"cfa"`
	ReturnAddress string            `json:"return_address"`
	Registers     map[string]string `json:"registers"`
	SignalFrame   bool              `json:"signal_frame"`
	Signed        bool              `json:"signed"`
	AtCallsOnly   bool              `json:"at_calls_only"`
}

// The indexes of programs in C++ and Go, and the ones that SYMDEX_TEST_INDEXES names, give the unwind rows of the Rust
// reader.
func TestUnwindRowsOfCommand(t *testing.T) {
	program := command(t)
	paths := buildIndexes(t, "--unwind", "../../testdata/elf", goProgram(t))
	paths = append(paths, filepath.SplitList(os.Getenv("SYMDEX_TEST_INDEXES"))...)
	all := 0
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			index, err := OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if arch := index.Metadata().Arch.Name; !index.HasUnwindRows() || arch != "x86_64" && arch != "arm64" {
				t.Skip("no unwind rows of x86_64 or arm64")
			}
			offsets, scratch, rows := randomOffsets(index), &Scratch{}, 0
			for i, answer := range askCommand(t, program, path, offsets, "--unwind-rows") {
				row, err := index.UnwindRow(offsets[i], scratch)
				if err == ErrNoUnwindRow && answer.Unwind == nil {
					continue
				} else if err != nil {
					t.Fatalf("at %#x: %v", offsets[i], err)
				}
				if got := viewOf(index, row); !reflect.DeepEqual(got, answer.Unwind) {
					t.Fatalf("at %#x is\n%+v\ninstead of\n%+v", offsets[i], got, answer.Unwind)
				}
				rows++
			}
			all += rows
		})
	}
	t.Logf("%d rows of %d indexes", all, len(paths))
	if all < 3000 {
		t.Error("the indexes have too few rows")
	}
}

// viewOf returns a row in the form of the command.
func viewOf(index *Index, row *UnwindRow) *commandRow {
	arch := index.Metadata().Arch.Name
	view := &commandRow{
		Start: fmt.Sprintf("%#x", row.Range.Start), End: fmt.Sprintf("%#x", row.Range.End),
		CFA: valueText(arch, row.CFA), ReturnAddress: registerName(arch, row.ReturnRegister),
		Registers:   map[string]string{},
		SignalFrame: row.SignalFrame, Signed: row.ReturnAddressSigned, AtCallsOnly: row.CallsOnly,
	}
	for _, rule := range row.Rules {
		text := map[RuleKind]string{RuleUndefined: "lost", RuleSameValue: "unchanged"}[rule.Kind]
		switch {
		case rule.Kind == RuleStored:
			text = "[" + valueText(arch, rule.Value) + "]"
		case rule.Kind == RuleValue:
			text = valueText(arch, rule.Value)
		}
		switch {
		case rule.Register != row.ReturnRegister:
			view.Registers[registerName(arch, rule.Register)] = text
		case rule.Kind == RuleUndefined:
			view.ReturnAddress = "none: the frame has no caller"
		case rule.Kind != RuleSameValue:
			view.ReturnAddress = text
		}
	}
	return view
}

func registerName(arch string, number uint16) string {
	x86 := [...]string{"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp"}
	switch {
	case arch == "arm64" && number == 31:
		return "sp"
	case arch == "arm64" && number < 31:
		return fmt.Sprint("x", number)
	case arch == "arm64" && number >= 64 && number < 96:
		return fmt.Sprint("d", number-64)
	case arch == "x86_64" && number < 8:
		return x86[number]
	case arch == "x86_64" && number == 16:
		return "rip"
	}
	return fmt.Sprint("r", number)
}

func valueText(arch string, v UnwindValue) string {
	sum := func(base string, offset int64) string {
		switch {
		case offset < 0:
			return fmt.Sprintf("%s - %d", base, -uint64(offset))
		case offset > 0:
			return fmt.Sprintf("%s + %d", base, offset)
		}
		return base
	}
	switch v.Kind {
	case ValueCFA:
		return sum("CFA", v.Offset)
	case ValueRegister:
		return sum(registerName(arch, v.Register), v.Offset)
	case ValueLoaded:
		return sum("["+sum(registerName(arch, v.Register), v.Offset)+"]", v.Add)
	case ValueExpression:
		return fmt.Sprintf("DWARF expression % x", v.Expression)
	}
	return "unknown"
}

// Damage that has right checksums never leads to another row than the Rust reader's. What is damaged for that reader is
// damaged for this one. This one also checks for each range that its block has not ended, so it finds more damage.
func TestDamagedUnwindRowsAsCommand(t *testing.T) {
	program, original := command(t), goldenFile(t, unwindGolden)
	intact, err := Open(original)
	if err != nil {
		t.Fatal(err)
	}
	section := unwindPlace(t, original)
	offsets, random := someOffsets(intact, 60), rand.New(rand.NewPCG(8, 9))
	damage, stricter := 0, 0
	for range 2 * mutants {
		data := slices.Clone(original)
		data[section.Start+random.Uint64N(section.End-section.Start)] ^= 1 << random.IntN(8)
		repair(data)
		index, err := Open(data)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), intact.Metadata().ID.String()+".symdex")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		scratch := &Scratch{}
		for i, answer := range askCommand(t, program, path, offsets, "--unwind-rows") {
			row, err := index.UnwindRow(offsets[i], scratch)
			var got *commandRow
			if err == nil {
				got = viewOf(index, row)
			}
			switch isDamaged := errors.As(err, new(*DamagedError)); {
			case isDamaged && answer.Error != nil:
				damage++
			case isDamaged:
				stricter++
			case answer.Error != nil || !reflect.DeepEqual(got, answer.Unwind):
				t.Fatalf("%s: at %#x is %+v, %v instead of %+v", path, offsets[i], got, err, answer)
			}
		}
	}
	t.Logf("%d damaged rows, and %d only for this reader", damage, stricter)
	if damage == 0 || stricter > damage {
		t.Error("the damage is not that of the other reader")
	}
}

package symdex

import (
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// benchmarkIndex returns the index that SYMDEX_BENCH_INDEX names, or that of a Go program, which is the path.
func benchmarkIndex(b *testing.B) (index *Index, program string) {
	path := os.Getenv("SYMDEX_BENCH_INDEX")
	if path == "" {
		program = goProgram(b)
		path = buildIndexes(b, program)[0]
	}
	index, err := OpenFile(path)
	if err != nil {
		b.Fatal(err)
	}
	return index, program
}

// distinctOffsets returns different image offsets of code, uniformly drawn. SYMDEX_BENCH_OFFSETS names a file to which
// they are written, 8 bytes each, for another reader.
func distinctOffsets(b *testing.B, index *Index) []uint64 {
	const count = 20_000
	random := rand.New(rand.NewPCG(6, 7))
	seen := map[uint64]bool{}
	var offsets []uint64
	var file []byte
	executable := index.Metadata().Executable
	text := executable[0]
	for _, r := range executable {
		if r.End-r.Start > text.End-text.Start {
			text = r
		}
	}
	for len(offsets) < count {
		if offset := text.Start + random.Uint64N(text.End-text.Start); !seen[offset] {
			seen[offset] = true
			offsets = append(offsets, offset)
			file = binary.LittleEndian.AppendUint64(file, offset)
		}
	}
	if path := os.Getenv("SYMDEX_BENCH_OFFSETS"); path != "" {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	return offsets
}

// An address that was never asked for before, in an open index.
func BenchmarkNewAddress(b *testing.B) {
	index, _ := benchmarkIndex(b)
	offsets := distinctOffsets(b, index)
	var scratch *Scratch
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if i%len(offsets) == 0 {
			scratch = &Scratch{}
		}
		if _, err := index.Lookup(offsets[i%len(offsets)], Statement, scratch); err != nil && err != ErrNoAnswer {
			b.Fatal(err)
		}
	}
}

// An address that was asked for before.
func BenchmarkKnownAddress(b *testing.B) {
	index, _ := benchmarkIndex(b)
	offsets := distinctOffsets(b, index)
	scratch := &Scratch{}
	for _, offset := range offsets {
		_, _ = index.Lookup(offset, Statement, scratch)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		_, _ = index.Lookup(offsets[i%len(offsets)], Statement, scratch)
	}
}

// The bytes of a file, and its first answer.
func BenchmarkOpenAndAnswer(b *testing.B) {
	index, _ := benchmarkIndex(b)
	offset := distinctOffsets(b, index)[0]
	b.ReportAllocs()
	b.ResetTimer()
	for b.Loop() {
		opened, err := Open(index.data)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = opened.Lookup(offset, Statement, &Scratch{})
	}
}

// Go's debug/dwarf on the same ELF file, opened before: the unit of the address, and its row of the line table. This is
// less than a lookup does: no function and no inlined functions.
func BenchmarkDebugDwarfLine(b *testing.B) {
	index, program := benchmarkIndex(b)
	if program == "" {
		b.Skip("SYMDEX_BENCH_INDEX names an index without its ELF file")
	}
	file, err := elf.Open(program)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	debug, err := file.DWARF()
	if err != nil {
		b.Fatal(err)
	}
	offsets, base := distinctOffsets(b, index), index.Metadata().Base
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		_, _ = lineOf(debug, base+offsets[i%len(offsets)])
	}
}

// lineOf returns file and line of an address.
func lineOf(debug *dwarf.Data, address uint64) (string, error) {
	unit, err := debug.Reader().SeekPC(address)
	if err != nil {
		return "", err
	}
	lines, err := debug.LineReader(unit)
	if err != nil {
		return "", err
	}
	var row dwarf.LineEntry
	if err := lines.SeekPC(address, &row); err != nil {
		return "", err
	}
	return fmt.Sprint(row.File.Name, ":", row.Line), nil
}

// The unwind row of a new address, in an open index. Without SYMDEX_BENCH_INDEX, the index of a Go program is built.
func BenchmarkUnwindRow(b *testing.B) {
	index, program := benchmarkIndex(b)
	if program != "" {
		var err error
		if index, err = OpenFile(buildIndexes(b, "--unwind", program)[0]); err != nil {
			b.Fatal(err)
		}
	} else if !index.HasUnwindRows() {
		b.Skip("SYMDEX_BENCH_INDEX names an index without unwind rows")
	}
	offsets, scratch := distinctOffsets(b, index), &Scratch{}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		if _, err := index.UnwindRow(offsets[i%len(offsets)], scratch); err != nil && err != ErrNoUnwindRow {
			b.Fatal(err)
		}
	}
}

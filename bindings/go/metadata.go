package symdex

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// Metadata describes the image of an index, and the index.
type Metadata struct {
	ID ImageID
	// ImageName is the name of the debug file; for a dSYM that of the binary.
	ImageName string
	Arch      Arch
	// Base is the address at which image offset 0 was linked.
	Base uint64
	// ImageSize is the image offset of the end of the last executable section.
	ImageSize uint64
	// Executable has the executable sections as image offsets, sorted.
	Executable []Range
	// TextExecBase is the address of __TEXT_EXEC, where kernels have their code, if HasTextExecBase.
	TextExecBase    uint64
	HasTextExecBase bool
	// Segments has the executable segments of an ELF file, sorted by address. It is nil if the image is not from an
	// ELF file, and empty if the index was built of a debug file without code.
	Segments []Segment
	// ChunkSpan is the number of bytes of the image that a chunk of the index covers.
	ChunkSpan uint32
	Counts    Counts
	// Partial says what is missing from the index. It is empty if the index is complete.
	Partial []Partial
	// Builder is the version of symdex that built the index.
	Builder string

	tables [2]tableChunks
}

// Grade is the most that the index answers: "lines" (names, files and lines), "names", "bounds" (where functions start
// and end, without names) or "nothing". Single addresses may have less.
func (m *Metadata) Grade() string {
	switch c := m.Counts; {
	case c.Files > 0:
		return "lines"
	case c.Names > 0:
		return "names"
	case c.Functions > 0 || c.Ranges > 0 || c.Symbols > 0:
		return "bounds"
	}
	return "nothing"
}

// A Segment is an executable segment of an ELF file: its position in the file, its address, and its size in the file.
type Segment struct{ FileOffset, Address, Size uint64 }

// A Range is a range of image offsets, without End.
type Range struct{ Start, End uint64 }

// Counts are the numbers of what an index was built from, and of the names and files in it.
type Counts struct {
	Units, Functions, Ranges, Symbols, Names, Files uint64
	// Seen is what the builder found in the debug file.
	Seen Seen
}

// Seen counts what a builder found in a debug file: functions, inlined calls and line rows of the debug information
// and functions of the symbol table, with code in the image; and functions and symbols whose code is not in it.
type Seen struct{ Functions, Inlined, Rows, Symbols, FunctionsOutside, SymbolsOutside uint64 }

// A Partial is a reason for which an index is incomplete, and how often it applied.
type Partial struct {
	Reason string
	Count  uint64
}

// tableChunks are the chunks of a table, empty ones included.
type tableChunks struct{ first, count uint64 }

const (
	maxMetadata        = 1 << 20
	maxChunkSpan       = 1 << 20
	maxChunks          = 4194304
	maxStrings         = 4294967294
	maxSegments        = 64
	absent       uint8 = 0
	present      uint8 = 1
)

// fields reads the fields of the metadata. After a failure, all further reads return zeros.
type fields struct {
	rest   []byte
	failed bool
}

func (f *fields) take(size uint64) []byte {
	if f.failed || size > uint64(len(f.rest)) {
		f.failed = true
		return nil
	}
	taken := f.rest[:size]
	f.rest = f.rest[size:]
	return taken
}

func (f *fields) u8() uint8 {
	if taken := f.take(1); taken != nil {
		return taken[0]
	}
	return 0
}

func (f *fields) u32() uint32 {
	if taken := f.take(4); taken != nil {
		return binary.LittleEndian.Uint32(taken)
	}
	return 0
}

func (f *fields) u64() uint64 {
	if taken := f.take(8); taken != nil {
		return binary.LittleEndian.Uint64(taken)
	}
	return 0
}

func (f *fields) text() string {
	taken := f.take(f.u64())
	f.failed = f.failed || !utf8.Valid(taken)
	return string(taken)
}

// option returns whether a value follows, or whether an id is a hash.
func (f *fields) option() bool {
	flag := f.u8()
	f.failed = f.failed || flag > present
	return flag != absent
}

// list returns the length of a list whose items have at least the given size.
func (f *fields) list(itemSize uint64) uint64 {
	length := f.u64()
	if length > uint64(len(f.rest))/itemSize {
		f.failed = true
		return 0
	}
	return length
}

// parseMetadata returns the metadata of an index whose header states the given id.
func parseMetadata(data []byte, id ImageID) (*Metadata, error) {
	if len(data) > maxMetadata {
		return nil, damaged("metadata", "it has %d bytes, and at most %d are allowed", len(data), maxMetadata)
	}
	f := &fields{rest: data}
	m := &Metadata{}
	m.ID.hash = f.option()
	idBytes := f.take(f.u64())
	if len(idBytes) > len(m.ID.bytes) {
		return nil, damaged("metadata", "the image id has %d bytes", len(idBytes))
	}
	m.ID.size = uint8(copy(m.ID.bytes[:], idBytes))
	m.ImageName = f.text()
	m.Arch = Arch{Name: f.text(), CPUType: f.u32(), CPUSubtype: f.u32()}
	m.Base = f.u64()
	m.ImageSize = f.u64()
	m.Executable = make([]Range, f.list(16))
	for i := range m.Executable {
		m.Executable[i] = Range{Start: f.u64(), End: f.u64()}
	}
	if m.HasTextExecBase = f.option(); m.HasTextExecBase {
		m.TextExecBase = f.u64()
	}
	m.ChunkSpan = f.u32()
	seen := func() Seen { return Seen{f.u64(), f.u64(), f.u64(), f.u64(), f.u64(), f.u64()} }
	m.Counts = Counts{f.u64(), f.u64(), f.u64(), f.u64(), f.u64(), f.u64(), seen()}
	m.Partial = make([]Partial, f.list(16))
	for i := range m.Partial {
		m.Partial[i] = Partial{Reason: f.text(), Count: f.u64()}
	}
	m.Builder = f.text()
	if f.option() {
		f.take(16) // the digest of the builder's input
	}
	for i := range m.tables {
		m.tables[i] = tableChunks{first: f.u64(), count: f.u64()}
	}
	if len(f.rest) != 0 {
		m.Segments = make([]Segment, f.list(24))
		for i := range m.Segments {
			m.Segments[i] = Segment{FileOffset: f.u64(), Address: f.u64(), Size: f.u64()}
		}
	}
	if f.failed || len(f.rest) != 0 {
		return nil, damaged("metadata", "the fields do not have the size of the metadata")
	}
	if m.ID != id {
		return nil, damaged("metadata", "the image id is %v, and that of the header %v", m.ID, id)
	}
	return m, m.checkLimits()
}

func (m *Metadata) checkLimits() error {
	if m.ChunkSpan == 0 || m.ChunkSpan > maxChunkSpan {
		return damaged("metadata", "chunks cover %d bytes", m.ChunkSpan)
	}
	if m.Counts.Names > maxStrings || m.Counts.Files > maxStrings {
		return damaged("metadata", "there are %d names and %d files", m.Counts.Names, m.Counts.Files)
	}
	end := uint64(0)
	for _, r := range m.Executable {
		if r.Start < end || r.Start >= r.End || r.End > m.ImageSize {
			return damaged("metadata", "an executable range, %#x to %#x, is empty, out of order or outside the image",
				r.Start, r.End)
		}
		end = r.End
	}
	end = 0
	for _, s := range m.Segments {
		last, overflow := bits.Add64(s.Address, s.Size, 0)
		_, inFile := bits.Add64(s.FileOffset, s.Size, 0)
		if len(m.Segments) > maxSegments || s.Size == 0 || s.Address < end || overflow+inFile != 0 {
			return damaged("metadata", "there are %d executable segments, or one at %#x is empty or overlaps another",
				len(m.Segments), s.Address)
		}
		end = last
	}
	for _, table := range m.tables {
		last, overflow := bits.Add64(table.first, table.count, 0)
		if high, _ := bits.Mul64(last, uint64(m.ChunkSpan)); table.count > maxChunks || overflow+high != 0 {
			return damaged("metadata", "a table has %d chunks from %d on", table.count, table.first)
		}
	}
	return nil
}

package symdex

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
)

// answersOf returns the frames at some offsets under both policies. Offsets without an answer have none. An answer that
// is an error is counted instead.
func answersOf(t testing.TB, index *Index, offsets []uint64, s *Scratch) (answers [][]Frame, errorCount int) {
	for _, offset := range offsets {
		for _, policy := range []LinePolicy{Statement, Exact} {
			frames, err := index.Lookup(offset, policy, s)
			if err != nil && !errors.Is(err, ErrNoAnswer) {
				if !errors.As(err, new(*DamagedError)) {
					t.Fatalf("an error of an unexpected type: %v", err)
				}
				answers, errorCount = append(answers, nil), errorCount+1
				continue
			}
			answers = append(answers, append([]Frame{}, frames...))
		}
	}
	return answers, errorCount
}

func someOffsets(index *Index, count int) []uint64 {
	var offsets []uint64
	random := rand.New(rand.NewPCG(2, 3))
	executable := index.Metadata().Executable
	for range count {
		r := executable[random.IntN(len(executable))]
		offsets = append(offsets, r.Start+random.Uint64N(r.End-r.Start+1))
	}
	return offsets
}

// With any bit flipped, every answer of an index is the right one or an error.
func TestFlippedBits(t *testing.T) {
	for _, name := range []string{"icf-1.symdex", "made-up-1.symdex", "readable-names-1.symdex"} {
		original := goldenFile(t, name)
		index, err := Open(original)
		if err != nil {
			t.Fatal(err)
		}
		offsets := someOffsets(index, 12)
		want, _ := answersOf(t, index, offsets, &Scratch{})
		refused, failed, scratch := 0, 0, &Scratch{}
		for bit := range 8 * len(original) {
			flipped := slices.Clone(original)
			flipped[bit/8] ^= 1 << (bit % 8)
			index, err := Open(flipped)
			if err != nil {
				refused++
				continue
			}
			got, errorCount := answersOf(t, index, offsets, scratch)
			failed += min(1, errorCount)
			for i := range got {
				if got[i] != nil && !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("%s with bit %d flipped: %+v instead of %+v", name, bit, got[i], want[i])
				}
			}
			if err := index.Verify(); err == nil {
				t.Fatalf("%s with bit %d flipped is intact", name, bit)
			}
		}
		if refused == 0 || failed == 0 {
			t.Errorf("%s: %d files were not opened, %d had wrong pages", name, refused, failed)
		}
	}
}

func TestTruncatedFiles(t *testing.T) {
	original := goldenFile(t, "icf-1.symdex")
	for size := range original {
		if _, err := Open(original[:size]); err == nil {
			t.Errorf("an index of %d bytes of %d opens", size, len(original))
		}
	}
	if _, err := Open(append(slices.Clone(original), 0)); !errors.As(err, new(*DamagedError)) {
		t.Errorf("an index with a byte more: %v", err)
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		at          int
		value       byte
		unsupported bool
	}{{8, 2, true}, {16, 0x03, true}, {28, 0xff, false}} {
		data := goldenFile(t, "icf-1.symdex")
		data[c.at] = c.value
		if _, err := Open(data); !errors.As(err, new(*DamagedError)) {
			t.Errorf("damage at byte %d: %v", c.at, err)
		}
		repair(data)
		if _, err := Open(data); errors.As(err, new(*UnsupportedError)) != c.unsupported || (err != nil) != c.unsupported {
			t.Errorf("byte %d: %v", c.at, err)
		}
	}
	var unsupported *UnsupportedError
	if _, err := Open([]byte("\x7fELF, not an index")); err != ErrNotIndex || !errors.As(err, &unsupported) {
		t.Error(err)
	}
}

// repair makes all checksums of an index right, if its header says where they are.
func repair(data []byte) {
	if len(data) < headerSize {
		return
	}
	copy(data, magic)
	binary.LittleEndian.PutUint64(data[64:], uint64(len(data)))
	end := headerSize - checksumSize
	binary.LittleEndian.PutUint32(data[end:], crc32.ChecksumIEEE(data[:end]))
	h, err := parseHeader(data)
	if err != nil {
		return
	}
	parts, optional, err := h.parts(data)
	if err != nil {
		return
	}
	if metadata := data[parts[0].Start:parts[0].End]; len(metadata) >= checksumSize {
		binary.LittleEndian.PutUint32(metadata, metadataChecksum(metadata[checksumSize:], h.id))
	}
	checksums := data[parts[checksumsPart].Start:parts[checksumsPart].End]
	for i, part := range []int{1, 2, 4, 5} {
		checksums = repairPages(uint32(2+i), h.id, data, parts[part], checksums)
	}
	for bit, contents := range optional {
		if contents.End > 0 {
			repairPages(uint32(firstOptional+bit), h.id, data, contents, data[contents.End:])
		}
	}
}

// repairPages makes the checksums of the pages of a section right, and returns those of the next one.
func repairPages(number uint32, id ImageID, data []byte, part Range, checksums []byte) []byte {
	s, rest := newSection("", number, id, data[part.Start:], part.End-part.Start, checksums)
	for page := uint64(0); page*pageSize < s.size; page++ {
		binary.LittleEndian.PutUint32(checksums[page*checksumSize:], s.checksum(page))
	}
	return rest
}

// Whatever the bytes, with checksums or without, no lookup panics or takes long.
func FuzzLookup(f *testing.F) {
	paths, err := filepath.Glob(golden + "/*.symdex")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no golden indexes: %v", err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint64(0x3e8), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, offset uint64, repaired bool) {
		data = slices.Clone(data)
		if repaired {
			repair(data)
		}
		index, err := Open(data)
		if err != nil {
			if !errors.As(err, new(*DamagedError)) && !errors.As(err, new(*UnsupportedError)) &&
				!slices.Contains([]error{ErrCompressed, ErrNotIndex}, err) {
				t.Fatalf("an error of an unexpected type: %v", err)
			}
			return
		}
		offsets := []uint64{offset}
		for _, r := range index.Metadata().Executable[:min(4, len(index.Metadata().Executable))] {
			offsets = append(offsets, r.Start, r.Start/2+r.End/2, r.End)
		}
		for _, table := range index.metadata.tables {
			offsets = append(offsets, table.first*uint64(index.metadata.ChunkSpan)+offset%uint64(index.metadata.ChunkSpan))
		}
		scratch := &Scratch{}
		answers, _ := answersOf(t, index, offsets, scratch)
		again, _ := answersOf(t, index, offsets, &Scratch{})
		if !reflect.DeepEqual(answers, again) {
			t.Fatal("answers depend on what was asked before")
		}
		for _, offset := range offsets {
			if _, err := index.FunctionNames(offset, scratch); err != nil && !errors.As(err, new(*DamagedError)) {
				t.Fatalf("an error of an unexpected type: %v", err)
			}
			row, err := index.UnwindRow(offset, scratch)
			if err != nil && err != ErrNoUnwindRow && !errors.As(err, new(*DamagedError)) {
				t.Fatalf("an error of an unexpected type: %v", err)
			} else if err == nil {
				row.FindCFA(someFrame())
			}
		}
		rowsOf(t, index)
	})
}

// Damage that has right checksums never leads to another answer than the Rust reader's. What is damaged for that reader
// is damaged for this one. This one also checks source locations that an answer only passes by, and where their groups
// end, so it finds more damage.
func TestDamageAsCommand(t *testing.T) {
	program := command(t)
	random := rand.New(rand.NewPCG(4, 5))
	answers, errorCount, stricter := 0, 0, 0
	for _, name := range []string{"icf-1.symdex", "made-up-1.symdex", "readable-names-1.symdex"} {
		original := goldenFile(t, name)
		intact, err := Open(original)
		if err != nil {
			t.Fatal(err)
		}
		offsets := someOffsets(intact, 60)
		for range mutants {
			data := slices.Clone(original)
			for range 1 + random.IntN(3) {
				data[headerSize+random.IntN(len(data)-headerSize)] ^= 1 << random.IntN(8)
			}
			repair(data)
			index, err := Open(data)
			path := filepath.Join(t.TempDir(), intact.Metadata().ID.String()+".symdex")
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			theirs := askCommand(t, program, path, offsets)
			if err != nil || len(theirs) != len(offsets) {
				if err == nil || len(theirs) == len(offsets) && !slices.ContainsFunc(theirs, isError) {
					t.Errorf("%s: opening gives %v, and the command %d answers", path, err, len(theirs))
				}
				continue
			}
			scratch := &Scratch{}
			for i, offset := range offsets {
				ours, want := describe(t, index, offset, Statement, scratch), theirs[i].describe()
				if answers++; want == "error damaged" {
					errorCount++
				}
				if ours == "error damaged" && want != ours {
					stricter++
				} else if ours != want {
					t.Errorf("%s: at %#x is\n%s\ninstead of\n%s", path, offset, ours, want)
					break
				}
			}
		}
	}
	t.Logf("%d answers, %d of them damage, and %d only for this reader", answers, errorCount, stricter)
	if errorCount == 0 || stricter > errorCount/2 {
		t.Error("the damage is not that of the other reader")
	}
}

// mutants is how many damaged files of each index are compared.
const mutants = 25

func isError(a commandAnswer) bool { return a.Error != nil }

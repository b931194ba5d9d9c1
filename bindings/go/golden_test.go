package symdex

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const golden = "../../testdata/golden/v1"

// The texts of the golden indexes have the answers of every range of both tables. This prints them with this reader and
// compares.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob(golden + "/*.symdex")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden indexes: %v", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			index, err := OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := index.Verify(); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(strings.TrimSuffix(path, ".symdex") + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			head, answers, _ := strings.Cut(string(text), " chunks ")
			_, answers, _ = strings.Cut(answers, "\n")
			if printed := printMetadata(index); !strings.HasPrefix(head, printed) {
				t.Errorf("the metadata is\n%s\ninstead of\n%s", printed, head)
			}
			rows := printUnwindRows(t, index)
			if !strings.HasPrefix(answers, rows) || strings.Contains(answers[len(rows):], "unwind ") {
				t.Errorf("the unwind rows are\n%s", rows)
			}
			lines := strings.Split(strings.TrimSuffix(answers[len(rows):], "\n"), "\n")
			compareAnswers(t, index, lines)
		})
	}
}

// compareAnswers compares the answers at the first byte of each range, and at the last one of dwarf, with the lines of a
// golden text.
func compareAnswers(t *testing.T, index *Index, lines []string) {
	ranges, table, scratch := 0, "", &Scratch{}
	for i := 0; i < len(lines); {
		from, to, isRange := strings.Cut(strings.TrimSpace(lines[i]), "..")
		if !isRange {
			table, _, _ = strings.Cut(lines[i], " chunk ")
			i++
			continue
		}
		first := i + 1
		for i = first; i < len(lines) && strings.HasPrefix(lines[i], "   "); i++ {
		}
		want := strings.ReplaceAll(strings.Join(lines[first:i], "\n"), `""`, "-")
		start, end := parseOffset(t, from), parseOffset(t, to)
		offsets := []uint64{start}
		if table == "dwarf" { // another range of dwarf can begin within one of symbol_table
			offsets = append(offsets, end-1)
		}
		for _, offset := range offsets {
			if got := printAnswers(t, index, offset, table == "symbol_table", scratch); got != want {
				t.Fatalf("at %#x is\n%s\ninstead of\n%s", offset, got, want)
			}
		}
		ranges++
	}
	if ranges == 0 {
		t.Error("the text has no ranges")
	}
}

func parseOffset(t *testing.T, text string) uint64 {
	offset, err := strconv.ParseUint(text, 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return offset
}

func TestLookupMany(t *testing.T) {
	index, err := OpenFile(golden + "/icf-1.symdex")
	if err != nil {
		t.Fatal(err)
	}
	// The first one again after another, and one without an answer.
	offsets := []uint64{0x370, 0x3eb, 0x370, 1 << 40}
	answers := index.LookupMany(offsets, Statement, &Scratch{})
	if len(answers) != len(offsets) || answers[3].Err != ErrNoAnswer {
		t.Fatal(answers)
	}
	for i, offset := range offsets[:3] {
		frames, err := index.Lookup(offset, Statement, &Scratch{})
		if err != nil || len(frames) == 0 || !slices.Equal(answers[i].Frames, frames) {
			t.Errorf("%#x: %v, %v", offset, answers[i], err)
		}
	}
}

func TestGrade(t *testing.T) {
	for _, c := range []struct {
		counts Counts
		grade  string
	}{
		{Counts{Units: 1}, "nothing"},
		{Counts{Symbols: 1}, "bounds"},
		{Counts{Functions: 1, Ranges: 1}, "bounds"},
		{Counts{Symbols: 1, Names: 1}, "names"},
		{Counts{Functions: 1, Names: 1, Files: 1}, "lines"},
	} {
		if m := (&Metadata{Counts: c.counts}); m.Grade() != c.grade {
			t.Errorf("%+v: found %s, expected %s", c.counts, m.Grade(), c.grade)
		}
	}
}

func printMetadata(index *Index) string {
	m := index.Metadata()
	executable, partial, textExec := []string{}, []string{}, "None"
	for _, r := range m.Executable {
		executable = append(executable, fmt.Sprintf("(%x, %x)", r.Start, r.End))
	}
	for _, p := range m.Partial {
		partial = append(partial, fmt.Sprint(p.Reason, p.Count))
	}
	segments := ""
	if m.Segments != nil {
		segments = fmt.Sprintf("segments %x\n", m.Segments)
	}
	if m.HasTextExecBase {
		textExec = fmt.Sprintf("Some(%#x)", m.TextExecBase)
	}
	return fmt.Sprintf("format 1 image %v %q\n"+
		"arch Arch { name: %q, cputype: %d, cpusubtype: %d } base %#x size %#x\n"+
		"executable [%s] __TEXT_EXEC %s\n%schunk span %#x\n"+
		"Counts { units: %d, functions: %d, ranges: %d, symbols: %d, names: %d, files: %d, "+
		"seen: Seen { functions: %d, inlined: %d, rows: %d, symbols: %d, functions_outside: %d, "+
		"symbols_outside: %d } }\n"+
		"partial [%s] builder %q\n",
		m.ID, m.ImageName, m.Arch.Name, m.Arch.CPUType, m.Arch.CPUSubtype, m.Base, m.ImageSize,
		strings.Join(executable, ", "), textExec, segments, m.ChunkSpan, m.Counts.Units, m.Counts.Functions, m.Counts.Ranges,
		m.Counts.Symbols, m.Counts.Names, m.Counts.Files, m.Counts.Seen.Functions, m.Counts.Seen.Inlined,
		m.Counts.Seen.Rows, m.Counts.Seen.Symbols, m.Counts.Seen.FunctionsOutside, m.Counts.Seen.SymbolsOutside,
		strings.Join(partial, ", "), m.Builder)
}

func printAnswers(t *testing.T, index *Index, offset uint64, aliases bool, s *Scratch) string {
	exact := printAnswer(t, index, offset, Exact, s)
	statement := printAnswer(t, index, offset, Statement, s)
	text := exact
	if aliases {
		text += printAliases(t, index, offset, s)
	}
	if exact != statement {
		text += "\n   statement\n" + statement
	}
	return text
}

// printAliases returns a line for each name but the first of the function that starts at an image offset.
func printAliases(t *testing.T, index *Index, start uint64, s *Scratch) (text string) {
	names, err := index.FunctionNames(start, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names[min(1, len(names)):] {
		text += "\n    alias " + quoteBytes(name)
	}
	return text
}

func printAnswer(t *testing.T, index *Index, offset uint64, policy LinePolicy, s *Scratch) string {
	frames, err := index.Lookup(offset, policy, s)
	if errors.Is(err, ErrNoAnswer) {
		return ""
	} else if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range frames {
		name := quoteBytes(f.Name)
		if f.Function != f.Name {
			name += " = " + quoteBytes(f.Function)
		}
		line := fmt.Sprintf("    %s %s:%s", name, quoteBytes(f.File), number(uint64(f.Line), f.HasLine))
		if f.HasFunctionStart {
			line += fmt.Sprintf(" function %#x", f.FunctionStart)
		} else {
			line += " function -"
		}
		line += " " + f.Table.String()
		if f.Inlined {
			line += " inlined"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func number(n uint64, ok bool) string {
	if !ok {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

// quoteBytes prints bytes as the golden texts do, but for empty strings, which this reader does not tell from none.
func quoteBytes(text string) string {
	if text == "" {
		return "-"
	}
	quoted := `"`
	for _, b := range []byte(text) {
		if b >= ' ' && b < 0x7f {
			quoted += string(rune(b))
		} else {
			quoted += fmt.Sprintf(`\x%02x`, b)
		}
	}
	return quoted + `"`
}

package symdex

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// answersOfEach is the number of answers that are compared for each index.
const answersOfEach = 10_000

// command returns the path of the symdex command, which SYMDEX_COMMAND names or cargo has built. Without it the test
// is skipped, or fails if SYMDEX_TEST_REQUIRE has "programs".
func command(t testing.TB) string {
	path := os.Getenv("SYMDEX_COMMAND")
	if path == "" {
		path = "../../target/debug/symdex"
	}
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		missing(t, "programs", fmt.Sprintf("there is no symdex command: %v; cargo build -p symdex-cli makes one", err))
	}
	return path
}

// missing skips the test with a reason, or fails it if what is missing is required.
func missing(t testing.TB, kind, reason string) {
	t.Helper()
	if strings.Contains(os.Getenv("SYMDEX_TEST_REQUIRE"), kind) {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// goProgram builds the example service, an ELF file with debug information, and returns its path.
func goProgram(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "build", "-o", path, "./examples/service")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return path
}

// buildIndexes builds the indexes of debug files with these options, and returns the paths of the index files.
func buildIndexes(t testing.TB, arguments ...string) []string {
	folder := t.TempDir()
	build := exec.Command(command(t), append([]string{"build", "--no-config", "-o", folder}, arguments...)...)
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	paths, err := filepath.Glob(folder + "/*.symdex")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no indexes were built: %v", err)
	}
	return paths
}

// The golden indexes, those of the debug files in testdata, of a program in Go, and the ones that SYMDEX_TEST_INDEXES
// names give the answers of the Rust reader.
func TestAnswersOfCommand(t *testing.T) {
	program := command(t)
	paths, err := filepath.Glob(golden + "/*.symdex")
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, buildIndexes(t, "../../testdata/dsyms", "../../testdata/elf", goProgram(t))...)
	paths = append(paths, filepath.SplitList(os.Getenv("SYMDEX_TEST_INDEXES"))...)
	answers := 0
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			index, err := OpenFile(path)
			if err != nil {
				t.Fatal(err)
			}
			offsets := randomOffsets(index)
			for _, policy := range []LinePolicy{Statement, Exact} {
				compareWithCommand(t, program, path, index, policy, offsets)
				answers += len(offsets)
			}
		})
	}
	t.Logf("%d answers of %d indexes", answers, len(paths))
}

// randomOffsets returns image offsets in the executable sections and just outside of them: all of them if they are few,
// else half as many as answers are wanted, because there are two policies.
func randomOffsets(index *Index) []uint64 {
	var offsets []uint64
	random := rand.New(rand.NewPCG(1, index.Metadata().ImageSize))
	total := uint64(0)
	for _, r := range index.Metadata().Executable {
		total += r.End - r.Start + 2
	}
	for _, r := range index.Metadata().Executable {
		size := r.End - r.Start + 2
		if total <= answersOfEach/2 {
			for i := range size {
				offsets = append(offsets, r.Start+i-min(1, r.Start))
			}
			continue
		}
		for range size * (answersOfEach / 2) / total {
			offsets = append(offsets, r.Start+random.Uint64N(size)-min(1, r.Start))
		}
	}
	return offsets
}

// commandAnswer is a line of lookup --json.
type commandAnswer struct {
	Frames []commandFrame `json:"functions"`
	Unwind *commandRow    `json:"unwind"`
	Error  *struct {
		Kind string `json:"kind"`
	} `json:"error"`
}

type commandFrame struct {
	Name          *string  `json:"name"`
	Function      *string  `json:"function"`
	File          *string  `json:"file"`
	Line          *uint32  `json:"line"`
	Inlined       bool     `json:"inlined"`
	FunctionStart *string  `json:"function_start"`
	Table         string   `json:"table"`
	Aliases       []string `json:"aliases"`
}

func compareWithCommand(t *testing.T, program, path string, index *Index, policy LinePolicy, offsets []uint64) {
	answers := askCommand(t, program, path, offsets, "--lines", policyName(policy))
	if len(answers) != len(offsets) {
		t.Fatalf("%d answers to %d questions", len(answers), len(offsets))
	}
	scratch := &Scratch{}
	for i, offset := range offsets {
		got, want := describe(t, index, offset, policy, scratch), answers[i].describe()
		if got != want {
			t.Fatalf("at %#x, policy %d, is\n%s\ninstead of\n%s", offset, policy, got, want)
		}
	}
}

func policyName(policy LinePolicy) string {
	return map[LinePolicy]string{Statement: "statement", Exact: "exact"}[policy]
}

// askCommand returns the answers of the command with these options. Exit codes for addresses without an answer are no
// error.
func askCommand(t testing.TB, program, path string, offsets []uint64, options ...string) []commandAnswer {
	lookup := exec.Command(program, append([]string{"lookup", path, "--json", "--no-config"}, options...)...)
	var questions, output bytes.Buffer
	for _, offset := range offsets {
		fmt.Fprintf(&questions, "%#x\n", offset)
	}
	lookup.Stdin, lookup.Stdout = &questions, &output
	if err := lookup.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	var answers []commandAnswer
	for decoder := json.NewDecoder(&output); decoder.More(); {
		var answer commandAnswer
		if err := decoder.Decode(&answer); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, answer)
	}
	return answers
}

func (a commandAnswer) describe() string {
	if a.Error != nil {
		return "error " + a.Error.Kind
	}
	lines := []string{}
	for _, f := range a.Frames {
		line, start := "-", "-"
		if f.Line != nil {
			line = fmt.Sprint(*f.Line)
		}
		if f.FunctionStart != nil {
			start = *f.FunctionStart
		}
		lines = append(lines, fmt.Sprintf("%q %q %s %s inlined %v %s %q",
			text(f.Name), text(f.File), line, start, f.Inlined, f.Table, f.Aliases))
	}
	return strings.Join(lines, "\n")
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// describe returns the answer of this reader in the same form.
func describe(t *testing.T, index *Index, offset uint64, policy LinePolicy, s *Scratch) string {
	frames, err := index.Lookup(offset, policy, s)
	if errors.Is(err, ErrNoAnswer) {
		return ""
	} else if err != nil {
		return "error " + kindOf(t, err)
	}
	lines := []string{}
	for _, f := range frames {
		start := "-"
		aliases := []string{}
		if f.HasFunctionStart {
			start = fmt.Sprintf("%#x", f.FunctionStart)
		}
		if f.HasFunctionStart && !f.Inlined {
			names, err := index.FunctionNames(f.FunctionStart, s)
			if err != nil {
				return "error " + kindOf(t, err)
			}
			// The command lists no other name if the symbol table has only one.
			if len(names) > 1 {
				aliases = slices.DeleteFunc(names, func(name string) bool { return name == f.Name })
				for i := range aliases {
					aliases[i] = string([]rune(aliases[i])) // as JSON has it
				}
			}
		}
		lines = append(lines, fmt.Sprintf("%q %q %s %s inlined %v %s %q", string([]rune(f.Name)),
			string([]rune(f.File)), number(uint64(f.Line), f.HasLine), start, f.Inlined, f.Table, aliases))
	}
	return strings.Join(lines, "\n")
}

// kindOf returns the word of the command for an error.
func kindOf(t *testing.T, err error) string {
	switch {
	case errors.As(err, new(*DamagedError)):
		return "damaged"
	case errors.As(err, new(*UnsupportedError)):
		return "unsupported"
	}
	t.Errorf("an error of an unexpected type: %v", err)
	return ""
}

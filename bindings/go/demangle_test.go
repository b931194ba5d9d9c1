package symdex

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// demangling is a program outside of this module, which prints each name of an index as stored and as demangled.
const demangling = `package main

import (
	"fmt"
	"os"

	"github.com/ianlancetaylor/demangle"
	"symdex"
)

func main() {
	options := symdex.Options{Demangle: func(name string) string { return demangle.Filter(name) }}
	for _, path := range os.Args[1:] {
		index, err := options.OpenFile(path)
		if err != nil {
			panic(err)
		}
		scratch, seen := &symdex.Scratch{}, map[string]bool{}
		for _, r := range index.Metadata().Executable {
			for offset := r.Start; offset < r.End; offset++ {
				frames, _ := index.Lookup(offset, symdex.Statement, scratch)
				for _, f := range frames {
					if !seen[f.Name] {
						fmt.Printf("%s\t%s\n", f.Name, f.Function)
					}
					seen[f.Name] = true
				}
			}
		}
	}
}
`

// withDemangler returns the path of the program [demangling]. Its demangler is the copy of the module that the Go
// distribution has for its own tools, so nothing is fetched.
func withDemangler(t *testing.T) string {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(strings.TrimSpace(string(root)), "src/cmd/vendor/github.com/ianlancetaylor/demangle")
	if _, err := os.Stat(copied); err != nil {
		missing(t, "programs", "the Go distribution has no demangler: "+err.Error())
	}
	folder := t.TempDir()
	module := filepath.Join(folder, "demangle")
	if err := os.CopyFS(module, os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		"demangle/go.mod": "module github.com/ianlancetaylor/demangle\n\ngo 1.24\n",
		"main.go":         demangling,
		"go.mod": "module demangling\n\ngo 1.24\n\nrequire (\n\tsymdex v0.0.0\n" +
			"\tgithub.com/ianlancetaylor/demangle v0.0.0\n)\n\n" +
			"replace symdex => " + here + "\n\nreplace github.com/ianlancetaylor/demangle => ./demangle\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-o", "program", ".")
	build.Dir = folder
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return filepath.Join(folder, "program")
}

// The demangler that the README names makes the names of C++ readable, in the words of the command. Spaces differ: it
// prints A<B<int> >. It leaves the names of stubs, such as _Z1fv@plt, as they are.
func TestNamesOfDemangleModule(t *testing.T) {
	paths := buildIndexes(t, "../../testdata/dsyms/cxx.dSYM", "../../testdata/elf/gcc-parts.so")
	printed, err := exec.Command(withDemangler(t), paths...).Output()
	if err != nil {
		t.Fatal(err)
	}
	expected := map[string]string{}
	for _, path := range paths {
		index, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, answer := range askCommand(t, command(t), path, randomOffsets(index)) {
			for _, f := range answer.Frames {
				expected[text(f.Name)] = text(f.Function)
			}
		}
	}
	mangled, same := 0, 0
	for line := range strings.Lines(string(printed)) {
		name, function, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !strings.HasPrefix(name, "_Z") || strings.HasSuffix(name, "@plt") {
			continue
		}
		mangled++
		if strings.HasPrefix(function, "_Z") {
			t.Errorf("%s is not demangled", name)
		}
		if strings.ReplaceAll(function, " ", "") == strings.ReplaceAll(expected[name], " ", "") {
			same++
		} else {
			t.Logf("%s is\n%s, and for the command\n%s", name, function, expected[name])
		}
	}
	t.Logf("%d of %d names are the same but for spaces", same, mangled)
	if mangled < 30 || same < mangled*9/10 {
		t.Errorf("only %d of %d names are the same", same, mangled)
	}
}

package symdex

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func goldenFile(t testing.TB, name string) []byte {
	data, err := os.ReadFile(golden + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestFindFS(t *testing.T) {
	flat, fanned := goldenFile(t, "icf-1.symdex"), goldenFile(t, "plain-1.symdex")
	folder := fstest.MapFS{
		"4c4c44ca55553144a1d690c32d816e24.symdex":    {Data: flat},
		"4c/4c4c444e55553144a1e5129c2dc95135.symdex": {Data: fanned},
		"4c/4c4c444e55553144a1e5129c2dc95136.symdex": {Data: fanned},
		"h-/h-00ff.symdex":                           {Data: []byte("(\xb5/\xfd, compressed")},
	}
	for text, want := range map[string]error{
		"4c4c44ca55553144a1d690c32d816e24":     nil,
		"4C4C444E-5555-3144-A1E5-129C2DC95135": nil,
		"4c4c444e55553144a1e5129c2dc95136":     new(DamagedError), // the index of another image
		"4c4c444e55553144a1e5129c2dc95137":     fs.ErrNotExist,
		"h-00FF":                               ErrCompressed,
	} {
		id, err := ParseImageID(text)
		if err != nil {
			t.Fatal(err)
		}
		index, err := FindFS(folder, id)
		switch {
		case want == nil:
			if err != nil || index.Metadata().ID != id {
				t.Errorf("%s: %v", text, err)
			}
		case errors.As(want, new(*DamagedError)):
			if !errors.As(err, new(*DamagedError)) {
				t.Errorf("%s: %v", text, err)
			}
		case !errors.Is(err, want):
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestImageIDs(t *testing.T) {
	for text, want := range map[string]string{
		"4C4C444E-5555-3144-A1E5-129C2DC95135": "4c4c444e55553144a1e5129c2dc95135",
		"H-AB":                                 "h-ab",
		"":                                     "",
		"abc":                                  "",
		"xy":                                   "",
		strings.Repeat("ab", 33):               "",
	} {
		id, err := ParseImageID(text)
		if want == "" {
			if err == nil {
				t.Errorf("%q is an id", text)
			}
		} else if id.String() != want {
			t.Errorf("%q is %v: %v", text, id, err)
		}
	}
}

func TestZstdOption(t *testing.T) {
	index := goldenFile(t, "icf-1.symdex")
	compressed := append([]byte(zstdMagic), index...)
	decode := func(data []byte) ([]byte, error) { return bytes.TrimPrefix(data, []byte(zstdMagic)), nil }
	if _, err := (Options{Zstd: decode}).Open(compressed); err != nil {
		t.Error(err)
	}
	if _, err := Open(compressed); err != ErrCompressed {
		t.Error(err)
	}
	failure := errors.New("no zstd")
	fail := func([]byte) ([]byte, error) { return nil, failure }
	if _, err := (Options{Zstd: fail}).Open(compressed); err != failure {
		t.Error(err)
	}
}

func TestDemangleOption(t *testing.T) {
	calls := 0
	demangle := func(name string) string {
		calls++
		return strings.ToUpper(name)
	}
	index, err := Options{Demangle: demangle}.Open(goldenFile(t, "icf-1.symdex"))
	if err != nil {
		t.Fatal(err)
	}
	scratch := &Scratch{}
	for offset := uint64(0x3e8); offset < 0x40c; offset++ {
		frames, err := index.Lookup(offset, Statement, scratch)
		if err != nil {
			t.Fatal(err)
		}
		if f := frames[len(frames)-1]; f.Name != "unused_too" || f.Function != "UNUSED_TOO" {
			t.Errorf("at %#x: %q, %q", offset, f.Name, f.Function)
		}
	}
	if calls != 2 {
		t.Errorf("two names were demangled %d times", calls)
	}
	frames, err := index.Lookup(0x7bc, Statement, scratch) // of the symbol table
	if err != nil || frames[0].Function != "PLAIN_ENTRY" {
		t.Errorf("%+v, %v", frames, err)
	}
}

func TestFrameAddresses(t *testing.T) {
	arm64, armv7 := Arch{Name: "arm64", CPUType: 0x100000c}, Arch{Name: "armv7", CPUType: 12, CPUSubtype: 9}
	for _, c := range []struct {
		address FrameAddress
		arch    Arch
		want    uint64
		ok      bool
	}{
		{InstructionPointer(0x1010), arm64, 0x10, true},
		{ReturnAddress(0x1010), arm64, 0xf, true},
		{ReturnAddress(0x1011), arm64, 0x10, true}, // a continuation of Swift's async functions
		{ReturnAddress(0x1011), armv7, 0xf, true},
		{ReturnAddress(0x1010), armv7, 0xf, true},
		{InstructionPointer(0x1000), arm64, 0, true},
		{ReturnAddress(0x1000), arm64, 0, false},
		{ReturnAddress(0), arm64, 0, false},
		{InstructionPointer(0xfff), arm64, 0, false},
	} {
		if got, ok := c.address.ImageOffset(0x1000, c.arch); ok != c.ok || ok && got != c.want {
			t.Errorf("%+v in %s: %#x, %v", c.address, c.arch.Name, got, ok)
		}
	}
}

package symdex

import (
	"bytes"
	"encoding/hex"
	"errors"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// documentBytes returns the bytes of the dump in FORMAT.md after the comment that begins it.
func documentBytes(t testing.TB, begin string) []byte {
	document, err := os.ReadFile("../../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, dump, found := strings.Cut(string(document), "<!-- "+begin)
	if !found {
		t.Fatalf("FORMAT.md does not have %q", begin)
	}
	dump, _, _ = strings.Cut(dump, "<!--")
	var data []byte
	line := regexp.MustCompile(`(?m)^[0-9a-f]{4}  ((?:[0-9a-f]{2} ?)+|(\d+) zero bytes)(?:  |$)`)
	for _, match := range line.FindAllStringSubmatch(dump, -1) {
		if match[2] != "" {
			zeros, err := strconv.Atoi(match[2])
			if err != nil {
				t.Fatal(err)
			}
			data = append(data, make([]byte, zeros)...)
			continue
		}
		bytes, err := hex.DecodeString(strings.ReplaceAll(match[1], " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, bytes...)
	}
	return data
}

func documentIndex(t testing.TB) []byte { return documentBytes(t, "the dump begins") }

// The index of FORMAT.md with the readable names there.
func TestDocumentReadableNames(t *testing.T) {
	index, section := documentIndex(t), documentBytes(t, "the readable names begin")
	end := len(index)
	data := slices.Concat(index, section)
	data[24] = 1
	repair(data)
	if !bytes.Equal(data[end:end+len(section)], section) {
		t.Error("the checksum of the readable names is another one")
	}
	opened, err := Options{Demangle: strings.ToUpper}.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Verify(); err != nil {
		t.Error(err)
	}
	for offset, want := range map[uint64]string{0x100: "outer", 0x140: "plain()"} {
		frames, err := opened.Lookup(offset, Exact, &Scratch{})
		if err != nil || frames[0].Function != want {
			t.Errorf("at %#x: %+v, %v", offset, frames, err)
		}
	}
	data[end+len(section)-1] ^= 1
	if opened, err = Open(data); err == nil {
		err = opened.Verify()
	}
	if !errors.As(err, new(*DamagedError)) {
		t.Errorf("a wrong checksum: %v", err)
	}
}

func TestDocument(t *testing.T) {
	index, err := Open(documentIndex(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := index.Verify(); err != nil {
		t.Fatal(err)
	}
	scratch := &Scratch{}
	for offset, want := range map[uint64]string{
		0x100: `    "outer" "/src/t.c":13 function 0x100 dwarf`,
		0x110: `    "leaf" "/src/t.c":5 function 0x100 dwarf inlined` + "\n" +
			`    "mid" "/src/t.c":8 function 0x100 dwarf inlined` + "\n" + `    "outer" "/src/t.c":14 function 0x100 dwarf`,
		0x118: `    "leaf" "/src/t.c":0 function 0x100 dwarf inlined` + "\n" +
			`    "mid" "/src/t.c":8 function 0x100 dwarf inlined` + "\n" + `    "outer" "/src/t.c":14 function 0x100 dwarf`,
		0x140: `    "plain" -:- function 0x140 symbol_table` + "\n" + `    alias "a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_flat"`,
		0x160: "",
	} {
		got := printAnswer(t, index, offset, Exact, scratch)
		if offset == 0x140 {
			got += printAliases(t, index, offset, scratch)
		}
		if got != want {
			t.Errorf("at %#x is\n%s\ninstead of\n%s", offset, got, want)
		}
	}
}

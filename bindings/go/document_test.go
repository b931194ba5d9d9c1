package symdex

import (
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
)

// documentIndex returns the index that FORMAT.md prints, from the bytes of the dump there.
func documentIndex(t testing.TB) []byte {
	document, err := os.ReadFile("../../docs/FORMAT.md")
	if err != nil {
		t.Fatal(err)
	}
	var data []byte
	line := regexp.MustCompile(`(?m)^[0-9a-f]{4}  (28 zero bytes|(?:[0-9a-f]{2} ?)+)(?:  |$)`)
	for _, match := range line.FindAllStringSubmatch(string(document), -1) {
		if match[1] == "28 zero bytes" {
			data = append(data, make([]byte, 28)...)
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
		if got := printAnswer(t, index, offset, Exact, offset == 0x140, scratch); got != want {
			t.Errorf("at %#x is\n%s\ninstead of\n%s", offset, got, want)
		}
	}
}

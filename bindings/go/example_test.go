package symdex_test

import (
	"errors"
	"fmt"
	"log"
	"os"

	"symdex"
)

// A crash report states where the image was loaded, and the address of each frame.
func Example() {
	index, err := symdex.OpenFile("../../testdata/golden/v1/icf-1.symdex")
	if err != nil {
		log.Fatal(err)
	}
	var scratch symdex.Scratch // one for each goroutine
	const load = 0x10498c000
	offset, ok := symdex.ReturnAddress(0x10498c3ec).ImageOffset(load, index.Metadata().Arch)
	if !ok {
		log.Fatal("the address is below the image")
	}
	frames, err := index.Lookup(offset, symdex.Statement, &scratch)
	if errors.Is(err, symdex.ErrNoAnswer) {
		fmt.Println("the image has no function there")
	} else if err != nil {
		log.Fatal(err)
	}
	for _, f := range frames {
		fmt.Printf("%s at %s:%d, inlined: %v\n", f.Name, f.File, f.Line, f.Inlined)
	}
	// Output:
	// cell at /src/symdex/layout/../inline/grid.h:9, inlined: true
	// unused_too at /src/symdex/layout/fold.c:26, inlined: false
}

// The linker folded three functions with the same code into one.
func ExampleIndex_FunctionNames() {
	index, err := symdex.OpenFile("../../testdata/golden/v1/icf-1.symdex")
	if err != nil {
		log.Fatal(err)
	}
	names, err := index.FunctionNames(0x370, &symdex.Scratch{})
	fmt.Println(names, err)
	// Output: [price_a price_b price_c] <nil>
}

// A folder of indexes, searched by the id that a report states.
func ExampleFindFS() {
	id, err := symdex.ParseImageID("4C4C44CA-5555-3144-A1D6-90C32D816E24")
	if err != nil {
		log.Fatal(err)
	}
	_, err = symdex.FindFS(os.DirFS("/var/empty"), id)
	fmt.Println(errors.Is(err, os.ErrNotExist))
	// Output: true
}

// Package symdex reads symdex indexes: small files that answer the addresses of one image, a linked binary of one
// architecture, with functions, inlined functions, source files and lines.
//
//	index, err := symdex.OpenFile("4c4c442755553144a19dbd913be790e0.symdex")
//	if err != nil {
//		return err
//	}
//	var scratch symdex.Scratch // one for each goroutine
//	address := symdex.ReturnAddress(0x1049902f0)
//	offset, ok := address.ImageOffset(0x10498c000, index.Metadata().Arch)
//	if !ok {
//		return errors.New("the address is below the image")
//	}
//	frames, err := index.Lookup(offset, symdex.Statement, &scratch)
//
// The package is written from the specification, docs/FORMAT.md, in pure Go with the standard library alone.
// An [Index] is opened in constant time and read in place. Every page of it is checked against its checksum before
// its first use, so damaged files lead to a [DamagedError], never to a panic or a wrong answer.
package symdex

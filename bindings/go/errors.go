package symdex

import (
	"errors"
	"fmt"
)

// ErrNoAnswer is the error of a lookup if the index knows nothing about the address. The index is intact: its image has
// no function there.
var ErrNoAnswer = errors.New("symdex: the index has no function at this address")

// ErrNoUnwindRow is the error of [Index.UnwindRow] if the code has no unwind information, or the index was built
// without unwind rows.
var ErrNoUnwindRow = errors.New("symdex: the index has no unwind row at this address")

// ErrNotIndex is the error of opening a file that does not begin like an index. It is an [*UnsupportedError].
var ErrNotIndex error = &UnsupportedError{}

// ErrCompressed is the error of opening an index that is compressed with zstd without [Options.Zstd].
var ErrCompressed = errors.New("symdex: the index is compressed with zstd, which the standard library cannot " +
	"read: unpack it first (zstd -d FILE), or set Options.Zstd to a decoder")

// A DamagedError says that bytes of an index are not what was written.
type DamagedError struct {
	// Part is the part of the index: "header", "metadata", "codes", "files", "names", "chunks", "readable names"
	// or "unwind rows".
	Part string
	// Problem is what was found.
	Problem string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("symdex: the index is damaged (%s: %s); build it again from its debug file", e.Part, e.Problem)
}

// An UnsupportedError says that an index is intact, but written for another reader, or that a file is no index.
type UnsupportedError struct {
	// Version is the version of the format of the index, and 0 in [ErrNotIndex].
	Version uint16
	// Features are the bits of incompatible features that this package does not know.
	Features uint64
}

func (e *UnsupportedError) Error() string {
	if e == ErrNotIndex {
		return "symdex: this is not an index: it begins with other bytes"
	}
	if e.Version != formatVersion {
		return fmt.Sprintf("symdex: the index has format version %d, and this package reads version %d; "+
			"update the package", e.Version, formatVersion)
	}
	return fmt.Sprintf("symdex: the index has the features %#x, which this package does not know; update the package",
		e.Features)
}

func damaged(part, format string, arguments ...any) error {
	return &DamagedError{Part: part, Problem: fmt.Sprintf(format, arguments...)}
}

package symdex

import (
	"encoding/binary"
	"math/bits"
)

const (
	readableCountSize = 4
	namesPerWord      = 64
	readableRowSize   = 12
)

// readableNames is the optional section of names as people read them: rows that say which names have one, and then the
// readable names as strings.
type readableNames struct{ stringTable }

// parse reads the head of the section of an index with this number of names.
func (r *readableNames) parse(names uint64) error {
	if err := r.check(0, readableCountSize); err != nil {
		return err
	}
	count := uint64(binary.BigEndian.Uint32(r.data))
	if count > maxStrings {
		return damaged(r.name, "there are %d readable names", count)
	}
	return r.parseFrom(readableCountSize+(names+namesPerWord-1)/namesPerWord*readableRowSize, count)
}

// number returns the number of the readable name of a name, which exists. The result is false if it has none.
func (r *readableNames) number(name uint64) (number uint64, ok bool, err error) {
	at := readableCountSize + name/namesPerWord*readableRowSize
	if err := r.check(at, at+readableRowSize); err != nil {
		return 0, false, err
	}
	before := binary.BigEndian.Uint32(r.data[at:])
	// The bit of the name comes first, after a shift.
	row, bit := binary.BigEndian.Uint64(r.data[at+4:]), name%namesPerWord
	if row<<bit>>63 == 0 {
		return 0, false, nil
	}
	return uint64(before) + uint64(bits.OnesCount64(row>>(namesPerWord-bit))), true, nil
}

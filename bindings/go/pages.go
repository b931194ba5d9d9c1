package symdex

import (
	"encoding/binary"
	"hash/crc32"
	"sync/atomic"
)

const (
	pageSize     = 512
	checksumSize = 4
)

// A section is a part of an index that is divided into pages. Each page is checked before the first read from it. The
// set of checked pages is the only state that goroutines share.
type section struct {
	name string
	// data begins with the section, and goes on to the end of the file, so that wider reads may go beyond the section.
	data []byte
	// size is the size of the section itself.
	size      uint64
	checksums []byte
	checked   []atomic.Uint32
	// place is the checksum of image id and number, a part of all checksums of the section.
	place uint32
}

// newSection returns the section with this number, whose checksums come first in checksums, and the other checksums.
func newSection(name string, number uint32, id ImageID, data []byte, size uint64, checksums []byte) (section, []byte) {
	pages := (size + pageSize - 1) / pageSize
	s := section{name: name, data: data, size: size, checksums: checksums[:pages*checksumSize]}
	s.checked = make([]atomic.Uint32, (pages+31)/32)
	s.place = placeChecksum(id, number)
	return s, checksums[pages*checksumSize:]
}

// check returns an error if a page with a byte from start to end, which is in the section, is damaged. Ranges that are
// empty or not in the section are damage, too.
func (s *section) check(start, end uint64) error {
	if start >= end || end > s.size {
		return damaged(s.name, "bytes %d to %d are not in the section, which has %d", start, end, s.size)
	}
	for page := start / pageSize; page <= (end-1)/pageSize; page++ {
		if s.checked[page/32].Load()&(1<<(page%32)) == 0 {
			if err := s.checkPage(page); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *section) checkPage(page uint64) error {
	if s.checksum(page) != binary.LittleEndian.Uint32(s.checksums[page*checksumSize:]) {
		return damaged(s.name, "page %d has another checksum", page)
	}
	s.checked[page/32].Or(1 << (page % 32))
	return nil
}

// checksum returns the right checksum of a page.
func (s *section) checksum(page uint64) uint32 {
	start := page * pageSize
	return crc32.ChecksumIEEE(s.data[start:min(start+pageSize, s.size)]) ^ s.place ^ uint32(page)
}

// placeChecksum returns the checksum of an image id and the number of a section.
func placeChecksum(id ImageID, number uint32) uint32 {
	var place [36]byte
	copy(place[:], id.bytes[:])
	binary.LittleEndian.PutUint32(place[32:], number)
	return crc32.ChecksumIEEE(place[:])
}

// metadataChecksum returns the right checksum of the fields of metadata.
func metadataChecksum(fields []byte, id ImageID) uint32 {
	return crc32.ChecksumIEEE(fields) ^ placeChecksum(id, 1)
}

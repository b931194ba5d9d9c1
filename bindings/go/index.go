package symdex

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"io/fs"
	"os"
	"sync/atomic"
)

const (
	formatVersion = 1
	headerSize    = 140
	// checksumsPart is the number of the checksums among the six parts of every index.
	checksumsPart = 3

	featureAliases = 1 << 0

	// The compatible features of these bits have an optional section, whose numbers follow each other.
	optionalBits     = 32
	firstOptional    = 9
	readableNamesBit = 0
	unwindRowsBit    = 1
)

const (
	magic     = "\x89SYMDEX\n"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// An Index answers the addresses of one image. Any number of goroutines can use it at the same time, each with a
// [Scratch] of its own.
type Index struct {
	data     []byte
	metadata *Metadata
	chunks   section
	codes    section
	code     codes
	// groupBits is the logarithm of the number of source locations in a group.
	groupBits uint
	// placesAt is the bit of the first place in the section of codes, and placeWidth the bits of a place.
	placesAt   uint64
	placeWidth uint
	names      stringTable
	files      stringTable
	// readable are the readable names, if the index has them.
	readable readableNames
	demangle func(string) string
	unwind   unwindSection
	// serial tells indexes apart in the caches of a Scratch.
	serial uint64
}

var indexes atomic.Uint64

// Options say how indexes are opened. The zero value opens index files as they are.
type Options struct {
	// Zstd decompresses a zstd frame. Stores keep indexes compressed. Without it, opening a compressed index fails with
	// ErrCompressed. The decoder has to limit its output.
	Zstd func(compressed []byte) ([]byte, error)
	// Demangle makes a linkage name readable, for Frame.Function, unless the index was built with readable names. It is
	// called from all goroutines that look up, once for each name that a Scratch does not remember, and returns names
	// that it does not know unchanged.
	Demangle func(linkageName string) string
}

// Open opens the index in data, which must not change as long as the index is used. Only the header, the metadata and
// the heads of the other parts are read.
//
// The error is a [*DamagedError], an [*UnsupportedError], [ErrCompressed] or [ErrNotIndex].
func Open(data []byte) (*Index, error) { return Options{}.Open(data) }

// OpenFile reads the index file at path into memory and opens it. Other errors than those of [Open] are those of
// [os.ReadFile].
func OpenFile(path string) (*Index, error) { return Options{}.OpenFile(path) }

// OpenFS reads the index file of this name into memory and opens it. Other errors than those of [Open] are those of
// [fs.ReadFile].
func OpenFS(fsys fs.FS, name string) (*Index, error) { return Options{}.OpenFS(fsys, name) }

// OpenFile is as the function [OpenFile].
func (o Options) OpenFile(path string) (*Index, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return o.Open(data)
}

// OpenFS is as the function [OpenFS].
func (o Options) OpenFS(fsys fs.FS, name string) (*Index, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, err
	}
	return o.Open(data)
}

// Open is as the function [Open]. An error of the decoder is returned unchanged.
func (o Options) Open(data []byte) (*Index, error) {
	if bytes.HasPrefix(data, []byte(zstdMagic)) {
		if o.Zstd == nil {
			return nil, ErrCompressed
		}
		decompressed, err := o.Zstd(data)
		if err != nil {
			return nil, err
		}
		data = decompressed
	}
	index, err := open(data)
	if err != nil {
		return nil, err
	}
	index.demangle = o.Demangle
	return index, nil
}

// Metadata returns what the index states about its image. It must not be modified.
func (ix *Index) Metadata() *Metadata { return ix.metadata }

// header has the parts of the header that the rest of the file is read with.
type header struct {
	id         ImageID
	compatible uint64
	sizes      [6]uint64
}

func open(data []byte) (*Index, error) {
	h, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	parts, optional, err := h.parts(data)
	if err != nil {
		return nil, err
	}
	metadata, codes, files, checksums, names, chunks := parts[0], parts[1], parts[2], parts[3], parts[4], parts[5]
	fields := data[metadata.Start:metadata.End]
	if len(fields) < checksumSize || metadataChecksum(fields[checksumSize:], h.id) != binary.LittleEndian.Uint32(fields) {
		return nil, damaged("metadata", "it has another checksum")
	}
	ix := &Index{data: data, serial: indexes.Add(1)}
	if ix.metadata, err = parseMetadata(fields[checksumSize:], h.id); err != nil {
		return nil, err
	}
	rest := data[checksums.Start:checksums.End]
	ix.codes, rest = newSection("codes", 2, h.id, data[codes.Start:], h.sizes[1], rest)
	ix.files.section, rest = newSection("files", 3, h.id, data[files.Start:], h.sizes[2], rest)
	ix.names.section, rest = newSection("names", 4, h.id, data[names.Start:], h.sizes[4], rest)
	ix.chunks, _ = newSection("chunks", 5, h.id, data[chunks.Start:], h.sizes[5], rest)
	if err := ix.parseCodes(); err != nil {
		return nil, err
	}
	if err := ix.names.parse(ix.metadata.Counts.Names); err != nil {
		return nil, err
	}
	if err := ix.files.parse(ix.metadata.Counts.Files); err != nil {
		return nil, err
	}
	if contents := optional[readableNamesBit]; contents.End > 0 {
		checksums := data[contents.End:]
		ix.readable.section, _ = newSection("readable names", firstOptional+readableNamesBit, h.id,
			data[contents.Start:], contents.End-contents.Start, checksums)
		if err := ix.readable.parse(ix.metadata.Counts.Names); err != nil {
			return nil, err
		}
	}
	if contents := optional[unwindRowsBit]; contents.End > 0 {
		checksums := data[contents.End:]
		ix.unwind.section, _ = newSection("unwind rows", firstOptional+unwindRowsBit, h.id,
			data[contents.Start:], contents.End-contents.Start, checksums)
	}
	return ix, nil
}

func parseHeader(data []byte) (*header, error) {
	if !bytes.HasPrefix(data, []byte(magic)) {
		return nil, ErrNotIndex
	}
	if len(data) < 12 {
		return nil, damaged("header", "the file ends after %d bytes", len(data))
	}
	version := binary.LittleEndian.Uint16(data[8:])
	size := int(binary.LittleEndian.Uint16(data[10:]))
	if size < 20 || size > len(data) {
		return nil, damaged("header", "it has %d bytes, and the file %d", size, len(data))
	}
	if crc32.ChecksumIEEE(data[:size-checksumSize]) != binary.LittleEndian.Uint32(data[size-checksumSize:]) {
		return nil, damaged("header", "it has another checksum")
	}
	if version != formatVersion {
		return nil, &UnsupportedError{Version: version}
	}
	if size != headerSize {
		return nil, damaged("header", "it has %d bytes, and %d are expected", size, headerSize)
	}
	if unknown := word(data, 16) &^ featureAliases; unknown != 0 {
		return nil, &UnsupportedError{Version: version, Features: unknown}
	}
	h := &header{id: ImageID{size: data[12], hash: data[13] == 1}, compatible: word(data, 24)}
	copy(h.id.bytes[:], data[32:64])
	if data[12] == 0 || data[12] > 32 || data[13] > 1 || len(bytes.Trim(data[32+data[12]:64], "\x00")) != 0 {
		return nil, damaged("header", "the image id is invalid")
	}
	for i := range h.sizes {
		h.sizes[i] = word(data, 72+8*i)
	}
	return h, nil
}

// parts returns where the parts after the header are, after a check of all sizes: those of every index, and the
// contents of the optional sections by their bits, whose checksums follow them.
func (h *header) parts(data []byte) (parts [6]Range, optional [optionalBits]Range, err error) {
	if stated := word(data, 64); stated != uint64(len(data)) {
		return parts, optional, damaged("header", "the file has %d bytes, and the header states %d", len(data), stated)
	}
	at := uint64(headerSize)
	pages := uint64(0)
	for i, size := range h.sizes {
		if size > uint64(len(data))-at {
			return parts, optional, damaged("header", "the parts are larger than the file")
		}
		parts[i] = Range{at, at + size}
		at += size
		if i != 0 && i != checksumsPart {
			pages += (size + pageSize - 1) / pageSize
		}
	}
	if h.sizes[checksumsPart] != pages*checksumSize {
		return parts, optional, damaged("header", "%d pages have %d bytes of checksums", pages, h.sizes[checksumsPart])
	}
	for bit := range optional {
		if h.compatible&(1<<bit) == 0 {
			continue
		}
		rest := uint64(len(data)) - at
		if rest < 8 || word(data, int(at)) > rest-8 {
			return parts, optional, damaged("header", "optional section %d is larger than the file", bit)
		}
		size := word(data, int(at))
		optional[bit] = Range{at + 8, at + 8 + size}
		at += 8 + size + (size+pageSize-1)/pageSize*checksumSize
		if at > uint64(len(data)) {
			return parts, optional, damaged("header", "optional section %d is larger than the file", bit)
		}
	}
	if at != uint64(len(data)) {
		return parts, optional, damaged("header", "the parts end at %d, and the file has %d bytes", at, len(data))
	}
	return parts, optional, nil
}

// Verify reads the whole index and compares every byte with its checksums. Lookups check what they read, so this is for
// indexes that come from elsewhere.
//
// The error is a [*DamagedError].
func (ix *Index) Verify() error {
	for _, s := range []*section{
		&ix.codes, &ix.chunks, &ix.names.section, &ix.files.section, &ix.readable.section, &ix.unwind.section,
	} {
		if s.size > 0 {
			if err := s.check(0, s.size); err != nil {
				return err
			}
		}
	}
	return nil
}

// word returns the number in the eight bytes from at on.
func word(data []byte, at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }

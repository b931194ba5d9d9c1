package symdex

import "encoding/binary"

const (
	contexts      = 35
	maxWordBits   = 9
	firstExtended = 128
	lastSymbol    = 209
	maxGroupBits  = 4
)

// Contexts of numbers; the ones in between are computed from these.
const (
	contextGap            = 0
	contextFirstFunction  = 1
	contextFunction       = 2
	contextHead           = 3
	contextLength         = 4
	contextCode           = 8
	contextRoot           = 20
	contextSibling        = 21
	contextCallee         = 22
	contextNextAfterNew   = 23
	contextNext           = 24
	contextName           = 25
	contextNameAfterKnown = 26
	contextID             = 27
	contextFile           = 28
	contextLineDifference = 29
	contextLine           = 30
	contextKnownLineSame  = 31
	contextKnownLineOther = 32
	contextOtherFile      = 33
	contextOtherLine      = 34
)

// noWord is the length in the entry of a context that does not occur. A number there is damage.
const noWord = 15

// A code is the prefix code of a context. Its table has an entry for each value of the bits that follow: the symbol,
// and in the low four bits the length of its code word.
type code struct {
	table []uint16
	shift uint
}

type codes [contexts]code

// bitReader reads the numbers of a chunk. Reading past the end is not an error at once: callers look at overrun.
type bitReader struct {
	// data goes on to the end of the file.
	data []byte
	// position and end are bits of data.
	position, end uint64
}

func (r *bitReader) overrun() bool { return r.position > r.end }

// number returns the next number in this code.
func (r *bitReader) number(c *code) uint64 {
	at := r.position >> 3
	if r.position > r.end {
		return 0
	}
	rest := bits64(r.data, at) << (r.position & 7)
	entry := c.table[rest>>c.shift]
	length := uint64(entry & 15)
	symbol := uint64(entry >> 4)
	if symbol < firstExtended {
		r.position += length
		return symbol
	}
	if length == noWord {
		r.position = r.end + 1
		return 0
	}
	extra := (symbol-firstExtended)/2 + 6
	r.position += length + extra
	return rest<<length>>(64-extra) + (2+symbol&1)<<extra
}

// bitsAt returns width bits of data from the bit at on; width is at most 57.
func bitsAt(data []byte, at uint64, width uint) uint64 {
	return bits64(data, at>>3) << (at & 7) >> (64 - width)
}

// bits64 returns the 64 bits of data from the byte at on, which is at most its length. Zeros follow the end of data.
func bits64(data []byte, at uint64) uint64 {
	if at+8 <= uint64(len(data)) {
		return binary.BigEndian.Uint64(data[at : at+8])
	}
	return tailBits(data[at:])
}

func tailBits(tail []byte) uint64 {
	var bytes [8]byte
	copy(bytes[:], tail)
	return binary.BigEndian.Uint64(bytes[:])
}

// unfold returns the signed number that a folded number stands for.
func unfold(folded uint64) int64 { return int64(folded>>1) ^ -int64(folded&1) }

// parseCodes reads the section of codes up to the places.
func (ix *Index) parseCodes() error {
	s := &ix.codes
	if err := s.check(0, 2); err != nil {
		return err
	}
	size := uint64(binary.LittleEndian.Uint16(s.data))
	end := 2 + size
	if err := s.check(0, end+2); err != nil {
		return err
	}
	rest := s.data[2:end]
	for i := range ix.code {
		var err error
		if ix.code[i], rest, err = parseCode(rest); err != nil {
			return err
		}
	}
	if len(rest) != 0 {
		return damaged("codes", "%d bytes follow the last code", len(rest))
	}
	ix.groupBits, ix.placeWidth = uint(s.data[end]), uint(s.data[end+1])
	ix.placesAt = 8 * (end + 2)
	tables := &ix.metadata.tables
	places := tables[Dwarf].count + tables[SymbolTable].count + 1
	if ix.groupBits > maxGroupBits || !fitsRow(ix.placeWidth) ||
		(ix.placesAt+places*uint64(ix.placeWidth)+7)/8 != s.size {
		return damaged("codes", "%d places of %d bits do not have the size of the section", places, ix.placeWidth)
	}
	return nil
}

// fitsRow returns whether a column of rows can have this width.
func fitsRow(width uint) bool { return width <= 57 }

var errInvalidCode = damaged("codes", "a prefix code is invalid")

// parseCode reads the code of a context, and returns it with the bytes after it.
func parseCode(data []byte) (code, []byte, error) {
	if len(data) == 0 {
		return code{}, nil, errInvalidCode
	}
	symbols := int(data[0])
	data = data[1:]
	if symbols == 0 {
		return code{table: []uint16{lastSymbol<<4 | noWord}, shift: 64}, data, nil
	}
	var lengths [maxWordBits + 1]int
	longest := 0
	if symbols > 1 {
		if len(data) < maxWordBits {
			return code{}, nil, errInvalidCode
		}
		total, used := 0, 0
		for length := 1; length <= maxWordBits; length++ {
			lengths[length] = int(data[length-1])
			total += lengths[length]
			used += lengths[length] << (maxWordBits - length)
			if lengths[length] > 0 {
				longest = length
			}
		}
		if total != symbols || used != 1<<maxWordBits {
			return code{}, nil, errInvalidCode
		}
		data = data[maxWordBits:]
	} else {
		lengths[0] = 1
	}
	if len(data) < symbols {
		return code{}, nil, errInvalidCode
	}
	table := make([]uint16, 1<<longest)
	next, filled := 0, 0
	for length := 0; length <= longest; length++ {
		for range lengths[length] {
			if data[next] > lastSymbol {
				return code{}, nil, errInvalidCode
			}
			entry := uint16(data[next])<<4 | uint16(length)
			words := table[filled : filled+1<<(longest-length)]
			for i := range words {
				words[i] = entry
			}
			filled += len(words)
			next++
		}
	}
	return code{table: table, shift: uint(64 - longest)}, data[symbols:], nil
}

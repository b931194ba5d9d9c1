package symdex

import "sort"

// A Table is one of the two tables of ranges of an index.
type Table uint8

const (
	// Dwarf has the functions, files and lines of the debug information.
	Dwarf Table = iota
	// SymbolTable has the functions of the symbol table, without files and lines.
	SymbolTable
)

func (t Table) String() string {
	if t == Dwarf {
		return "dwarf"
	}
	return "symbol_table"
}

const maxLocations = 4194304

// A chunk is the head of a chunk: where its parts are. Positions of rows are bits of the section of chunks, and the
// others are bytes.
type chunk struct {
	table Table
	// start is the image offset at which the chunk starts, and span its number of bytes.
	start, span uint64
	// place is where the chunk begins.
	place                      uint64
	blocks, locations          uint64
	blockRows, groupRows       uint64
	blockWidths                [3]uint
	groupWidths                [2]uint
	blocksAt, sourcesAt, end   uint64
	blockRowSize, groupRowSize uint64
}

// chunkOf returns the chunk of a table with an image offset. The result is false if the chunk is empty.
func (ix *Index) chunkOf(table Table, offset uint64) (c chunk, ok bool, err error) {
	span := uint64(ix.metadata.ChunkSpan)
	chunks := ix.metadata.tables[table]
	number := offset/span - chunks.first
	if offset/span < chunks.first || number >= chunks.count {
		return c, false, nil
	}
	if table == SymbolTable {
		number += ix.metadata.tables[Dwarf].count
	}
	bit := ix.placesAt + number*uint64(ix.placeWidth)
	if ix.placeWidth == 0 {
		return c, false, nil
	}
	if err := ix.codes.check(bit/8, (bit+2*uint64(ix.placeWidth)+7)/8); err != nil {
		return c, false, err
	}
	start := bitsAt(ix.codes.data, bit, ix.placeWidth)
	end := bitsAt(ix.codes.data, bit+uint64(ix.placeWidth), ix.placeWidth)
	if start > end || end > ix.chunks.size {
		return c, false, damaged("codes", "a chunk is at %d to %d", start, end)
	}
	if start == end {
		return c, false, nil
	}
	c = chunk{table: table, start: offset / span * span, span: span, place: start, end: end}
	return c, true, ix.parseChunk(&c)
}

// parseChunk reads the head of the chunk from c.place to c.end.
func (ix *Index) parseChunk(c *chunk) error {
	headEnd := min(c.end, c.place+3*maxVarint+5)
	if err := ix.chunks.check(c.place, headEnd); err != nil {
		return err
	}
	head := fields{rest: ix.chunks.data[c.place:headEnd]}
	c.blocks, c.locations = head.varint(), head.varint()
	blocksSize, fit := head.varint(), true
	for i := range c.blockWidths {
		c.blockWidths[i] = uint(head.u8())
		c.blockRowSize += uint64(c.blockWidths[i])
		fit = fit && fitsRow(c.blockWidths[i])
	}
	for i := range c.groupWidths {
		c.groupWidths[i] = uint(head.u8())
		c.groupRowSize += uint64(c.groupWidths[i])
		fit = fit && fitsRow(c.groupWidths[i])
	}
	if head.failed || !fit || c.blocks == 0 || c.blocks > c.span || c.locations > maxLocations ||
		blocksSize > ix.chunks.size {
		return damaged("chunks", "the head of a chunk is invalid")
	}
	blockRows := headEnd - uint64(len(head.rest))
	groups := (c.locations + 1<<ix.groupBits - 1) >> ix.groupBits
	groupRows := blockRows + (c.blocks*c.blockRowSize+7)/8
	c.blocksAt = groupRows + (groups*c.groupRowSize+7)/8
	c.sourcesAt = c.blocksAt + blocksSize
	c.blockRows, c.groupRows = 8*blockRows, 8*groupRows
	if c.sourcesAt > c.end {
		return damaged("chunks", "a chunk is too small for its parts")
	}
	return nil
}

// A blockPlace says which block of a chunk is meant.
type blockPlace struct {
	// start and end are image offsets.
	start, end uint64
	// from and to are bits of the section of chunks.
	from, to uint64
	// unused is the first source location that no block before uses.
	unused uint64
}

// blockRow returns the start of a block in the chunk, in bytes, its position in the blocks, in bits, and its first
// unused source location. After the last block come the ends of all.
func (ix *Index) blockRow(c *chunk, block uint64) (start, position, unused uint64, err error) {
	if block == c.blocks {
		return c.span, 8 * (c.sourcesAt - c.blocksAt), c.locations, nil
	}
	bit := c.blockRows + block*c.blockRowSize
	if c.blockRowSize > 0 {
		if err := ix.chunks.check(bit/8, (bit+c.blockRowSize+7)/8); err != nil {
			return 0, 0, 0, err
		}
	}
	start = bitsAt(ix.chunks.data, bit, c.blockWidths[0])
	bit += uint64(c.blockWidths[0])
	position = bitsAt(ix.chunks.data, bit, c.blockWidths[1])
	bit += uint64(c.blockWidths[1])
	return start, position, bitsAt(ix.chunks.data, bit, c.blockWidths[2]), nil
}

// blockOf returns the block of a chunk with an image offset, which is in the chunk.
func (ix *Index) blockOf(c *chunk, offset uint64) (place blockPlace, err error) {
	within := offset - c.start
	// The first block that starts after the offset.
	next := sort.Search(int(c.blocks), func(block int) bool {
		start, _, _, rowErr := ix.blockRow(c, uint64(block))
		if rowErr != nil {
			err = rowErr
		}
		return start > within
	})
	if err != nil {
		return place, err
	}
	if next == 0 {
		return place, damaged("chunks", "the first block does not start with its chunk")
	}
	start, from, unused, err := ix.blockRow(c, uint64(next-1))
	if err != nil {
		return place, err
	}
	end, to, _, err := ix.blockRow(c, uint64(next))
	if err != nil {
		return place, err
	}
	bitsBefore := 8 * c.blocksAt
	if end > c.span || from > to || to > 8*(c.sourcesAt-c.blocksAt) || unused > c.locations {
		return place, damaged("chunks", "the row of a block is invalid")
	}
	place = blockPlace{c.start + start, c.start + end, bitsBefore + from, bitsBefore + to, unused}
	if from < to {
		err = ix.chunks.check(place.from/8, (place.to+7)/8)
	}
	return place, err
}

package symdex

import (
	"math"
	"math/bits"
	"sync"
)

const (
	maxUnwindRanges = 255
	maxUnwindHead   = 8*maxVarint + 9
)

// Contexts of the numbers of unwind rows. Those of steps are the first ones, by the number of steps to choose from.
const (
	contextMostSteps      = 8
	contextRule           = 9
	contextLengthAfterGap = 10
	contextUnwindLength   = 11
	unwindContexts        = 12
)

// stepContext returns the context of the number of a step if there are this many to choose from.
func stepContext(steps uint64) int { return min(bits.Len64(steps), contextMostSteps) }

// How a step states the length of a range: it follows, or the range ends at the next multiple of 16, or the length
// plus 1.
const (
	stepLengthFollows = 0
	stepLengthAligned = 1
)

// unwindSection is the optional section of unwind rows. Its head is read when it is first used.
type unwindSection struct {
	section
	once   sync.Once
	failed error

	code [unwindContexts]code
	// blocks has for each block the start of its first range, and its position in the blocks, in bits.
	blocks unwindTable
	// end is the end of the last range.
	end uint64
	// rules has for each rule its first step, its layout plus 1, which is 0 in gaps, the register of the CFA plus 1,
	// which is 0 if the layout states the CFA, and what is added to the register, folded.
	rules unwindTable
	// steps has for each step its rule and its length.
	steps unwindTable
	// layouts has for each layout its position in the layouts, in bytes.
	layouts unwindTable
	// layoutBytes and blockBytes are where the layouts and the blocks are in the section.
	layoutBytes, blockBytes Range
	// mask has the bits of a register.
	mask uint64
}

// unwindTable is a table of rows in the section.
type unwindTable struct {
	// count is the number of rows, and place the first byte of the table.
	count, place uint64
	widths       [4]uint
	rowSize      uint64
}

// readWidths reads the widths of so many columns.
func (t *unwindTable) readWidths(head *fields, columns int) {
	for i := range t.widths[:columns] {
		t.widths[i] = uint(head.u8())
		t.rowSize += uint64(t.widths[i])
		head.failed = head.failed || !fitsRow(t.widths[i])
	}
}

// row returns the columns of a row, which exists.
func (t *unwindTable) row(s *section, row uint64) (columns [4]uint64, err error) {
	if t.rowSize == 0 {
		return columns, nil
	}
	bit := 8*t.place + row*t.rowSize
	if err := s.check(bit/8, (bit+t.rowSize+7)/8); err != nil {
		return columns, err
	}
	for i, width := range t.widths {
		columns[i] = bitsAt(s.data, bit, width)
		bit += uint64(width)
	}
	return columns, nil
}

// pair returns the columns of a row, which exists, and the first two columns of the next row. After the last row, these
// are the given ends.
func (t *unwindTable) pair(s *section, row uint64, ends [2]uint64) (columns, next [4]uint64, err error) {
	if columns, err = t.row(s, row); err != nil {
		return columns, next, err
	}
	if row+1 == t.count {
		return columns, [4]uint64{ends[0], ends[1]}, nil
	}
	next, err = t.row(s, row+1)
	return columns, next, err
}

// unwindRows returns the section of unwind rows after its head was read.
func (ix *Index) unwindRows() (*unwindSection, error) {
	u := &ix.unwind
	if u.size == 0 {
		return nil, ErrNoUnwindRow
	}
	u.once.Do(func() {
		u.mask = math.MaxUint64
		if ix.metadata.Arch.has32BitRegisters() {
			u.mask = math.MaxUint32
		}
		u.failed = u.parse()
	})
	return u, u.failed
}

// parse reads the head of the section.
func (u *unwindSection) parse() error {
	headEnd := min(u.size, maxUnwindHead)
	if err := u.check(0, headEnd); err != nil {
		return err
	}
	head := fields{rest: u.data[:headEnd]}
	u.blocks.count, u.end = head.varint(), head.varint()
	u.rules.count, u.steps.count, u.layouts.count = head.varint(), head.varint(), head.varint()
	codesSize, layoutsSize, blocksSize := head.varint(), head.varint(), head.varint()
	u.blocks.readWidths(&head, 2)
	u.rules.readWidths(&head, 4)
	u.steps.readWidths(&head, 2)
	u.layouts.readWidths(&head, 1)
	at := headEnd - uint64(len(head.rest))
	if head.failed || codesSize > u.size-at || layoutsSize > u.size || blocksSize > u.size {
		return damaged(u.name, "the head is invalid")
	}
	codes := Range{at, at + codesSize}
	at += codesSize
	for _, table := range [...]*unwindTable{&u.blocks, &u.rules, &u.steps, &u.layouts} {
		// A row can have no bits, so the size of the section does not bound the number of rows.
		if table.count > 8*u.size {
			return damaged(u.name, "a table has %d rows", table.count)
		}
		table.place = at
		at += (table.count*table.rowSize + 7) / 8
	}
	u.layoutBytes = Range{at, at + layoutsSize}
	u.blockBytes = Range{at + layoutsSize, at + layoutsSize + blocksSize}
	if u.blockBytes.End != u.size {
		return damaged(u.name, "the parts do not have the size of the section")
	}
	return u.parseCodes(codes)
}

// parseCodes reads the codes, which are at this place.
func (u *unwindSection) parseCodes(place Range) error {
	if err := u.check(place.Start, place.End); err != nil {
		return err
	}
	rest := u.data[place.Start:place.End]
	for i := range u.code {
		var err error
		if u.code[i], rest, err = parseCode(rest); err != nil {
			return damaged(u.name, "a prefix code is invalid")
		}
	}
	if len(rest) != 0 {
		return damaged(u.name, "%d bytes follow the last code", len(rest))
	}
	return nil
}

// blockOf returns the last block that starts at an image offset or before. The result is false if there is none.
func (u *unwindSection) blockOf(offset uint64) (block uint64, ok bool, err error) {
	low, high := uint64(0), u.blocks.count
	for low < high {
		middle := (low + high) / 2
		columns, err := u.blocks.row(&u.section, middle)
		if err != nil {
			return 0, false, err
		}
		if columns[0] <= offset {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low - 1, low > 0, nil
}

// unwindRanges are the ranges of a block, read one after the other.
type unwindRanges struct {
	section *unwindSection
	bits    bitReader
	// at is where the next range starts, and end where the last one ends.
	at, end uint64
	// rule is that of the range before. The first range follows a gap.
	rule uint64
	// count is the number of ranges that were read.
	count int
	// isLast says that the block is the last one, which is padded to whole bytes.
	isLast bool
}

// ranges returns the ranges of a block, which exists.
func (u *unwindSection) ranges(block uint64) (unwindRanges, error) {
	size := u.blockBytes.End - u.blockBytes.Start
	columns, next, err := u.blocks.pair(&u.section, block, [2]uint64{u.end, 8 * size})
	if err != nil {
		return unwindRanges{}, err
	}
	start, from, end, to := columns[0], columns[1], next[0], next[1]
	if start >= end || from > to || to > 8*size {
		return unwindRanges{}, damaged(u.name, "block %d is outside of the section", block)
	}
	from, to = 8*u.blockBytes.Start+from, 8*u.blockBytes.Start+to
	if from < to {
		if err := u.check(from/8, (to+7)/8); err != nil {
			return unwindRanges{}, err
		}
	}
	bits := bitReader{data: u.data, position: from, end: to}
	return unwindRanges{section: u, bits: bits, at: start, end: end, isLast: block+1 == u.blocks.count}, nil
}

// next returns the next range; its rule is then r.rule. After the last range, the result is empty.
func (r *unwindRanges) next() (Range, error) {
	u := r.section
	if r.at == r.end {
		padding := uint64(0)
		if r.isLast {
			padding = 7
		}
		if r.bits.end-r.bits.position > padding {
			return Range{}, damaged(u.name, "a block has more bits than ranges")
		}
		return Range{}, nil
	}
	if r.count++; r.count > maxUnwindRanges {
		return Range{}, damaged(u.name, "a block has more than %d ranges", maxUnwindRanges)
	}
	rule, length, err := r.step()
	if err != nil {
		return Range{}, err
	}
	if r.bits.overrun() {
		return Range{}, damaged(u.name, "a block ends within a range")
	}
	if length == 0 || length > r.end-r.at {
		return Range{}, damaged(u.name, "a range of %d bytes at %#x is not in its block", length, r.at)
	}
	code := Range{r.at, r.at + length}
	r.at, r.rule = code.End, rule
	return code, nil
}

// step returns the rule and the length of the next range.
func (r *unwindRanges) step() (rule, length uint64, err error) {
	u := r.section
	columns, next, err := u.rules.pair(&u.section, r.rule, [2]uint64{u.steps.count})
	if err != nil {
		return 0, 0, err
	}
	first, end := columns[0], next[0]
	if first > end || end > u.steps.count {
		return 0, 0, damaged(u.name, "the steps of rule %d are invalid", r.rule)
	}
	step := r.bits.number(&u.code[stepContext(end-first)])
	if step > end-first {
		return 0, 0, damaged(u.name, "rule %d has %d steps, and the step %d is taken", r.rule, end-first, step)
	}
	if step == 0 {
		rule, length = r.bits.number(&u.code[contextRule]), stepLengthFollows
	} else {
		columns, err := u.steps.row(&u.section, first+step-1)
		if err != nil {
			return 0, 0, err
		}
		rule, length = columns[0], columns[1]
	}
	if rule >= u.rules.count {
		return 0, 0, damaged(u.name, "there are %d rules, and a range has the rule %d", u.rules.count, rule)
	}
	switch length {
	case stepLengthFollows:
		context := contextUnwindLength
		if rule == 0 || r.rule == 0 {
			context = contextLengthAfterGap
		}
		return rule, r.bits.number(&u.code[context]), nil
	case stepLengthAligned:
		return rule, 16 - r.at%16, nil
	}
	return rule, length - 1, nil
}

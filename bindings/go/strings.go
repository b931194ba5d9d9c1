package symdex

import "encoding/binary"

const (
	maxTerminal     = 64
	maxSymbolBits   = 28
	maxStringSize   = 65536
	maxPendingRules = 64
	// maxStringsHead is the largest head of names or files: three numbers, two bytes, and a number for each length.
	maxStringsHead      = 2*maxVarint + 2 + maxTerminal*maxVarint
	maxVarint           = 10
	stringsPerGroup     = 16
	stringGroupSize     = 12
	symbolsPerStringMax = 15
)

// A stringTable is the section of names or of files: strings in a grammar, each of which can be read on its own.
type stringTable struct {
	section
	strings uint64
	rules   uint64
	symbols uint64
	width   uint
	// terminals is the number of terminals; byLength tells where those of each length begin.
	terminals uint64
	byLength  []terminalsOfLength
	// Where the parts of the section begin, in bytes.
	groupsAt, rulesAt, symbolsAt, textsAt uint64
}

// terminalsOfLength are the terminals of one length: the first one, the number of the first longer one, and where the
// text of the first one is.
type terminalsOfLength struct{ first, end, textAt, length uint64 }

// parse reads the head of the section.
func (t *stringTable) parse(strings uint64) error { return t.parseFrom(0, strings) }

// parseFrom reads the head of the strings, which are the section from start on.
func (t *stringTable) parseFrom(start, strings uint64) error {
	t.strings = strings
	headEnd := min(t.size, start+maxStringsHead)
	if err := t.check(start, headEnd); err != nil {
		return err
	}
	head := fields{rest: t.data[start:headEnd]}
	t.rules = head.varint()
	t.symbols = head.varint()
	t.width = uint(head.u8())
	longest := uint64(head.u8())
	if head.failed || longest > maxTerminal || t.width < 1 || t.width > maxSymbolBits ||
		t.rules > 8*t.size || t.symbols > 8*t.size {
		return damaged(t.name, "the head is invalid")
	}
	texts := uint64(0)
	for length := uint64(1); length <= longest; length++ {
		count := head.varint()
		if count > t.size {
			return damaged(t.name, "the section is too small for its terminals")
		}
		if count > 0 {
			terminals := terminalsOfLength{t.terminals, t.terminals + count, texts, length}
			t.byLength = append(t.byLength, terminals)
		}
		t.terminals += count
		texts += count * length
	}
	t.groupsAt = headEnd - uint64(len(head.rest))
	t.rulesAt = t.groupsAt + (strings+stringsPerGroup-1)/stringsPerGroup*stringGroupSize
	t.symbolsAt = t.rulesAt + (t.rules*2*uint64(t.width)+7)/8
	t.textsAt = t.symbolsAt + (t.symbols*uint64(t.width)+7)/8
	if head.failed || t.textsAt+texts != t.size {
		return damaged(t.name, "the parts do not have the size of the section")
	}
	return nil
}

// varint reads a LEB128 number.
func (f *fields) varint() uint64 {
	value, size := binary.Uvarint(f.rest[:min(len(f.rest), maxVarint)])
	if size <= 0 {
		f.failed = true
		return 0
	}
	f.rest = f.rest[size:]
	return value
}

// appendString appends the string with this id to text.
func (t *stringTable) appendString(text []byte, id uint64) ([]byte, error) {
	if id >= t.strings {
		return text, damaged(t.name, "there are %d strings, and one has the number %d", t.strings, id)
	}
	at := t.groupsAt + id/stringsPerGroup*stringGroupSize
	if err := t.check(at, at+stringGroupSize); err != nil {
		return text, err
	}
	group := t.data[at : at+stringGroupSize]
	first := uint64(binary.BigEndian.Uint32(group))
	lengths := binary.BigEndian.Uint64(group[4:])
	within := id % stringsPerGroup
	for i := range within {
		first += lengths >> (60 - 4*i) & 15
	}
	count := lengths >> (60 - 4*within) & 15
	if first+count > t.symbols {
		return text, damaged(t.name, "string %d has symbols that do not exist", id)
	}
	if count == 0 {
		return text, nil
	}
	from, to := first*uint64(t.width), (first+count)*uint64(t.width)
	if err := t.check(t.symbolsAt+from/8, t.symbolsAt+(to+7)/8); err != nil {
		return text, err
	}
	limit := len(text) + maxStringSize
	for bit := from; bit < to; bit += uint64(t.width) {
		var err error
		if text, err = t.appendSymbol(text, bitsAt(t.data, 8*t.symbolsAt+bit, t.width), limit); err != nil {
			return text, err
		}
	}
	return text, nil
}

// appendSymbol appends what a symbol stands for. The text may grow up to the limit. Each rule stands for at least two
// bytes, so the limit bounds the time, too.
func (t *stringTable) appendSymbol(text []byte, symbol uint64, limit int) ([]byte, error) {
	var pending [maxPendingRules]uint32
	depth := 0
	for {
		for symbol >= t.terminals {
			rule := symbol - t.terminals
			if rule >= t.rules || depth == maxPendingRules {
				return text, damaged(t.name, "a string has a symbol that does not exist, or that is nested too deeply")
			}
			bit := 8*t.rulesAt + rule*2*uint64(t.width)
			if err := t.check(bit/8, (bit+2*uint64(t.width)+7)/8); err != nil {
				return text, err
			}
			both := bitsAt(t.data, bit, 2*t.width)
			left, right := both>>t.width, both&(1<<t.width-1)
			if left >= symbol || right >= symbol {
				return text, damaged(t.name, "rule %d refers to a later one", rule)
			}
			pending[depth] = uint32(right)
			depth++
			symbol = left
		}
		var err error
		if text, err = t.appendTerminal(text, symbol); err != nil {
			return text, err
		}
		if len(text) > limit {
			return text, damaged(t.name, "a string is longer than %d bytes", maxStringSize)
		}
		if depth == 0 {
			return text, nil
		}
		depth--
		symbol = uint64(pending[depth])
	}
}

func (t *stringTable) appendTerminal(text []byte, terminal uint64) ([]byte, error) {
	for i := range t.byLength {
		terminals := &t.byLength[i]
		if terminal < terminals.end {
			at := t.textsAt + terminals.textAt + (terminal-terminals.first)*terminals.length
			if err := t.check(at, at+terminals.length); err != nil {
				return text, err
			}
			return append(text, t.data[at:at+terminals.length]...), nil
		}
	}
	return text, damaged(t.name, "terminal %d does not exist", terminal)
}

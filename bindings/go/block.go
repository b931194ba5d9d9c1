package symdex

const (
	maxRanges     = 255
	maxFrames     = 6144
	maxRemembered = 255
	maxCallers    = 255
	maxDefined    = 1024
	maxFunction   = 1 << 47

	linkFactor = 12
	headMore   = 11

	noFrame = -1
)

// How the answer under the policy statement follows from that under exact.
const (
	statementSame     = 0
	statementPrevious = 1
	statementFollows  = 2
)

// An inlineFrame is a source location of the chunk, and the inline frame into which it is inlined.
type inlineFrame struct {
	location uint32
	// caller is the number of an earlier inline frame of the block, or noFrame.
	caller int32
	// lastCallee is the source location of the last defined inline frame with this caller, or noFrame.
	lastCallee int32
}

// A blockRange is a range of a block. In a gap the answers are noFrame.
type blockRange struct {
	end              uint64
	function         uint64
	hasFunction      bool
	exact, statement int32
}

// A block is a block of a chunk that is decoded up to some range, in working memory that is used for one block after
// the other.
type block struct {
	// serial is that of the index, 0 if there is no block; place and chunk say which block it is.
	serial uint64
	chunk  chunk
	place  blockPlace
	// failed is the error of decoding the next range.
	failed error

	bits     bitReader
	unused   uint64
	lastRoot uint64
	lastCode uint64
	// defined is the number of inline frames that the last answer defines, at most 3.
	defined  uint64
	previous int32
	// statement is the answer under this policy of the previous range, or noFrame.
	statement   int32
	function    uint64
	hasFunction bool
	at          uint64

	ranges []blockRange
	frames []inlineFrame
	// recent has the remembered inline frames, the most recent one last. Only the last 255 count.
	recent []uint16
}

// open makes b the block of a chunk at this place, without decoding a range.
func (b *block) open(ix *Index, c *chunk, place blockPlace) {
	b.serial, b.chunk, b.place, b.failed = ix.serial, *c, place, nil
	b.bits = bitReader{data: ix.chunks.data, position: place.from, end: place.to}
	b.unused, b.lastRoot, b.lastCode, b.defined = place.unused, place.unused, 0, 0
	b.previous, b.statement, b.hasFunction = noFrame, noFrame, false
	b.at = place.start
	b.ranges, b.frames, b.recent = b.ranges[:0], b.frames[:0], b.recent[:0]
}

// rangeOf returns the range with an image offset, which is in the block.
func (b *block) rangeOf(ix *Index, offset uint64) (*blockRange, error) {
	for b.at <= offset {
		if b.failed == nil {
			b.failed = b.next(&ix.code)
		}
		if b.failed != nil {
			return nil, b.failed
		}
	}
	// The range is mostly the last one.
	i := len(b.ranges) - 1
	for i > 0 && b.ranges[i-1].end > offset {
		i--
	}
	return &b.ranges[i], nil
}

// next decodes the next range.
func (b *block) next(codes *codes) error {
	if len(b.ranges) == maxRanges {
		return damaged("chunks", "a block has more than %d ranges", maxRanges)
	}
	r := blockRange{exact: noFrame, statement: noFrame}
	code := b.code(codes)
	if code == 1 {
		if err := b.readFunction(codes); err != nil {
			return err
		}
		if code = b.code(codes); code == 1 {
			return damaged("chunks", "the function changes twice")
		}
	}
	var length uint64
	if code == 0 {
		length = b.bits.number(&codes[contextGap])
	} else {
		var err error
		if r.exact, r.statement, err = b.answers(codes, code); err != nil {
			return err
		}
		length = b.bits.number(&codes[contextLength+b.defined])
		r.function, r.hasFunction = b.function, b.hasFunction
	}
	if b.bits.overrun() {
		return damaged("chunks", "a block ends within a range")
	}
	if length == 0 || length > b.place.end-b.at {
		return damaged("chunks", "a range of %d bytes at %#x is not in its block", length, b.at)
	}
	b.at += length
	r.end = b.at
	b.ranges = append(b.ranges, r)
	return nil
}

func (b *block) code(codes *codes) uint64 {
	code := b.bits.number(&codes[contextCode+min(b.lastCode, headMore)])
	b.lastCode = code
	return code
}

func (b *block) readFunction(codes *codes) error {
	context := contextFunction
	if len(b.ranges) == 0 {
		context = contextFirstFunction
	}
	k := b.bits.number(&codes[context])
	switch {
	case k == 0:
		b.function, b.hasFunction = b.at, true
	case k == 1:
		b.hasFunction = false
	case k-1 > b.at || k-1 >= maxFunction:
		return damaged("chunks", "a function starts %d bytes before %#x", k-1, b.at)
	default:
		b.function, b.hasFunction = b.at-(k-1), true
	}
	return nil
}

// answers reads the answers of a range under both policies; the code of the first one is given.
func (b *block) answers(codes *codes, code uint64) (exact, statement int32, err error) {
	exact, policy, err := b.answer(codes, code)
	if err != nil {
		return exact, exact, err
	}
	switch policy {
	case statementSame:
		b.statement = exact
	case statementPrevious:
		if b.statement == noFrame {
			return exact, exact, damaged("chunks", "an answer is that of a previous range, and there is none")
		}
	case statementFollows:
		answer, policy, err := b.answer(codes, b.code(codes))
		if err != nil {
			return exact, exact, err
		}
		if policy != statementSame {
			return exact, exact, damaged("chunks", "the answer under the policy statement refers to another one")
		}
		b.statement = answer
	}
	return exact, b.statement, nil
}

// answer reads an answer, whose code is given, and returns it and how the one under statement follows from it.
func (b *block) answer(codes *codes, code uint64) (answer int32, policy uint64, err error) {
	link, head := code/linkFactor, code%linkFactor
	if head == headMore {
		head += b.bits.number(&codes[contextHead])
	}
	count, policy := head/3, head%3
	if answer, err = b.linked(link); err != nil {
		return answer, policy, err
	}
	if count == 0 {
		if answer == noFrame {
			return answer, policy, damaged("chunks", "an answer has no frame")
		}
		err = b.remember(answer)
	} else {
		answer, err = b.define(codes, answer, count)
	}
	b.previous, b.defined = answer, min(count, 3)
	return answer, policy, err
}

// linked returns the inline frame that a link refers to, or noFrame.
func (b *block) linked(link uint64) (int32, error) {
	k := link / 2
	if link%2 == 1 {
		if k > maxCallers {
			return noFrame, damaged("chunks", "a link goes up %d callers", k)
		}
		frame := b.previous
		for range k {
			if frame == noFrame {
				return noFrame, damaged("chunks", "a link goes up %d callers, and there are fewer", k)
			}
			frame = b.frames[frame].caller
		}
		return frame, nil
	}
	if k == 0 {
		return noFrame, nil
	}
	if k > uint64(min(len(b.recent), maxRemembered)) {
		return noFrame, damaged("chunks", "a link refers to an inline frame that is not remembered")
	}
	return int32(b.recent[uint64(len(b.recent))-k]), nil
}

// remember makes a remembered inline frame the most recent one.
func (b *block) remember(frame int32) error {
	recent := b.recent
	last := len(recent) - 1
	for i := last; i >= 0 && i > last-maxRemembered; i-- {
		if recent[i] == uint16(frame) {
			copy(recent[i:], recent[i+1:])
			recent[last] = uint16(frame)
			return nil
		}
	}
	return damaged("chunks", "an answer is an inline frame that is not remembered")
}

// define reads new inline frames: the first one has this caller, and each is the caller of the next. It returns the
// last one.
func (b *block) define(codes *codes, caller int32, count uint64) (int32, error) {
	if count > maxDefined || uint64(len(b.frames))+count > maxFrames {
		return noFrame, damaged("chunks", "a block defines too many inline frames")
	}
	context := contextRoot
	if caller != noFrame {
		context = contextCallee
		if b.frames[caller].lastCallee != noFrame {
			context = contextSibling
		}
	}
	for range count {
		k := b.bits.number(&codes[context])
		context = contextNext
		location := int64(b.unused)
		if k == 0 {
			b.unused++
			context = contextNextAfterNew
		} else {
			location = b.base(caller) + 1 + unfold(k-1)
		}
		if location < 0 || uint64(location) >= b.unused || b.unused > b.chunk.locations {
			return noFrame, damaged("chunks", "source location %d does not exist yet", location)
		}
		if caller == noFrame {
			b.lastRoot = uint64(location)
		} else {
			b.frames[caller].lastCallee = int32(location)
		}
		frame := inlineFrame{location: uint32(location), caller: caller, lastCallee: noFrame}
		caller = int32(len(b.frames))
		b.frames = append(b.frames, frame)
		b.recent = append(b.recent, uint16(caller))
	}
	return caller, nil
}

// base returns the source location that the one of a new inline frame with this caller is relative to.
func (b *block) base(caller int32) int64 {
	if caller == noFrame {
		return int64(b.lastRoot)
	}
	if frame := &b.frames[caller]; frame.lastCallee != noFrame {
		return int64(frame.lastCallee)
	}
	return int64(b.frames[caller].location)
}

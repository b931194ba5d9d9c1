package symdex

// Limits of what a Scratch remembers: frames of 64 bytes, answers of about 40, and bytes of strings. At a limit,
// all answers or all strings are forgotten, and what is asked for again is decoded again.
const (
	maxCachedFrames  = 96 << 10
	maxCachedAnswers = 64 << 10
	maxCachedBytes   = 6 << 20
	stringOverhead   = 64
)

type answerKey struct {
	serial, offset uint64
	policy         LinePolicy
}

type stringKey struct {
	serial uint64
	id     uint32
	kind   stringKind
}

// stringKind tells names, files and readable names apart, which all have ids from 0.
type stringKind uint8

const (
	kindName stringKind = iota
	kindFile
	kindFunction
)

// answerSpan says which frames are an answer.
type answerSpan struct{ start, end uint32 }

// A cache has the answers and strings that were asked for.
type cache struct {
	answers map[answerKey]answerSpan
	// frames are those of all answers. Those from begun on are the answer that is being made.
	frames      []Frame
	begun       int
	strings     map[stringKey]string
	stringBytes int
}

func (c *cache) answer(key answerKey) ([]Frame, bool) {
	span, ok := c.answers[key]
	return c.frames[span.start:span.end:span.end], ok
}

// begin makes the next frames a new answer. Frames of a failed answer are dropped.
func (c *cache) begin() {
	c.frames = c.frames[:c.begun]
	if c.begun+maxAnswerFrames > maxCachedFrames || len(c.answers) >= maxCachedAnswers {
		clear(c.answers)
		c.frames, c.begun = c.frames[:0], 0
	}
}

func (c *cache) push(f Frame) { c.frames = append(c.frames, f) }

// end remembers the frames since begin as the answer of this key, and returns them.
func (c *cache) end(key answerKey) []Frame {
	if c.answers == nil {
		c.answers = make(map[answerKey]answerSpan)
	}
	frames := c.frames[c.begun:len(c.frames):len(c.frames)]
	c.answers[key] = answerSpan{uint32(c.begun), uint32(len(c.frames))}
	c.begun = len(c.frames)
	return frames
}

// keep remembers a string, and returns it.
func (c *cache) keep(key stringKey, text string) string {
	if c.strings == nil {
		c.strings = make(map[stringKey]string)
	}
	if c.stringBytes > maxCachedBytes {
		clear(c.strings)
		c.stringBytes = 0
	}
	c.stringBytes += len(text) + stringOverhead
	c.strings[key] = text
	return text
}

package symdex

import "slices"

// A LinePolicy says which rows of the line table answer for code that the compiler generated or merged.
type LinePolicy uint8

const (
	// Statement gives code with line 0, or without a line, the file and line of the last statement before it in the
	// same inlined call. Without one, the code keeps its own line. It is the policy of reports.
	Statement LinePolicy = iota
	// Exact gives each row its own file and line, as llvm-symbolizer and Apple's atos do.
	Exact
)

// A Frame is a function at an address: the concrete one, or one that is inlined into the next frame.
type Frame struct {
	// Name is the linkage name, mangled, without the underscore that Mach-O puts before C names. It is empty if the
	// index has none. Names and paths are bytes of the debug file, mostly UTF-8.
	Name string
	// Function is the name as people read it: that of the index, if it was built with readable names, else that of
	// Options.Demangle. Without both it is Name.
	Function string
	// File is the path of the source file, empty if the index has none.
	File string
	// FunctionStart is the image offset at which the concrete function starts, if HasFunctionStart.
	FunctionStart uint64
	// Line is the line, if HasLine; 0 is code that the compiler generated. In a frame with inlined functions it is that
	// of the call.
	Line             uint32
	HasLine          bool
	HasFunctionStart bool
	// Inlined says that the function is inlined into that of the next frame.
	Inlined bool
	// Table is the table of the index that the frame comes from.
	Table Table
}

const (
	maxAnswerFrames = 1024
	maxNames        = 1024
)

// A Scratch is the working memory of lookups, for any number of indexes. The zero value is ready. It remembers answers
// and strings, in about 16 MiB at most, so that a repeated answer takes no decoding and no allocation. It must not be
// used by two goroutines at once.
type Scratch struct {
	blocks  [2]block
	sources sources
	cache   cache
	text    []byte
	row     UnwindRow
}

// Lookup returns the frames at an image offset, the innermost one first. The last one is the concrete function.
// The frames are valid until the next call with this scratch and must not be modified. Their strings can be kept.
//
// The error is [ErrNoAnswer] or a [*DamagedError].
func (ix *Index) Lookup(offset uint64, policy LinePolicy, s *Scratch) ([]Frame, error) {
	key := answerKey{serial: ix.serial, offset: offset, policy: policy}
	if frames, ok := s.cache.answer(key); ok {
		if len(frames) == 0 {
			return nil, ErrNoAnswer
		}
		return frames, nil
	}
	s.cache.begin()
	if err := ix.answer(offset, policy, s); err != nil {
		return nil, err
	}
	frames := s.cache.end(key)
	if len(frames) == 0 {
		return nil, ErrNoAnswer
	}
	return frames, nil
}

// An Answer is what [Index.LookupMany] found at one offset: frames as of [Index.Lookup], or its error.
type Answer struct {
	Frames []Frame
	Err    error
}

// LookupMany looks up many image offsets, such as those of a whole stack, in any order. It returns an answer for each,
// in the order of the offsets. The answers can be kept. If a part of the index is damaged, the other offsets still have
// their answers.
func (ix *Index) LookupMany(offsets []uint64, policy LinePolicy, s *Scratch) []Answer {
	answers := make([]Answer, len(offsets))
	for i, offset := range offsets {
		frames, err := ix.Lookup(offset, policy, s)
		answers[i] = Answer{Frames: slices.Clone(frames), Err: err}
	}
	return answers
}

// answer puts the frames at an image offset into the cache.
func (ix *Index) answer(offset uint64, policy LinePolicy, s *Scratch) error {
	r, b, err := ix.rangeAt(Dwarf, offset, s)
	if err != nil {
		return err
	}
	if r == nil {
		return ix.answerFromSymbols(offset, s)
	}
	frame := r.statement
	if policy == Exact {
		frame = r.exact
	}
	function, hasFunction := r.function, r.hasFunction
	for count := 0; frame != noFrame; count++ {
		if count == maxAnswerFrames {
			return damaged("chunks", "the answer at %#x has more than %d frames", offset, maxAnswerFrames)
		}
		inline := b.frames[frame]
		location, err := s.sources.source(ix, &b.chunk, uint64(inline.location))
		if err != nil {
			return err
		}
		f := Frame{
			FunctionStart: function, HasFunctionStart: hasFunction, Inlined: inline.caller != noFrame, Table: Dwarf,
		}
		if location.line > 0 {
			f.Line, f.HasLine = uint32(location.line-1), true
		}
		if f.File, err = s.stringOf(ix, kindFile, location.file); err != nil {
			return err
		}
		last := inline.caller == noFrame
		if last && !hasFunction {
			if err = ix.nameFromSymbols(offset, location.name, &f, s); err != nil {
				return err
			}
		} else if err = s.setName(ix, location.name, &f); err != nil {
			return err
		}
		s.cache.push(f)
		frame = inline.caller
	}
	return nil
}

// nameFromSymbols sets the name and the start of a frame outside of any function: those of the symbol at the address,
// or the given name if there is none.
func (ix *Index) nameFromSymbols(offset, name uint64, f *Frame, s *Scratch) error {
	r, b, err := ix.rangeAt(SymbolTable, offset, s)
	if err != nil {
		return err
	}
	if r != nil {
		f.FunctionStart, f.HasFunctionStart = r.function, r.hasFunction
		location, err := s.sources.source(ix, &b.chunk, uint64(b.frames[r.statement].location))
		if err != nil {
			return err
		}
		name = location.name
	}
	return s.setName(ix, name, f)
}

// setName sets the names of a frame. The id of the name is stored: plus one, and 0 for none.
func (s *Scratch) setName(ix *Index, stored uint64, f *Frame) (err error) {
	if f.Name, err = s.stringOf(ix, kindName, stored); err != nil {
		return err
	}
	f.Function = f.Name
	if ix.demangle != nil || ix.readable.size > 0 {
		f.Function, err = s.stringOf(ix, kindFunction, stored)
	}
	return err
}

// answerFromSymbols puts the frame that the symbol table has into the cache.
func (ix *Index) answerFromSymbols(offset uint64, s *Scratch) error {
	r, _, err := ix.rangeAt(SymbolTable, offset, s)
	if err != nil || r == nil {
		return err
	}
	f := Frame{Table: SymbolTable}
	if err := ix.nameFromSymbols(offset, 0, &f, s); err != nil {
		return err
	}
	s.cache.push(f)
	return nil
}

// rangeAt returns the range of a table with an image offset, and its block. It returns nil in a gap.
func (ix *Index) rangeAt(table Table, offset uint64, s *Scratch) (*blockRange, *block, error) {
	b := &s.blocks[table]
	if b.serial != ix.serial || offset < b.place.start || offset >= b.place.end {
		c, ok, err := ix.chunkOf(table, offset)
		if err != nil || !ok {
			return nil, nil, err
		}
		place, err := ix.blockOf(&c, offset)
		if err != nil {
			return nil, nil, err
		}
		b.open(ix, &c, place)
	}
	r, err := b.rangeOf(ix, offset)
	if err != nil || r.exact == noFrame {
		return nil, nil, err
	}
	return r, b, nil
}

// FunctionNames returns all names of the function that starts at an image offset, by the symbol table: several if the
// linker folded functions with the same code. Mostly there is one, or none.
//
// The error is a [*DamagedError].
func (ix *Index) FunctionNames(start uint64, s *Scratch) ([]string, error) {
	r, b, err := ix.rangeAt(SymbolTable, start, s)
	if err != nil || r == nil || !r.hasFunction || r.function != start {
		return nil, err
	}
	var names []string
	for frame := r.statement; frame != noFrame; frame = b.frames[frame].caller {
		if len(names) == maxNames {
			return nil, damaged("chunks", "the function at %#x has more than %d names", start, maxNames)
		}
		location, err := s.sources.source(ix, &b.chunk, uint64(b.frames[frame].location))
		if err != nil {
			return nil, err
		}
		name, err := s.stringOf(ix, kindName, location.name)
		if err != nil {
			return nil, err
		}
		if location.name != 0 {
			names = append(names, name)
		}
	}
	return names, nil
}

// stringOf returns the string whose id, as stored, is given: plus one, and 0 for none.
func (s *Scratch) stringOf(ix *Index, kind stringKind, stored uint64) (string, error) {
	if stored == 0 {
		return "", nil
	}
	key := stringKey{serial: ix.serial, id: uint32(stored - 1), kind: kind}
	if text, ok := s.cache.strings[key]; ok {
		return text, nil
	}
	text, err := s.read(ix, kind, stored-1)
	if err != nil {
		return "", err
	}
	return s.cache.keep(key, text), nil
}

// read returns a string that the cache does not have.
func (s *Scratch) read(ix *Index, kind stringKind, id uint64) (string, error) {
	table := &ix.names
	if kind == kindFile {
		table = &ix.files
	}
	if kind == kindFunction && ix.readable.size > 0 {
		number, ok, err := ix.readable.number(id)
		if err != nil {
			return "", err
		}
		if ok {
			table, id = &ix.readable.stringTable, number
		}
	}
	bytes, err := table.appendString(s.text[:0], id)
	if err != nil {
		return "", err
	}
	s.text = bytes
	if kind == kindFunction && ix.readable.size == 0 {
		return ix.demangle(string(bytes)), nil
	}
	return string(bytes), nil
}

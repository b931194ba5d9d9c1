package symdex

// A source is a source location. Its strings and its line are as stored: plus one, and 0 if there is none.
type source struct{ name, file, line uint64 }

const (
	maxStored       = 4294967295
	maxGroup        = 1 << maxGroupBits
	decodedGroups   = 16
	noLocation      = -1
	firstOfTheGroup = 0
)

// A location is a decoded source location of a group.
type location struct {
	// first is the first source location of the chunk with the same name: itself if its name is new.
	first uint32
	// relative says that first is in another group, that file is unknown, and that line is a difference to its line.
	relative bool
	name     uint64
	file     uint64
	line     int64
}

// A group is a decoded group of source locations.
type group struct {
	serial uint64
	place  uint64
	number uint64
	// decoded is the number of source locations that are decoded, from the first one on.
	decoded   int
	locations [maxGroup]location
}

// sources remembers some groups, because the frames of an answer often share them.
type sources struct{ groups [decodedGroups]group }

// source returns a source location of a chunk.
func (s *sources) source(ix *Index, c *chunk, number uint64) (source, error) {
	l, err := s.location(ix, c, number)
	if err != nil {
		return source{}, err
	}
	if uint64(l.first) == number {
		return source{l.name, l.file, uint64(l.line)}, nil
	}
	// Another group can take the place of this one in memory.
	known := *l
	first, err := s.location(ix, c, uint64(known.first))
	if err != nil {
		return source{}, err
	}
	if first.first != known.first {
		return source{}, damaged("chunks", "source location %d has the name of one that has no new name", number)
	}
	if known.relative {
		known.file, known.line = first.file, known.line+first.line
	}
	if known.line < 0 || known.line > maxStored {
		return source{}, damaged("chunks", "source location %d has an invalid line", number)
	}
	return source{first.name, known.file, uint64(known.line)}, nil
}

// location returns a source location of a chunk, which exists, as its group states it.
func (s *sources) location(ix *Index, c *chunk, number uint64) (*location, error) {
	groupNumber := number >> ix.groupBits
	within := int(number & (1<<ix.groupBits - 1))
	g := &s.groups[groupNumber%decodedGroups]
	known := g.serial == ix.serial && g.place == c.place && g.number == groupNumber
	if known && within < g.decoded {
		return &g.locations[within], nil
	}
	last := within
	if known {
		// The second question: there may be more of them.
		last = int(min(1<<ix.groupBits, c.locations-groupNumber<<ix.groupBits)) - 1
	}
	g.serial, g.place, g.number, g.decoded = ix.serial, c.place, groupNumber, 0
	// Damage after the location does not matter.
	if err := g.decode(ix, c, last); err != nil && within >= g.decoded {
		g.serial = 0
		return nil, err
	}
	return &g.locations[within], nil
}

// groupRow returns where a group is, as bits of the section of chunks, and the expected id of its first new name.
func (ix *Index) groupRow(c *chunk, number uint64) (bits bitReader, expected uint64, err error) {
	groups := (c.locations + 1<<ix.groupBits - 1) >> ix.groupBits
	rows := min(2, groups-number)
	bit := c.groupRows + number*c.groupRowSize
	if c.groupRowSize > 0 {
		if err := ix.chunks.check(bit/8, (bit+rows*c.groupRowSize+7)/8); err != nil {
			return bits, 0, err
		}
	}
	from := bitsAt(ix.chunks.data, bit, c.groupWidths[0])
	expected = bitsAt(ix.chunks.data, bit+uint64(c.groupWidths[0]), c.groupWidths[1])
	size := 8 * (c.end - c.sourcesAt)
	to := size
	if rows == 2 {
		to = bitsAt(ix.chunks.data, bit+c.groupRowSize, c.groupWidths[0])
	}
	if from > to || to > size {
		return bits, 0, damaged("chunks", "the row of group %d of source locations is invalid", number)
	}
	bits = bitReader{data: ix.chunks.data, position: 8*c.sourcesAt + from, end: 8*c.sourcesAt + to}
	if from < to {
		err = ix.chunks.check(bits.position/8, (bits.end+7)/8)
	}
	return bits, expected, err
}

// decode decodes the source locations of the group up to this one, or as many as it can.
func (g *group) decode(ix *Index, c *chunk, last int) error {
	bits, expected, err := ix.groupRow(c, g.number)
	if err != nil {
		return err
	}
	start := g.number << ix.groupBits
	d := groupDecoder{ix: ix, bits: bits, lines: c.table == Dwarf, expected: int64(expected), previous: noLocation}
	for i := range last + 1 {
		number := start + uint64(i)
		context := contextName
		if d.afterKnown {
			context = contextNameAfterKnown
		}
		k := d.bits.number(&ix.code[context])
		if k == 0 {
			err = d.newName(&g.locations[i], uint32(number))
		} else {
			err = d.knownName(g.locations[:i+1], start, unfold(k-1))
		}
		if err != nil {
			return err
		}
		if d.bits.overrun() {
			return damaged("chunks", "a group of source locations is too short")
		}
		d.afterKnown = k != 0
		d.previous = int64(g.locations[i].first)
		g.decoded = i + 1
	}
	return nil
}

// groupDecoder is what the next source location of a group depends on.
type groupDecoder struct {
	ix    *Index
	bits  bitReader
	lines bool
	// expected is the expected id, as stored, of the next new name; file and line are those of the previous new name.
	expected, file, line int64
	// previous is the first source location with the name of the previous one, noLocation at the start of a group.
	previous   int64
	afterKnown bool
}

func (d *groupDecoder) number(context int) uint64 { return d.bits.number(&d.ix.code[context]) }

func (d *groupDecoder) newName(l *location, number uint32) error {
	id := d.expected + unfold(d.number(contextID))
	if id < 0 || uint64(id) > d.ix.names.strings {
		return damaged("chunks", "source location %d has a name that does not exist", number)
	}
	d.expected = id + 1
	if d.lines {
		file := d.number(contextFile)
		if file == 0 {
			d.line += unfold(d.number(contextLineDifference))
		} else {
			d.file += unfold(file - 1)
			d.line = int64(d.number(contextLine))
		}
		if d.file < 0 || uint64(d.file) > d.ix.files.strings || d.line < 0 || d.line > maxStored {
			return damaged("chunks", "source location %d has an invalid file or line", number)
		}
	}
	*l = location{first: number, name: uint64(id), file: uint64(d.file), line: d.line}
	return nil
}

// knownName decodes the last of the source locations of a group, which starts at start. Its name is that of a location
// which is at this distance from that of the previous location.
func (d *groupDecoder) knownName(locations []location, start uint64, distance int64) error {
	i := len(locations) - 1
	number := int64(start) + int64(i)
	base := d.previous
	if i == firstOfTheGroup {
		base = number
	}
	first := base + distance
	if first < 0 || first >= number {
		return damaged("chunks", "source location %d has the name of one that does not exist yet", number)
	}
	l := &locations[i]
	*l = location{first: uint32(first), relative: first < int64(start)}
	if !l.relative && locations[first-int64(start)].first != uint32(first) {
		return damaged("chunks", "source location %d has the name of one that has no new name", number)
	}
	if !d.lines {
		return nil
	}
	context := contextKnownLineOther
	if first == d.previous {
		context = contextKnownLineSame
	}
	k := d.number(context)
	if k == 0 {
		l.relative = false
		l.file, l.line = d.number(contextOtherFile), int64(d.number(contextOtherLine))
		if l.file > d.ix.files.strings {
			return damaged("chunks", "source location %d has a file that does not exist", number)
		}
	} else if first == d.previous {
		known := &locations[i-1]
		l.relative, l.file, l.line = known.relative, known.file, known.line+unfold(k-1)
	} else if l.relative {
		l.line = unfold(k - 1)
	} else {
		known := &locations[first-int64(start)]
		l.file, l.line = known.file, known.line+unfold(k-1)
	}
	if !l.relative && (l.line < 0 || l.line > maxStored) {
		return damaged("chunks", "source location %d has an invalid line", number)
	}
	return nil
}

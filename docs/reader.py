#!/usr/bin/env python3
"""Reads symdex indexes. Written from FORMAT.md alone; needs nothing but Python's standard library.

    reader.py [--exact] FILE [OFFSET ...]    the frames at image offsets; without offsets, at each address of the code
    reader.py --names FILE OFFSET            all names of the function that starts at OFFSET

It does not verify checksums, because the standard library has no XXH3. Each line of output is a frame: offset, name,
file, line, "inlined" or "", start of the function, table; "-" stands for what is absent. A gap is a line with the
offset alone.
"""

import struct
import sys

MAGIC, END = b"\x89SYMDEX\n", b"XEDMYS\n\x89"
SECTIONS = ("metadata", "codes", "chunks", "names", "files", "checksums")
TABLES = ("dwarf", "symbol_table")

# Contexts.
GAP, FUNCTION, MORE_HEAD, LENGTH, ANSWER, SOURCE = 0, 1, 3, 4, 8, 20
NAME, ID, FILE, NEW_LINE, LINE, OTHER_FILE, OTHER_LINE = 25, 27, 28, 29, 31, 33, 34
CONTEXTS = 35


class Damaged(Exception):
    """The index is damaged, or is none."""


def require(condition, what):
    if not condition:
        raise Damaged(what)


def unfold(number):
    return number >> 1 if number % 2 == 0 else -(number >> 1) - 1


class Cursor:
    """Reads whole bytes."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def take(self, count):
        require(0 <= count <= len(self.data) - self.at, "it ends too early")
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size):
        return int.from_bytes(self.take(size), "little")

    def varint(self):
        number = shift = 0
        while True:
            byte = self.number(1)
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                require(number < 1 << 64, "a varint of more than 64 bits")
                return number
            require(shift < 70, "a varint of more than ten bytes")

    def string(self):
        return self.take(self.number(8)).decode()


class Bits:
    """Reads bits, the highest of each byte first. Behind the end are zeros."""

    def __init__(self, data, at):
        self.data, self.at = data, at

    def take(self, count):
        first, last = self.at // 8, (self.at + count + 7) // 8
        bits = int.from_bytes(self.data[first:last].ljust(last - first, b"\0"), "big")
        bits >>= last * 8 - self.at - count
        self.at += count
        return bits & ((1 << count) - 1)


class Rows:
    """Rows of numbers; each column has a width of its own."""

    def __init__(self, data, at, widths):
        require(all(width <= 57 for width in widths), "a column is too wide")
        self.data, self.at, self.widths = data, at, widths

    def size(self, rows):
        return (sum(self.widths) * rows + 7) // 8

    def get(self, row):
        bits = Bits(self.data, self.at * 8 + row * sum(self.widths))
        return [bits.take(width) for width in self.widths]


class Codes:
    """The code of each context."""

    def __init__(self, data):
        cursor = Cursor(data)
        self.words = [self.code(cursor) for _ in range(CONTEXTS)]
        require(cursor.at == len(data), "the codes have another size")

    @staticmethod
    def code(cursor):
        """The symbols of one context by length and bits of their code words."""
        symbols = cursor.number(1)
        if symbols < 2:
            return {(0, 0): symbol for symbol in cursor.take(symbols)}
        counts = cursor.take(9)
        require(sum(counts) == symbols, "a code has other symbols than words")
        words, word = {}, 0
        for length, count in enumerate(counts, 1):
            word <<= 1
            for symbol in cursor.take(count):
                words[length, word] = symbol
                word += 1
        require(word == 1 << 9, "a code does not use up all words")
        return words

    def number(self, bits, context):
        words, word = self.words[context], 0
        for length in range(10):
            if length:
                word = word << 1 | bits.take(1)
            if (length, word) in words:
                break
        else:
            raise Damaged("bits that no code word begins with")
        symbol = words[length, word]
        require(symbol < 210, "no such symbol")
        if symbol < 128:
            return symbol
        follow = (symbol - 128) // 2 + 6
        return (2 + symbol % 2) << follow | bits.take(follow)


class Strings:
    """The names or the files of an index."""

    def __init__(self, data, count):
        cursor = Cursor(data)
        self.data, self.count = data, count
        rules, symbols = cursor.varint(), cursor.varint()
        self.width, longest = cursor.number(1), cursor.number(1)
        require(1 <= self.width <= 28 and longest <= 64, "a section of strings has an invalid head")
        counts = [cursor.varint() for _ in range(longest)]
        self.groups = cursor.at
        self.rules = self.groups + 12 * ((count + 15) // 16)
        self.symbols = self.rules + (rules * 2 * self.width + 7) // 8
        at = self.symbols + (symbols * self.width + 7) // 8
        self.texts = []  # (where it begins, its length)
        for length, of_length in enumerate(counts, 1):
            self.texts += [(at + length * n, length) for n in range(of_length)]
            at += length * of_length
        require(at == len(data), "a section of strings has another size")
        self.rule_count, self.symbol_count = rules, symbols

    def get(self, number):
        require(number < self.count, "no such string")
        bits = Bits(self.data, (self.groups + number // 16 * 12) * 8)
        first = bits.take(32)
        lengths = [bits.take(4) for _ in range(16)]
        first += sum(lengths[: number % 16])
        require(first + lengths[number % 16] <= self.symbol_count, "symbols that are not there")
        bits = Bits(self.data, self.symbols * 8 + first * self.width)
        out = bytearray()
        behind = [bits.take(self.width) for _ in range(lengths[number % 16])][::-1]
        while behind:
            symbol = behind.pop()
            if symbol < len(self.texts):
                start, length = self.texts[symbol]
                out += self.data[start : start + length]
                require(len(out) <= 65536, "a string is too long")
                continue
            rule = symbol - len(self.texts)
            require(rule < self.rule_count, "no such rule")
            bits_of_rule = Bits(self.data, self.rules * 8 + rule * 2 * self.width)
            left, right = bits_of_rule.take(self.width), bits_of_rule.take(self.width)
            require(max(left, right) < symbol and len(behind) < 80, "a rule is invalid")
            behind += [right, left]
        return bytes(out)


class Chunk:
    """A chunk: blocks of ranges, and source locations."""

    def __init__(self, index, table, number, data):
        cursor = Cursor(data)
        self.codes, self.data, self.table = index.codes, data, table
        self.start, self.span = number * index.chunk_span, index.chunk_span
        self.group_bits = index.group_bits
        self.blocks, self.source_count, size = cursor.varint(), cursor.varint(), cursor.varint()
        block_widths, source_widths = cursor.take(3), cursor.take(2)
        self.rows = Rows(data, cursor.at, block_widths)
        cursor.take(self.rows.size(self.blocks))
        self.groups = Rows(data, cursor.at, source_widths)
        cursor.take(self.groups.size(-(-self.source_count >> self.group_bits)))
        self.block_bits, self.source_bits = cursor.at, cursor.at + size
        require(self.source_bits <= len(data), "the blocks lie outside the chunk")

    def find(self, offset, policy):
        """The start of the function and the source locations at an offset, innermost first; None for a gap."""
        at = offset - self.start
        low, high = 0, self.blocks
        while high - low > 1:
            middle = (low + high) // 2
            if self.rows.get(middle)[0] <= at:
                low = middle
            else:
                high = middle
        for end, function, frames, answers in self.ranges(low):
            if at < end:
                break
        else:
            raise Damaged("a block ends too early")
        if answers is None:
            return None
        chain, link = [], answers[policy]
        while link:
            link, source = frames[link - 1]
            chain.append(self.source(source))
            require(len(chain) <= 1024, "a chain is too long")
        return function, chain

    def ranges(self, block):
        """The ranges of a block: end, function, inline frames as (caller, source location), both answers."""
        at, position, new_source = self.rows.get(block)
        end = self.rows.get(block + 1)[0] if block + 1 < self.blocks else self.span
        require(block < self.blocks and at < end, "no such block")
        bits = Bits(self.data, self.block_bits * 8 + position)
        frames, callees, recent = [], {}, []
        state = {"code": 0, "answer": 0, "root": new_source, "source": new_source}
        function, last_statement, first = None, 0, True

        def code():
            state["code"] = self.codes.number(bits, ANSWER + min(state["code"], 11))
            return state["code"]

        def answer(code):
            link, head = divmod(code, 12)
            if head == 11:
                head += self.codes.number(bits, MORE_HEAD)
            defines, flag = divmod(head, 3)
            if link == 0:
                loc = 0
            elif link % 2:
                loc = state["answer"]
                for _ in range(link // 2):
                    require(loc, "no caller")
                    loc = frames[loc - 1][0]
            else:
                require(link // 2 <= len(recent), "an inline frame that is not remembered")
                loc = recent[-(link // 2)]
            require(defines <= 1024 and len(frames) + defines <= 6144, "too many inline frames")
            if not defines:
                require(loc in recent, "an inline frame that is not remembered")
                recent.remove(loc)
                recent.append(loc)
            number = None
            for _ in range(defines):
                if number is not None:
                    context = 3 if number == 0 else 4
                else:
                    context = 0 if not loc else 1 if loc in callees else 2
                number = self.codes.number(bits, SOURCE + context)
                if number == 0:
                    source = state["source"]
                    state["source"] += 1
                else:
                    base = state["root"] if not loc else callees.get(loc, frames[loc - 1][1])
                    source = base + 1 + unfold(number - 1)
                require(0 <= source < min(state["source"], self.source_count), "no such source location")
                if loc:
                    callees[loc] = source
                else:
                    state["root"] = source
                frames.append((loc, source))
                loc = len(frames)
                recent.append(loc)
                del recent[:-255]
            state["answer"] = loc
            return loc, min(defines, 3), flag

        count = 0
        while at < end:
            number = code()
            if number == 1:
                distance = self.codes.number(bits, FUNCTION + (not first))
                start = self.start + at
                function = start if distance == 0 else None if distance == 1 else start - (distance - 1)
                number = code()
            first = False
            if number == 0:
                answers = None
                at += self.codes.number(bits, GAP)
            else:
                exact, defines, flag = answer(number)
                if flag == 0:
                    last_statement = exact
                elif flag == 2:
                    last_statement, defines, flag = answer(code())
                    require(flag == 0, "a third answer")
                require(exact and last_statement, "an answer without an inline frame")
                answers = exact, last_statement
                at += self.codes.number(bits, LENGTH + defines)
            count += 1
            require(at <= end and count <= 255, "a block has too many ranges")
            yield at, function, frames, answers

    def source(self, number):
        """Name, file and line of a source location, as they are stored."""
        entry = self.entry(number)
        if entry[0] == "first":
            return entry[1:]
        first = self.entry(entry[1])
        require(first[0] == "first", "not the first source location of its name")
        if entry[0] == "near":
            return first[1], first[2], first[3] + entry[2]
        return first[1], entry[2], entry[3]

    def entry(self, wanted):
        """A source location as its group says it."""
        require(wanted < self.source_count, "no such source location")
        group = wanted >> self.group_bits
        number = group << self.group_bits
        position, expected = self.groups.get(group)
        bits = Bits(self.data, self.source_bits * 8 + position)
        first, again, file, line, last = number, 0, 0, 0, None
        has_files = self.table == 0
        while True:
            step = self.codes.number(bits, NAME + again)
            again = int(step != 0)
            if step == 0:
                first = number
                name = expected + unfold(self.codes.number(bits, ID))
                expected = name + 1
                if has_files:
                    step = self.codes.number(bits, FILE)
                    if step == 0:
                        line += unfold(self.codes.number(bits, NEW_LINE))
                    else:
                        file += unfold(step - 1)
                        line = self.codes.number(bits, NEW_LINE + 1)
                entry = "first", name, file, line
            else:
                before, first = (first, last), (first if last else number) + unfold(step - 1)
                require(0 <= first < number, "a name that is not there")
                before = before[1] if last and first == before[0] else None
                entry = "near", first, 0
                if has_files:
                    step = self.codes.number(bits, LINE + (before is None))
                    if step == 0:
                        other = self.codes.number(bits, OTHER_FILE)
                        entry = "far", first, other, self.codes.number(bits, OTHER_LINE)
                    elif before and before[0] == "far":
                        entry = "far", first, before[2], before[3] + unfold(step - 1)
                    else:
                        lines = before[2] if before and before[0] == "near" else 0
                        entry = "near", first, lines + unfold(step - 1)
            if number == wanted:
                return entry
            number, last = number + 1, entry


class Index:
    """An index file, or a value of a store."""

    def __init__(self, data):
        require(data[:8] == MAGIC, "not a symdex index")
        header = struct.unpack_from("<8sHHBBHQQ32s7Q", data)
        require(header[1:3] == (1, 128), "an index of another version")
        require(header[6] & ~1 == 0, "an index with a feature that this reader does not know")
        require(header[9] == len(data), "the file was cut")
        self.id = header[8][: header[3]]
        sections, at = {}, 128
        for name, size in zip(SECTIONS, header[10:]):
            sections[name] = data[at : at + size]
            at += size
        require(at + 32 == len(data) and data[-8:] == END, "the sections do not fill the file")
        self.metadata(Cursor(sections["metadata"], 8))
        cursor = Cursor(sections["codes"])
        self.codes = Codes(cursor.take(cursor.number(2)))
        self.group_bits, width = cursor.number(1), cursor.number(1)
        require(self.group_bits <= 4, "groups of too many source locations")
        self.places = Rows(sections["codes"], cursor.at, [width])
        self.chunks = sections["chunks"]
        self.names = Strings(sections["names"], self.counts[4])
        self.files = Strings(sections["files"], self.counts[5])

    def metadata(self, cursor):
        cursor.number(1)  # kind of id
        cursor.take(cursor.number(8))  # id
        self.image_name, self.arch = cursor.string(), cursor.string()
        cursor.take(8)  # cputype, cpusubtype
        self.base, self.image_size = cursor.number(8), cursor.number(8)
        self.executable = [(cursor.number(8), cursor.number(8)) for _ in range(cursor.number(8))]
        if cursor.number(1):
            cursor.number(8)  # base of __TEXT_EXEC
        self.chunk_span, self.row_rule = cursor.number(4), cursor.number(4)
        self.counts = [cursor.number(8) for _ in range(6)]
        self.partial = [(cursor.string(), cursor.number(8)) for _ in range(cursor.number(8))]
        self.builder = cursor.string()
        if cursor.number(1):
            cursor.take(16)  # digest of the input
        self.tables = [(cursor.number(8), cursor.number(8)) for _ in TABLES]

    def find(self, table, offset, policy):
        first, count = self.tables[table]
        number = offset // self.chunk_span
        if not first <= number < first + count:
            return None
        place = number - first + (self.tables[0][1] if table else 0)
        start, end = self.places.get(place)[0], self.places.get(place + 1)[0]
        require(start <= end <= len(self.chunks), "a chunk lies outside the section of chunks")
        if start == end:
            return None
        return Chunk(self, table, number, self.chunks[start:end]).find(offset, policy)

    def lookup(self, offset, policy=1):
        """The frames at an offset, innermost first: name, file, line, whether inlined, start of the function, table.
        Policy 0 is exact, 1 is statement."""
        found, table = self.find(0, offset, policy), 0
        if found is None:
            found, table = self.find(1, offset, policy), 1
            if found is None:
                return []
        function, chain = found
        name = chain[-1][0]
        last_function = function
        if table == 1:
            chain = chain[:1]
            name = chain[0][0]
        elif function is None:
            symbol = self.find(1, offset, policy)
            if symbol is not None:
                last_function, name = symbol[0], symbol[1][0][0]
        frames = []
        for depth, (own, file, line) in enumerate(chain):
            inlined = depth + 1 < len(chain)
            stored = own if inlined else name
            frames.append((
                self.names.get(stored - 1) if stored else None,
                self.files.get(file - 1) if file else None,
                line - 1 if line else None,
                inlined,
                function if inlined else last_function,
                TABLES[table],
            ))
        return frames

    def function_names(self, start):
        found = self.find(1, start, 0)
        if found is None or found[0] != start:
            return []
        return [self.names.get(name - 1) for name, _, _ in found[1] if name]


def text(value):
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else value.hex() or "''"


def main(arguments):
    options = {argument for argument in arguments if argument.startswith("--")}
    arguments = [argument for argument in arguments if argument not in options]
    if not arguments or options - {"--exact", "--names"}:
        sys.exit(__doc__)
    with open(arguments[0], "rb") as file:
        index = Index(file.read())
    offsets = [int(argument, 0) for argument in arguments[1:]]
    if "--names" in options:
        for name in index.function_names(offsets[0]):
            print(text(name))
        return
    if not offsets:
        offsets = (offset for start, end in index.executable for offset in range(start, end))
    for offset in offsets:
        frames = index.lookup(offset, 0 if "--exact" in options else 1)
        if not frames:
            print(offset)
        for name, file, line, inlined, function, table in frames:
            # Names and files are bytes of any kind, so they are printed in hexadecimal.
            fields = text(name), text(file), text(line), "inlined" if inlined else "", text(function), table
            print(offset, *fields, sep="\t")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Damaged as error:
        sys.exit(f"{sys.argv[-1]}: {error}")
    except BrokenPipeError:
        pass

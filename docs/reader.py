#!/usr/bin/env python3
"""Reads symdex indexes. Written from FORMAT.md alone; needs nothing but Python's standard library.

    reader.py [--exact] FILE [OFFSET ...]    the frames at image offsets; without offsets, at each address of the code
    reader.py --names FILE OFFSET            all names of the function that starts at OFFSET
    reader.py --unwind FILE [OFFSET ...]     the unwind rows at image offsets; without offsets, all of them
    reader.py --info FILE                    the metadata

A line of the first is a frame: offset, name, file, line, "inlined" or "", start of the function, table, readable name;
"-" stands for what is absent. Names and files are in hexadecimal there. A gap is a line with the offset alone.

A line of --unwind is a row: its offset if one is given, start, end, canonical frame address (CFA), register of the
return address, flags (1: signal frame, 2: signed return address, 4: valid at calls only), and for each register that
has a rule: its number, "=", and the caller's value. Brackets stand for the word in memory at an address, "r7" for a
register.
"""
import json
import struct
import sys
import zlib
from bisect import bisect_right
from collections import namedtuple
from dataclasses import dataclass
from typing import Iterator, List, Optional, Tuple

MAGIC = b"\x89SYMDEX\n"
TABLES = ("dwarf", "symbol_table")
COUNTS = ("units", "functions", "ranges", "symbols", "names", "files")
SEEN = ("functions", "inlined", "rows", "symbols", "functions_outside", "symbols_outside")
# The first context of each kind of number.
GAP, FUNCTION, MORE_HEAD, LENGTH, ANSWER, SOURCE = 0, 1, 3, 4, 8, 20
NAME, ID, FILE, LINE_OF_NEW, LINE_OF_KNOWN, OTHER_FILE, OTHER_LINE = 25, 27, 28, 29, 31, 33, 34
CONTEXTS = 35
# Contexts of unwind rows: the first one of the steps, then rules and lengths.
STEP, RULE, LENGTH_AFTER_GAP, LENGTH_OF_ROW, UNWIND_CONTEXTS = 0, 9, 10, 11, 12
STATES_CFA = 8  # the flag of a layout that states the CFA; the others are lower
# A frame of an answer, or in `symbol_table` a name of a function.
Frame = namedtuple("Frame", "name file line inlined function_start table readable")
# A range of a table with its answers, which are inline frames, or a gap, which has none.
Range = namedtuple("Range", "start end function_start exact statement", defaults=(None, None, None))
# A source location; name, file and line are stored plus one. `first` is the number of the first one with this name,
# and only that has `name`. A relative one has the file of the first, and `line` is what is added to the line of that.
Location = namedtuple("Location", "first name file line relative", defaults=(False,))
# The unwind rules of a range of code, as the texts that --unwind prints.
UnwindRow = namedtuple("UnwindRow", "start end cfa return_register flags registers")


class Damaged(Exception):
    """The file is damaged, is no index, or has a version or feature that this reader does not know."""


def require(condition, what: str) -> None:
    """Fails with this message unless the condition holds."""
    if not condition:
        raise Damaged(what)


def unfold(number: int) -> int:
    """The signed number that was written as 0, 1, 2, 3, 4 for 0, -1, 1, -2, 2."""
    return -(number // 2) - 1 if number % 2 else number // 2


def checksum(data: bytes, padded_id: bytes, section: int, index: int) -> int:
    """The checksum of some bytes at their place."""
    return zlib.crc32(data) ^ zlib.crc32(padded_id + struct.pack("<I", section)) ^ index & 0xffffffff


class Cursor:
    """Reads whole bytes, in order."""
    def __init__(self, data: bytes, what: str):
        self.data, self.what, self.at = data, what, 0

    def take(self, count: int) -> bytes:
        """The next bytes."""
        require(count <= len(self.data) - self.at, f"{self.what}: ends too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def number(self, size: int) -> int:
        """A little-endian number of so many bytes."""
        return int.from_bytes(self.take(size), "little")

    def varint(self) -> int:
        """A LEB128 number of at most ten bytes and 64 bits."""
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 127) << shift
            shift += 7
            require(value < 1 << 64 and shift <= 70, f"{self.what}: a varint is too long")
            if byte < 128:
                return value

    def text(self) -> str:
        """A string: its length and UTF-8."""
        return self.take(self.number(8)).decode("utf-8", "backslashreplace")

    def flag(self) -> bool:
        """Whether a value follows that can be absent."""
        flag = self.number(1)
        require(flag <= 1, f"{self.what}: an option is neither 0 nor 1")
        return flag == 1


class Bits:
    """Reads bits from the highest of each byte on."""
    def __init__(self, data: bytes, at: int, what: str):
        self.data, self.at, self.what = data, at, what

    def peek(self, count: int) -> int:
        """Peeks at the next bits; zeros after the last byte."""
        first, last = self.at // 8, (self.at + count + 7) // 8
        word = int.from_bytes(self.data[first:last].ljust(last - first, b"\0"), "big")
        return word >> (8 * last - self.at - count) & ((1 << count) - 1)

    def take(self, count: int) -> int:
        """A number of so many bits."""
        number, self.at = self.peek(count), self.at + count
        require(self.at <= 8 * len(self.data), f"{self.what}: ends too early")
        return number


class Rows:
    """A table of numbers whose columns have fixed widths in bits."""
    def __init__(self, cursor: Cursor, widths: bytes, count: int):
        require(max(widths) <= 57, f"{cursor.what}: a column is too wide")
        self.widths, self.count, self.what = widths, count, cursor.what
        self.data = cursor.take((count * sum(widths) + 7) // 8)

    def __getitem__(self, index: int) -> List[int]:
        """The numbers of one row."""
        bits = Bits(self.data, index * sum(self.widths), self.what)
        return [bits.take(width) for width in self.widths]


class Code:
    """The prefix code of one context."""
    def __init__(self, cursor: Cursor):
        count = cursor.number(1)
        words = enumerate(cursor.take(9), 1) if count > 1 else [(0, count)]
        lengths = [length for length, number in words for _ in range(number)]
        symbols = cursor.take(count)
        require(len(lengths) == count and max(symbols, default=0) <= 209, "codes: a code has impossible symbols")
        require(count == 0 or sum(512 >> length for length in lengths) == 512, "codes: a code is not complete")
        # The symbol that each 9 bits begin with, and how many of them are its.
        self.table = [pair for pair in zip(symbols, lengths) for _ in range(512 >> pair[1])]

    def number(self, bits: Bits) -> int:
        """The next number."""
        require(self.table, f"{bits.what}: a number has a context without a code")
        symbol, length = self.table[bits.peek(9)]
        bits.take(length)
        if symbol < 128:
            return symbol
        follow = (symbol - 128) // 2 + 6
        return ((2 + symbol % 2) << follow) + bits.take(follow)


class Strings:
    """The section of names or of files, or the readable names."""
    def __init__(self, data: bytes, count: int, what: str):
        self.data, self.count, self.what = data, count, what
        cursor = Cursor(data, what)
        self.rules, self.symbols = cursor.varint(), cursor.varint()
        self.width, longest = cursor.number(1), cursor.number(1)
        require(1 <= self.width <= 28 and longest <= 64, f"{what}: symbols or terminals are too long")
        terminals = [cursor.varint() for _ in range(longest)]
        self.groups_at = cursor.at
        self.rules_at = self.groups_at + (count + 15) // 16 * 12
        self.symbols_at = self.rules_at + (self.rules * 2 * self.width + 7) // 8
        at = self.symbols_at + (self.symbols * self.width + 7) // 8
        end = at + sum(length * number for length, number in enumerate(terminals, 1))
        require(end == len(data), f"{what}: the parts do not add up to the section")
        self.terminals = []  # where they are
        for length, number in enumerate(terminals, 1):
            self.terminals += [slice(at + length * index, at + length * (index + 1)) for index in range(number)]
            at += length * number

    def get(self, index: int) -> bytes:
        """The string with this id."""
        require(index < self.count, f"{self.what}: there is no string {index}")
        bits = Bits(self.data, 8 * (self.groups_at + index // 16 * 12), self.what)
        first, sizes = bits.take(32), [bits.take(4) for _ in range(16)]
        first += sum(sizes[:index % 16])
        require(first + sizes[index % 16] <= self.symbols, f"{self.what}: string {index} lies outside")
        bits = Bits(self.data, 8 * self.symbols_at + first * self.width, self.what)
        # Symbols that are still to be read, the next one last, and how many rules each is in.
        stack, text = [(bits.take(self.width), 0) for _ in range(sizes[index % 16])][::-1], bytearray()
        while stack:
            symbol, depth = stack.pop()
            if symbol < len(self.terminals):
                text += self.data[self.terminals[symbol]]
                require(len(text) <= 65536, f"{self.what}: a string is too long")
                continue
            rule = symbol - len(self.terminals)
            require(rule < self.rules and depth < 64, f"{self.what}: rules are too deep, or one is not there")
            bits = Bits(self.data, 8 * self.rules_at + 2 * rule * self.width, self.what)
            left, right = bits.take(self.width), bits.take(self.width)
            require(max(left, right) < symbol, f"{self.what}: a rule refers to one that is not there already")
            stack += [(right, depth + 1), (left, depth + 1)]
        return bytes(text)


class ReadableNames:
    """The optional section of readable names."""
    def __init__(self, data: bytes, names: int):
        cursor = Cursor(data, "readable names")
        count = int.from_bytes(cursor.take(4), "big")
        self.entries = cursor.take((names + 63) // 64 * 12)
        self.strings = Strings(data[cursor.at:], count, cursor.what)

    def get(self, index: int) -> Optional[bytes]:
        """The readable form of the name with this id, or none."""
        before, names = struct.unpack_from(">IQ", self.entries, index // 64 * 12)
        place = 63 - index % 64
        if names >> place & 1 == 0:
            return None
        return self.strings.get(before + bin(names >> place >> 1).count("1"))


@dataclass(eq=False)
class InlineFrame:
    """A source location and what it is inlined into."""
    location: int
    caller: Optional["InlineFrame"]
    last_child: Optional[int] = None  # source location of the last inline frame with this caller


class Block:
    """A block while it is decoded."""
    def __init__(self, codes: List[Code], bits: Bits, first_new: int, locations: int):
        self.codes, self.bits, self.locations = codes, bits, locations
        self.next_location = self.last_concrete = first_new
        self.last_code, self.defined, self.last_answer, self.recent = 0, 0, None, []  # the most recent last
        self.last = Range(0, 0)  # the last range that was no gap

    def number(self, context: int) -> int:
        """The next number."""
        return self.codes[context].number(self.bits)

    def range(self, start: int, is_first: bool) -> Range:
        """The next range or gap."""
        code, function_start = self.code(), self.last.function_start
        if code == 1:
            distance = self.number(FUNCTION if is_first else FUNCTION + 1)
            function_start = None if distance == 1 else start - max(distance - 1, 0)
            require(distance <= 1 << 47 and (function_start or 0) >= 0, "a function start is not possible")
            code = self.code()
            require(code > 1, "a function changes without a range")
        if code == 0:
            return Range(start, start + self.number(GAP))
        exact, head = self.answer(code)
        statement = self.last.statement if head % 3 == 1 else exact
        require(statement, "there is no answer before")
        if head % 3 == 2:
            statement, head = self.answer(self.code())
            require(head % 3 == 0, "an answer under statement has another")
        end = start + self.number(LENGTH + min(head // 3, 3))
        self.last = Range(start, end, function_start, exact, statement)
        return self.last

    def code(self) -> int:
        """The code of an answer, a gap or a change of function."""
        self.last_code = self.number(ANSWER + min(self.last_code, 11))
        return self.last_code

    def answer(self, code: int) -> Tuple[InlineFrame, int]:
        """The answer with this code, and its head."""
        head = code % 12 + (self.number(MORE_HEAD) if code % 12 == 11 else 0)
        frame = self.linked(code // 12)
        if head < 3:
            require(frame in self.recent, "an answer is not one that the block remembers")
            self.recent.remove(frame)
            self.recent.append(frame)
        context = SOURCE if frame is None else SOURCE + 2 if frame.last_child is None else SOURCE + 1
        for _ in range(head // 3):
            number = self.number(context)
            frame = self.define(frame, number)
            context = SOURCE + 4 if number else SOURCE + 3
        self.last_answer = frame
        return frame, head

    def linked(self, link: int) -> Optional[InlineFrame]:
        """The inline frame that a link means, or none."""
        if link == 0:
            return None
        if link % 2 == 0:
            require(link // 2 <= len(self.recent), "a link goes to no inline frame")
            return self.recent[-(link // 2)]
        callers = [self.last_answer]
        while callers[-1] and len(callers) <= min(link // 2, 255):
            callers.append(callers[-1].caller)
        require(self.last_answer and link // 2 < len(callers), "a link goes to no inline frame")
        return callers[-1]

    def define(self, caller: Optional[InlineFrame], number: int) -> InlineFrame:
        """Defines an inline frame with the source location that a number means."""
        base = self.last_concrete
        if caller:
            base = caller.location if caller.last_child is None else caller.last_child
        location = base + 1 + unfold(number - 1) if number else self.next_location
        self.next_location += number == 0
        require(0 <= location < min(self.next_location, self.locations), "there is no such source location")
        if caller:
            caller.last_child = location
        else:
            self.last_concrete = location
        self.defined += 1
        require(self.defined <= 6144, "a block defines too many inline frames")
        self.recent = (self.recent + [InlineFrame(location, caller)])[-255:]
        return self.recent[-1]


class Chunk:
    """A chunk of a table."""
    def __init__(self, data: bytes, start: int, span: int, names_only: bool, codes: List[Code], group_bits: int):
        self.start, self.span, self.names_only, self.codes = start, span, names_only, codes
        self.group_size, self.what = 1 << group_bits, f"chunk at {start:#x}"
        cursor = Cursor(data, self.what)
        blocks, self.location_count, block_bytes = cursor.varint(), cursor.varint(), cursor.varint()
        require(1 <= blocks <= span and self.location_count <= 4194304, f"{self.what}: the head is not possible")
        widths = cursor.take(5)
        self.blocks = Rows(cursor, widths[:3], blocks)
        self.groups = Rows(cursor, widths[3:], (self.location_count + self.group_size - 1) >> group_bits)
        self.block_data, self.location_data = cursor.take(block_bytes), data[cursor.at:]

    def find(self, offset: int) -> Range:
        """The range or gap that has this image offset."""
        index = bisect_right(self.blocks, [offset - self.start, float("inf")], 0, self.blocks.count) - 1
        require(index >= 0, f"{self.what}: the first block does not start with it")
        at, position, first_new = self.blocks[index]
        end = self.blocks[index + 1][0] if index + 1 < self.blocks.count else self.span
        block = Block(self.codes, Bits(self.block_data, position, self.what), first_new, self.location_count)
        item = Range(self.start + at, self.start + at)
        for count in range(255):
            item = block.range(item.end, count == 0)
            require(item.start < item.end <= self.start + end, f"{self.what}: a range does not end in its block")
            if offset < item.end:
                return item
        raise Damaged(f"{self.what}: a block has too many ranges")

    def location(self, index: int) -> Tuple[int, int, int]:
        """Name, file and line of a source location, each stored plus one."""
        item = self.group(index // self.group_size)[index % self.group_size]
        first = self.group(item.first // self.group_size)[item.first % self.group_size]
        require(first.first == item.first, f"{self.what}: a name is that of a source location whose name is not new")
        file, line = (first.file, first.line + item.line) if item.relative else (item.file, item.line)
        require(min(first.name, file) >= 0 and 0 <= line < 1 << 32, f"{self.what}: a source location is not possible")
        return first.name, file, line

    def group(self, number: int) -> List[Location]:
        """The source locations of a group."""
        position, expected = self.groups[number]
        bits = Bits(self.location_data, position, self.what)
        start, group, name, file, line = number * self.group_size, [], expected - 1, 0, 0
        for index in range(start, min(start + self.group_size, self.location_count)):
            before = group[-1] if group else None
            step = self.codes[NAME + 1 if before and before.first != index - 1 else NAME].number(bits)
            if step:
                first = unfold(step - 1) + (before.first if before else index)
                require(0 <= first < index, f"{self.what}: a name is not there already")
                group.append(self.known_name(bits, first, before) if not self.names_only else Location(first, 0, 0, 0))
                continue
            name += 1 + unfold(self.codes[ID].number(bits))
            step = 0 if self.names_only else self.codes[FILE].number(bits)
            if step:
                file, line = file + unfold(step - 1), self.codes[LINE_OF_NEW + 1].number(bits)
            elif not self.names_only:
                line += unfold(self.codes[LINE_OF_NEW].number(bits))
            group.append(Location(index, name, file, line))
        return group

    def known_name(self, bits: Bits, first: int, before: Optional[Location]) -> Location:
        """A source location with the name of the source location `first`."""
        has_same_name = before is not None and before.first == first
        line = self.codes[LINE_OF_KNOWN if has_same_name else LINE_OF_KNOWN + 1].number(bits)
        if line == 0:
            return Location(first, 0, self.codes[OTHER_FILE].number(bits), self.codes[OTHER_LINE].number(bits))
        if has_same_name:
            return Location(first, 0, before.file, before.line + unfold(line - 1), before.relative)
        return Location(first, 0, 0, unfold(line - 1), True)


class UnwindRows:
    """The optional section of unwind rows."""
    def __init__(self, data: bytes):
        cursor = Cursor(data, "unwind rows")
        blocks, self.end, rules, steps, layouts, codes, layout_bytes, block_bytes = (cursor.varint() for _ in range(8))
        require(max(blocks, rules, steps, layouts) <= 8 * len(data), "unwind rows: a table is too long")
        widths, codes = cursor.take(9), codes + cursor.at
        self.codes = [Code(cursor) for _ in range(UNWIND_CONTEXTS)]
        require(cursor.at == codes, "unwind rows: the codes have another size")
        self.blocks, self.rules = Rows(cursor, widths[:2], blocks), Rows(cursor, widths[2:6], rules)
        self.steps, self.layouts = Rows(cursor, widths[6:8], steps), Rows(cursor, widths[8:], layouts)
        self.layout_bytes, self.block_bytes = cursor.take(layout_bytes), cursor.take(block_bytes)
        require(cursor.at == len(data), "unwind rows: the parts do not add up to the section")

    def find(self, offset: int) -> Optional[UnwindRow]:
        """The row at an image offset, or none in a gap."""
        block = bisect_right(self.blocks, [offset, float("inf")], 0, self.blocks.count) - 1
        rows = self.rows(block) if block >= 0 else ()
        return next((row for row in rows if row.start <= offset < row.end), None)

    def all(self) -> Iterator[UnwindRow]:
        """All rows in the order of their addresses."""
        for block in range(self.blocks.count):
            yield from self.rows(block)

    def rows(self, block: int) -> Iterator[UnwindRow]:
        """The rows of a block."""
        (start, position), rule, is_last = self.blocks[block], 0, block + 1 == self.blocks.count
        end, last = (self.end, 8 * len(self.block_bytes)) if is_last else self.blocks[block + 1]
        require(start < end and position <= last, "unwind rows: a block is not possible")
        bits = Bits(self.block_bytes, position, "unwind rows")
        for _ in range(255):
            rule, length = self.step(bits, rule, start)
            require(0 < length <= end - start, "unwind rows: a range does not end in its block")
            require(rule < self.rules.count, "unwind rows: a range has a rule that is not there")
            _, layout, register, added = self.rules[rule]
            if layout:
                yield self.row(start, start + length, layout - 1, register, unfold(added))
            start += length
            if start == end:
                padding = 7 if is_last else 0
                require(0 <= last - bits.at <= padding, "unwind rows: a block does not end with its ranges")
                return
        raise Damaged("unwind rows: a block has too many ranges")

    def step(self, bits: Bits, before: int, start: int) -> Tuple[int, int]:
        """The rule and the length of the range that starts at `start`, after a range with the rule `before`."""
        is_last = before + 1 == self.rules.count
        first, end = self.rules[before][0], self.steps.count if is_last else self.rules[before + 1][0]
        require(first <= end <= self.steps.count, "unwind rows: the steps of a rule are not possible")
        step = self.codes[STEP + min((end - first).bit_length(), RULE - 1)].number(bits)
        require(step <= end - first, "unwind rows: a rule does not have this step")
        rule, length = self.steps[first + step - 1] if step else (self.codes[RULE].number(bits), 0)
        if length == 0:
            context = LENGTH_OF_ROW if rule and before else LENGTH_AFTER_GAP
            return rule, self.codes[context].number(bits)
        return rule, 16 - start % 16 if length == 1 else length - 1

    def row(self, start: int, end: int, layout: int, register: int, added: int) -> UnwindRow:
        """The row of a range with this layout; the CFA is a register - 1 plus a number, or the layout states it."""
        require(layout < self.layouts.count, "unwind rows: a rule has a layout that is not there")
        [first] = self.layouts[layout]
        last = self.layouts[layout + 1][0] if layout + 1 < self.layouts.count else len(self.layout_bytes)
        require(first < last <= len(self.layout_bytes) and last - first <= 4096, "unwind rows: impossible layout")
        cursor = Cursor(self.layout_bytes[first:last], "unwind rows: a layout")
        flags, return_register = cursor.varint(), cursor.varint()
        require(flags < 2 * STATES_CFA and return_register <= 65535, "unwind rows: impossible flags or register")
        require((flags & STATES_CFA == 0) == (register > 0), "unwind rows: the CFA is stated twice, or not at all")
        cfa = self.value(cursor, cursor.varint()) if register == 0 else f"r{register - 1}{added:+}"
        require(register <= 65536 and not cfa.startswith("cfa"), "unwind rows: the CFA is not possible")
        registers, number, count = [], -1, cursor.varint()
        require(count <= 128, "unwind rows: a layout has too many registers")
        for _ in range(count):
            number, kind = number + 1 + cursor.varint(), cursor.varint()
            require(number < 65535, "unwind rows: a register is not possible")
            value = ("undefined", "same")[kind] if kind < 2 else self.value(cursor, kind // 2 - 1)
            registers.append(f"{number}=[{value}]" if kind > 1 and kind % 2 == 0 else f"{number}={value}")
        require(cursor.at == len(cursor.data), "unwind rows: there are bytes after a layout")
        return UnwindRow(start, end, cfa, return_register, flags % STATES_CFA, registers)

    def value(self, cursor: Cursor, kind: int) -> str:
        """A value of this kind."""
        require(kind <= 4, "unwind rows: a value has an unknown kind")
        if kind == 0:
            return f"cfa{unfold(cursor.varint()):+}"
        if kind == 3:
            size = cursor.varint()
            require(size <= 255, "unwind rows: an expression is too long")
            return f"expression({cursor.take(size).hex()})"
        if kind == 4:
            return "unknown"
        register = f"r{cursor.varint()}{unfold(cursor.varint()):+}"
        return register if kind == 1 else f"[{register}]{unfold(cursor.varint()):+}"


class Index:
    """An index file, or a value of a store."""
    def __init__(self, data: bytes):
        parts = self.read_header(data)
        self.metadata = self.read_metadata(Cursor(parts[0], "metadata"))
        self.span, counts = self.metadata["chunk_span"], self.metadata["counts"]
        _, codes, files, checksums, names, self.chunks = parts
        self.check_pages([codes, files, names, self.chunks], checksums, 2)
        cursor = Cursor(codes, "codes")
        end = cursor.number(2) + 2
        self.codes = [Code(cursor) for _ in range(CONTEXTS)]
        require(cursor.at == end, "codes: they have another size")
        self.group_bits = cursor.number(1)
        require(self.group_bits <= 4, "codes: groups are too large")
        self.places = Rows(cursor, cursor.take(1), sum(self.metadata[table][1] for table in TABLES) + 1)
        self.names, self.files = Strings(names, counts["names"], "names"), Strings(files, counts["files"], "files")
        self.readable = ReadableNames(self.optional[0], counts["names"]) if 0 in self.optional else None
        self.unwind = UnwindRows(self.optional[1]) if 1 in self.optional else None

    def read_header(self, data: bytes) -> List[bytes]:
        """Checks the header, and returns the parts after it."""
        require(data[:8] == MAGIC and len(data) >= 140, "not a symdex index, or the file was cut")
        version, size = struct.unpack_from("<HH", data, 8)
        end = max(size - 4, 0)
        require(struct.pack("<I", zlib.crc32(data[:end])) == data[end:size], "header: wrong checksum")
        require(version == 1 and size == 140, f"an index of version {version}, which this reader does not know")
        length, kind, zero, incompatible, features, self.padded_id = struct.unpack_from("<BBHQQ32s", data, 12)
        file_size, *sizes = struct.unpack_from("<7Q", data, 64)
        require(incompatible & ~1 == 0, "an index with a feature that this reader does not know")
        self.id = kind, self.padded_id[:length]
        require(1 <= length <= 32 and kind <= 1 and zero == 0, "header: the image id is not possible")
        require(file_size == len(data), f"header: the file has {len(data)} bytes instead of {file_size}")
        cursor = Cursor(data[140:], "file")
        parts = [cursor.take(size) for size in sizes]
        self.optional = {}  # by bit
        for bit in range(32):
            if features >> bit & 1:
                contents = cursor.take(cursor.number(8))
                self.optional[bit] = contents
                sums = cursor.take((len(contents) + 511) // 512 * 4)
                if bit <= 1:
                    self.check_pages([contents], sums, 9 + bit)
        require(cursor.at == len(cursor.data), "header: the sections do not fill the file")
        return parts

    def check_pages(self, parts: List[bytes], sums: bytes, first: int) -> None:
        """Checks all pages of consecutive sections, of which the first has the number `first`."""
        checksums = Cursor(sums, "checksums")
        for section, data in enumerate(parts, first):
            for page in range((len(data) + 511) // 512):
                stored, page_data = checksums.number(4), data[512 * page:512 * page + 512]
                found = checksum(page_data, self.padded_id, section, page)
                require(found == stored, f"section {section}: the checksum of page {page} is wrong")
        require(checksums.at == len(sums), "checksums: there are more than pages")

    def grade(self) -> str:
        """The most that the index answers."""
        counts = self.metadata["counts"]
        if counts["files"] or counts["names"]:
            return "lines" if counts["files"] else "names"
        return "bounds" if counts["functions"] or counts["ranges"] or counts["symbols"] else "nothing"

    def read_metadata(self, cursor: Cursor) -> dict:
        """The fields of the metadata."""
        stored, found = cursor.number(4), checksum(cursor.data[4:], self.padded_id, 1, 0)
        require(found == stored, "metadata: wrong checksum")
        fields = {"id": (cursor.number(1), cursor.take(cursor.number(8))), "image_name": cursor.text()}
        require(fields["id"] == self.id, "metadata: the image id is not that of the header")
        fields["arch"] = (cursor.text(), cursor.number(4), cursor.number(4))
        fields["base"], fields["image_size"] = cursor.number(8), cursor.number(8)
        fields["executable"] = [(cursor.number(8), cursor.number(8)) for _ in range(cursor.number(8))]
        fields["text_exec_base"] = cursor.number(8) if cursor.flag() else None
        span = fields["chunk_span"] = cursor.number(4)
        require(1 <= span <= 1 << 20, "metadata: impossible chunk_span")
        fields["counts"] = {name: cursor.number(8) for name in COUNTS}
        fields["seen"] = {name: cursor.number(8) for name in SEEN}
        fields["partial"] = [(cursor.text(), cursor.number(8)) for _ in range(cursor.number(8))]
        fields["builder"], fields["input_digest"] = cursor.text(), cursor.take(16) if cursor.flag() else None
        for table in TABLES:
            first, count = fields[table] = cursor.number(8), cursor.number(8)
            require(count <= 4194304 and (first + count) * span < 1 << 64, f"metadata: impossible chunks of {table}")
        fields["segments"] = None
        if cursor.at < len(cursor.data):
            count = cursor.number(8)
            require(count <= 64, "metadata: too many segments")
            fields["segments"] = [tuple(cursor.number(8) for _ in range(3)) for _ in range(count)]
        require(cursor.at == len(cursor.data), "metadata: there are bytes after the fields")
        return fields

    def find(self, table: str, offset: int, policy: str) -> List[Frame]:
        """The chain that a table has at an image offset, the innermost frame or the best name first; empty in a gap."""
        (first, count), number = self.metadata[table], offset // self.span
        if not first <= number < first + count:
            return []
        at = number - first + (self.metadata["dwarf"][1] if table == "symbol_table" else 0)
        [begin], [end] = self.places[at], self.places[at + 1]
        require(begin <= end <= len(self.chunks), "codes: a chunk lies outside of its section")
        data, names_only = self.chunks[begin:end], table == "symbol_table"
        if not data:
            return []
        chunk = Chunk(data, number * self.span, self.span, names_only, self.codes, self.group_bits)
        item, frames = chunk.find(offset), []
        frame = getattr(item, policy)
        while frame:
            name, file, line = chunk.location(frame.location)
            readable = self.readable.get(name - 1) if name and self.readable else None
            name = self.names.get(name - 1) if name else None
            file = self.files.get(file - 1) if file else None
            inlined = "inlined" if frame.caller and table == "dwarf" else ""
            frames.append(Frame(name, file, line - 1 if line else None, inlined, item.function_start, table, readable))
            frame = frame.caller
            require(len(frames) <= 1024, "an answer has too many frames")
        return frames

    def lookup(self, offset: int, policy: str) -> List[Frame]:
        """The frames at an image offset, innermost first; empty if the index does not know the address."""
        frames = self.find("dwarf", offset, policy)
        if frames and frames[-1].function_start is not None:
            return frames
        symbols = self.find("symbol_table", offset, policy)[:1]
        if frames and symbols:
            name, start, readable = symbols[0].name, symbols[0].function_start, symbols[0].readable
            frames[-1] = frames[-1]._replace(name=name, function_start=start, readable=readable)
        return frames or symbols


def text(value) -> str:
    """A field of a line; names and files are bytes of any kind, so they are in hexadecimal."""
    present = (value.hex() or "''") if isinstance(value, bytes) else str(value)
    return "-" if value is None else present


def main(arguments: List[str]) -> None:
    """Runs the command line."""
    options = [argument for argument in arguments if argument.startswith("--")]
    path, *offsets = [argument for argument in arguments if argument not in options] or [None]
    known = options in ([], ["--exact"], ["--info"], ["--unwind"]) or options == ["--names"] and len(offsets) == 1
    try:
        offsets = [int(offset, 0) for offset in offsets]
    except ValueError:
        known = False
    if path is None or not known:
        sys.exit(__doc__)
    with open(path, "rb") as file:
        index = Index(file.read())
    if options == ["--names"]:
        for frame in index.find("symbol_table", offsets[0], "exact"):
            if frame.function_start == offsets[0] and frame.name is not None:
                print(text(frame.name))
    elif options == ["--unwind"]:
        require(index.unwind, "the index has no unwind rows; symdex build --unwind makes them")
        asked = [([offset], index.unwind.find(offset)) for offset in offsets]
        for before, row in asked if offsets else (([], row) for row in index.unwind.all()):
            print(*before, *(row[:-1] + tuple(row.registers) if row else ()), sep="\t")
    elif options == ["--info"]:
        print(json.dumps(index.metadata | {"grade": index.grade()}, indent=1, default=text))
    else:
        code = (offset for start, end in index.metadata["executable"] for offset in range(start, end))
        for offset in offsets or code:
            for frame in index.lookup(offset, "exact" if options else "statement") or [()]:
                print(offset, *(text(field) for field in frame), sep="\t")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (Damaged, OSError) as error:
        sys.exit(f"{' '.join(sys.argv[1:])}: {error}")

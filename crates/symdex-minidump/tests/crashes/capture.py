"""Runs in gdb: prints the registers, the stack and the frames of a stopped program, each time `capture` is called.

A capture has lines `registers NAME=VALUE ...`, `memory ADDRESS BYTES`, `map START END PATH` and, for each frame from the
innermost one, `frame PC KIND NAME`; it ends with a line `end`.
"""

import re

import gdb

X86_64 = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip".split()
ARM64 = [f"x{number}" for number in range(31)] + ["sp", "pc"]
ARM = [f"r{number}" for number in range(13)] + ["sp", "lr", "pc"]
STACK_BYTES = 24 << 10
PIECE_BYTES = 8


def names(frame):
    arch = frame.architecture().name()
    return X86_64 if "x86-64" in arch else ARM64 if "aarch64" in arch else ARM


def value(frame, name):
    return int(frame.read_register(name)) & 0xFFFFFFFFFFFFFFFF


def memory(start):
    """The bytes from `start` on, as far as they can be read."""
    found = b""
    while len(found) < STACK_BYTES:
        try:
            found += bytes(gdb.selected_inferior().read_memory(start + len(found), PIECE_BYTES))
        except gdb.MemoryError:
            break
    return found


def maps():
    """Lines for the mappings of files; none if the target does not know them."""
    try:
        text = gdb.execute("info proc mappings", to_string=True)
    except gdb.error:
        return
    for line in text.splitlines():
        found = re.match(r"\s*(0x[0-9a-f]+)\s+(0x[0-9a-f]+)\s.*?(/.*)$", line)
        if found:
            print("map", *found.groups())


def capture():
    frame = gdb.newest_frame()
    frame.select()
    registers = {name: value(frame, name) for name in names(frame)}
    # What gdb prints of a step may not end its line.
    print("\ncapture")
    print("registers", *(f"{name}={number:#x}" for name, number in registers.items()))
    stack = registers.get("rsp", registers.get("sp"))
    # Code on x86 may use 128 bytes below the stack pointer.
    print("memory", f"{stack:#x}", memory(stack).hex())
    maps()
    while frame is not None:
        # Frames of inlined functions and of tail calls are not on the stack.
        if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            kind = "signal" if frame.type() == gdb.SIGTRAMP_FRAME else "normal"
            print("frame", f"{frame.pc():#x}", kind, frame.name() or "?")
        frame = frame.older()
    print("end")


def steps(count):
    """Captures before each of the next `count` instructions."""
    for _ in range(count):
        capture()
        gdb.execute("stepi", to_string=True)

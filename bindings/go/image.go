package symdex

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

// An ImageID identifies an image: the LC_UUID of Mach-O, the build id of ELF, or a hash if the image has neither. IDs
// can be compared with ==.
type ImageID struct {
	bytes [32]byte
	size  uint8
	hash  bool
}

// ParseImageID returns the id that crash reports and profiles print: hexadecimal digits in either case, with or without
// dashes, and with the prefix "h-" if it is a hash.
func ParseImageID(text string) (ImageID, error) {
	var id ImageID
	digits := strings.ToLower(text)
	if rest, isHash := strings.CutPrefix(digits, "h-"); isHash {
		id.hash, digits = true, rest
	}
	digits = strings.ReplaceAll(digits, "-", "")
	if len(digits) < 2 || len(digits) > 2*len(id.bytes) || len(digits)%2 != 0 {
		return ImageID{}, errors.New("symdex: an image id has 1 to 32 bytes in hexadecimal, and this is none: " + text)
	}
	size, err := hex.Decode(id.bytes[:], []byte(digits))
	if err != nil {
		return ImageID{}, errors.New("symdex: an image id has only hexadecimal digits and dashes, and this is none: " + text)
	}
	id.size = uint8(size)
	return id, nil
}

// Bytes returns the bytes of the id.
func (id ImageID) Bytes() []byte { return id.bytes[:id.size] }

// IsHash returns whether the id is a hash of the image's code, because the image has no id of its own.
func (id ImageID) IsHash() bool { return id.hash }

// String returns the id as in the name of its index file: lower-case hexadecimal, with "h-" before a hash.
func (id ImageID) String() string {
	if id.hash {
		return "h-" + hex.EncodeToString(id.Bytes())
	}
	return hex.EncodeToString(id.Bytes())
}

// An Arch is the architecture of an image.
type Arch struct {
	// Name is the name that lipo prints, such as "arm64".
	Name string
	// CPUType and CPUSubtype are those of Mach-O. Machines that only ELF has have 0 and their e_machine.
	CPUType, CPUSubtype uint32
}

// has32BitRegisters returns whether registers have 32 bits and not 64.
func (a Arch) has32BitRegisters() bool {
	if a.CPUType == 0 {
		return !slices.Contains([]string{"loongarch64", "mips64el", "ppc64le", "riscv64"}, a.Name)
	}
	return a.CPUType&(cpuArch64|cpuArch64With32) == 0
}

// Flags of Mach-O's numbers: those of 64-bit architectures, and of arm64_32, whose addresses have 32 bits.
const (
	cpuArch64       = 0x01000000
	cpuArch64With32 = 0x02000000
)

// cpuTypeARM is Mach-O's number of 32-bit ARM. Indexes of ELF images use it, too.
const cpuTypeARM = 12

// A FrameAddress is an address of a stack frame, in the address space of a process.
type FrameAddress struct {
	address  uint64
	isReturn bool
}

// InstructionPointer returns the address of the instruction that a frame executes: that of the innermost frame of a
// thread, and of the frame that a signal interrupted. It is looked up unchanged.
func InstructionPointer(address uint64) FrameAddress { return FrameAddress{address, false} }

// ReturnAddress returns the address at which a frame continues: that of every other frame. It is that of the
// instruction after the call, so the byte before it is looked up.
func ReturnAddress(address uint64) FrameAddress { return FrameAddress{address, true} }

// ImageOffset returns the offset to look up in an image that was loaded at load. On 32-bit ARM, bit 0 of a return
// address, which states the instruction set, is cleared first. The result is false if the address is below the image.
func (a FrameAddress) ImageOffset(load uint64, arch Arch) (offset uint64, ok bool) {
	address := a.address
	if a.isReturn {
		if arch.CPUType == cpuTypeARM {
			address &^= 1
		}
		if address == 0 {
			return 0, false
		}
		address--
	}
	return address - load, address >= load
}

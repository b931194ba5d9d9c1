package symdex

import (
	"encoding/binary"
	"math/bits"
)

// XXH3 without a secret and with seed 0, as its specification defines it. Inputs here are pages of up to 512 bytes,
// their places (44 bytes), the metadata and the whole file.

const (
	prime32a = 0x9E3779B1
	prime32b = 0x85EBCA77
	prime32c = 0xC2B2AE3D
	prime64a = 0x9E3779B185EBCA87
	prime64b = 0xC2B2AE3D27D4EB4F
	prime64c = 0x165667B19E3779F9
	prime64d = 0x85EBCA77C2B2AE63
	prime64e = 0x27D4EB2F165667C5
	primeMix = 0x165667919E3779F9
	primeTwo = 0x9FB21C651E98DF25

	stripeSize      = 64
	stripesPerBlock = (len(xxh3Secret) - stripeSize) / 8
	lastSecret      = len(xxh3Secret) - stripeSize
)

// The default secret of XXH3.
const xxh3Secret = "" +
	"\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe\x7c\x01\x81\x2c\xf7\x21\xad\x1c\xde\xd4\x6d\xe9\x83\x90\x97\xdb" +
	"\x72\x40\xa4\xa4\xb7\xb3\x67\x1f\xcb\x79\xe6\x4e\xcc\xc0\xe5\x78\x82\x5a\xd0\x7d\xcc\xff\x72\x21" +
	"\xb8\x08\x46\x74\xf7\x43\x24\x8e\xe0\x35\x90\xe6\x81\x3a\x26\x4c\x3c\x28\x52\xbb\x91\xc3\x00\xcb" +
	"\x88\xd0\x65\x8b\x1b\x53\x2e\xa3\x71\x64\x48\x97\xa2\x0d\xf9\x4e\x38\x19\xef\x46\xa9\xde\xac\xd8\xa8" +
	"\xfa\x76\x3f\xe3\x9c\x34\x3f\xf9\xdc\xbb\xc7\xc7\x0b\x4f\x1d\x8a\x51\xe0\x4b\xcd\xb4\x59\x31\xc8" +
	"\x9f\x7e\xc9\xd9\x78\x73\x64\xea\xc5\xac\x83\x34\xd3\xeb\xc3\xc5\x81\xa0\xff\xfa\x13\x63\xeb\x17" +
	"\x0d\xdd\x51\xb7\xf0\xda\x49\xd3\x16\x55\x26\x29\xd4\x68\x9e\x2b\x16\xbe\x58\x7d\x47\xa1\xfc\x8f" +
	"\xf8\xb8\xd1\x7a\xd0\x31\xce\x45\xcb\x3a\x8f\x95\x16\x04\x28\xaf\xd7\xfb\xca\xbb\x4b\x40\x7e"

// secret has the words of the secret that start at a multiple of 8 bytes.
var secret = func() (words [len(xxh3Secret) / 8]uint64) {
	for i := range words {
		words[i] = secretAt(8 * i)
	}
	return words
}()

func secretAt(at int) uint64 { return binary.LittleEndian.Uint64([]byte(xxh3Secret[at : at+8])) }

func word(data []byte, at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }

// xxh3 returns the XXH3-64 of data.
func xxh3(data []byte) uint64 {
	n := len(data)
	switch {
	case n == 0:
		return avalanche64(secret[7] ^ secret[8])
	case n <= 3:
		combined := uint64(data[0])<<16 | uint64(data[n>>1])<<24 | uint64(data[n-1]) | uint64(n)<<8
		return avalanche64(combined ^ (secret[0]&0xffffffff ^ secret[0]>>32))
	case n <= 8:
		first := uint64(binary.LittleEndian.Uint32(data))
		last := uint64(binary.LittleEndian.Uint32(data[n-4:]))
		h := (last + first<<32) ^ secret[1] ^ secret[2]
		h ^= bits.RotateLeft64(h, 49) ^ bits.RotateLeft64(h, 24)
		h *= primeTwo
		h ^= h>>35 + uint64(n)
		h *= primeTwo
		return h ^ h>>28
	case n <= 16:
		low := word(data, 0) ^ secret[3] ^ secret[4]
		high := word(data, n-8) ^ secret[5] ^ secret[6]
		return avalanche(uint64(n) + bits.ReverseBytes64(low) + high + fold(low, high))
	case n <= 128:
		h := uint64(n) * prime64a
		for i := (n - 1) / 32; i >= 0; i-- {
			h += mix(data[16*i:], secret[4*i], secret[4*i+1])
			h += mix(data[n-16*(i+1):], secret[4*i+2], secret[4*i+3])
		}
		return avalanche(h)
	case n <= 240:
		h := uint64(n) * prime64a
		for i := range 8 {
			h += mix(data[16*i:], secret[2*i], secret[2*i+1])
		}
		h = avalanche(h)
		for i := 8; i < n/16; i++ {
			at := 16*(i-8) + 3
			h += mix(data[16*i:], secretAt(at), secretAt(at+8))
		}
		return avalanche(h + mix(data[n-16:], secretAt(119), secretAt(127)))
	}
	lanes := accumulate(data)
	return merge(&lanes, 11, uint64(n)*prime64a)
}

// xxh3Long128 returns the XXH3-128 of data, which has more than 240 bytes: its high and its low half.
func xxh3Long128(data []byte) (high, low uint64) {
	lanes := accumulate(data)
	n := uint64(len(data))
	return merge(&lanes, len(xxh3Secret)-stripeSize-11, ^(n * prime64b)), merge(&lanes, 11, n*prime64a)
}

// accumulate returns the lanes after all stripes of data, which has more than 240 bytes.
func accumulate(data []byte) [8]uint64 {
	lanes := [8]uint64{prime32c, prime64a, prime64b, prime64c, prime64d, prime32b, prime64e, prime32a}
	last := data[len(data)-stripeSize:]
	stripes := (len(data) - 1) / stripeSize
	for i := range stripes {
		stripe := data[i*stripeSize:]
		keys := secret[i%stripesPerBlock:]
		addStripe(&lanes, (*[stripeSize]byte)(stripe), (*[8]uint64)(keys))
		if (i+1)%stripesPerBlock == 0 {
			for lane := range lanes {
				h := lanes[lane]
				lanes[lane] = (h ^ h>>47 ^ secret[lastSecret/8+lane]) * prime32a
			}
		}
	}
	var keys [8]uint64
	for lane := range keys {
		keys[lane] = secretAt(lastSecret - 7 + 8*lane)
	}
	addStripe(&lanes, (*[stripeSize]byte)(last), &keys)
	return lanes
}

func addStripe(lanes *[8]uint64, stripe *[stripeSize]byte, keys *[8]uint64) {
	for lane := 0; lane < 8; lane += 2 {
		first := binary.LittleEndian.Uint64(stripe[8*lane:])
		second := binary.LittleEndian.Uint64(stripe[8*lane+8:])
		keyed := first ^ keys[lane]
		lanes[lane] += second + (keyed&0xffffffff)*(keyed>>32)
		keyed = second ^ keys[lane+1]
		lanes[lane+1] += first + (keyed&0xffffffff)*(keyed>>32)
	}
}

func merge(lanes *[8]uint64, at int, h uint64) uint64 {
	for i := 0; i < 8; i += 2 {
		h += fold(lanes[i]^secretAt(at+8*i), lanes[i+1]^secretAt(at+8*i+8))
	}
	return avalanche(h)
}

func mix(data []byte, low, high uint64) uint64 { return fold(word(data, 0)^low, word(data, 8)^high) }

func fold(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	return high ^ low
}

func avalanche(h uint64) uint64 {
	h = (h ^ h>>37) * primeMix
	return h ^ h>>32
}

func avalanche64(h uint64) uint64 {
	h = (h ^ h>>33) * prime64b
	h = (h ^ h>>29) * prime64c
	return h ^ h>>32
}

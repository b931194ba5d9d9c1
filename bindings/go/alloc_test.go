package symdex

import "testing"

// Once a scratch has grown, lookups allocate nothing: neither cached ones nor those that decode again.
func TestLookupAllocatesNothing(t *testing.T) {
	for _, name := range []string{"icf-1.symdex", "made-up-1.symdex", "plain-1.symdex"} {
		index, err := Open(goldenFile(t, name))
		if err != nil {
			t.Fatal(err)
		}
		offsets, scratch := someOffsets(index, 200), &Scratch{}
		lookUp := func() {
			for _, offset := range offsets {
				for _, policy := range []LinePolicy{Statement, Exact} {
					if _, err := index.Lookup(offset, policy, scratch); err != nil && err != ErrNoAnswer {
						t.Fatal(err)
					}
				}
			}
		}
		lookUp()
		if allocations := testing.AllocsPerRun(5, lookUp); allocations != 0 {
			t.Errorf("%s: %v allocations for cached answers", name, allocations)
		}
		// Without the cached answers, but with their strings.
		decode := func() {
			clear(scratch.cache.answers)
			scratch.cache.frames, scratch.cache.begun = scratch.cache.frames[:0], 0
			lookUp()
		}
		if allocations := testing.AllocsPerRun(5, decode); allocations != 0 {
			t.Errorf("%s: %v allocations for decoded answers", name, allocations)
		}
	}
}

package symdex

import (
	"reflect"
	"sync"
	"testing"
)

// Goroutines share an index, whose pages are checked by whichever reads them first.
func TestConcurrentLookups(t *testing.T) {
	for _, name := range []string{"icf-1.symdex", "made-up-1.symdex"} {
		index, err := Open(goldenFile(t, name))
		if err != nil {
			t.Fatal(err)
		}
		offsets := someOffsets(index, 100)
		answers := make([][][]Frame, 8)
		var group sync.WaitGroup
		for i := range answers {
			group.Add(1)
			go func() {
				defer group.Done()
				answers[i], _ = answersOf(t, index, offsets, &Scratch{})
			}()
		}
		group.Wait()
		for i := range answers {
			if !reflect.DeepEqual(answers[i], answers[0]) {
				t.Errorf("%s: goroutine %d got other answers", name, i)
			}
		}
	}
}

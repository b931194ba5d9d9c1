package symdex

import (
	"os"
	"strconv"
)

// mutants returns how many damaged files of each index are compared: SYMDEX_TEST_MUTANTS, or few.
func mutants() int {
	if n, err := strconv.Atoi(os.Getenv("SYMDEX_TEST_MUTANTS")); err == nil {
		return n
	}
	return 20
}

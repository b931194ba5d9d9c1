package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

func TestSymbolize(t *testing.T) {
	index, err := os.ReadFile("../../../../testdata/golden/v1/icf-1.symdex")
	if err != nil {
		t.Fatal(err)
	}
	folder := fstest.MapFS{
		"4c/4c4c44ca55553144a1d690c32d816e24.symdex": {Data: index},
		"00ff.symdex": {Data: index[:100]},
	}
	server := httptest.NewServer(newService(folder))
	defer server.Close()
	for _, c := range []struct {
		body   string
		status int
		answer string
	}{
		{
			`{"id": "4C4C44CA-5555-3144-A1D6-90C32D816E24", "addresses": ["0x3e8", "0"]}`, http.StatusOK,
			`[[{"function":"cell","file":"/src/symdex/layout/../inline/grid.h","line":9,"inlined":true},` +
				`{"function":"unused_too","file":"/src/symdex/layout/fold.c","line":26}],[]]`,
		},
		{`{"id": "4c4c44ca55553144a1d690c32d816e25"}`, http.StatusNotFound, "there is no index"},
		{`{"id": "00ff"}`, http.StatusInternalServerError, "damaged"},
		{`{"id": "me"}`, http.StatusBadRequest, "image id"},
		{`{"id": "4c4c44ca55553144a1d690c32d816e24", "addresses": ["x"]}`, http.StatusBadRequest, "invalid syntax"},
		{`[`, http.StatusBadRequest, ""},
	} {
		for range 2 { // the second answer comes from the open index
			response, err := http.Post(server.URL+"/symbolize", "application/json", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(response.Body)
			response.Body.Close()
			if err != nil || response.StatusCode != c.status || !strings.Contains(string(body), c.answer) {
				t.Errorf("%s: %d %s %v", c.body, response.StatusCode, body, err)
			}
		}
	}
}

// Command service answers addresses over HTTP from a folder of symdex indexes:
//
//	go run ./examples/service -indexes /var/lib/symdex
//	curl -d '{"id": "4c4c442755553144a19dbd913be790e0", "addresses": ["0x42ef"]}' localhost:8089/symbolize
//
// The addresses are image offsets. The answer has a list of frames for each address, the innermost first, which is
// empty if the index has no function there.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"log"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"symdex"
)

func main() {
	folder := flag.String("indexes", ".", "the folder of indexes")
	listen := flag.String("listen", "localhost:8089", "the address to listen on")
	flag.Parse()
	server := &http.Server{
		Addr:              *listen,
		Handler:           newService(os.DirFS(*folder)),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       30 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}

const (
	maxBody      = 1 << 20
	maxAddresses = 10_000
	// maxOpen is the number of indexes that stay open.
	maxOpen = 256
)

// service keeps indexes open, and working memory for each request that runs.
type service struct {
	folder    fs.FS
	scratches sync.Pool

	lock    sync.Mutex
	indexes map[symdex.ImageID]*symdex.Index
}

// newService returns the handler of POST /symbolize.
func newService(folder fs.FS) http.Handler {
	s := &service{folder: folder, indexes: map[symdex.ImageID]*symdex.Index{}}
	s.scratches.New = func() any { return &symdex.Scratch{} }
	mux := http.NewServeMux()
	mux.HandleFunc("POST /symbolize", s.symbolize)
	return mux
}

type request struct {
	ID        string   `json:"id"`
	Addresses []string `json:"addresses"`
}

type frame struct {
	Function string  `json:"function,omitempty"`
	File     string  `json:"file,omitempty"`
	Line     *uint32 `json:"line,omitempty"`
	Inlined  bool    `json:"inlined,omitempty"`
}

func (s *service) symbolize(w http.ResponseWriter, r *http.Request) {
	var question request
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&question); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, err := symdex.ParseImageID(question.ID)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(question.Addresses) > maxAddresses {
		http.Error(w, "too many addresses", http.StatusRequestEntityTooLarge)
		return
	}
	index, err := s.index(id)
	if err != nil {
		http.Error(w, err.Error(), status(err))
		return
	}
	scratch := s.scratches.Get().(*symdex.Scratch)
	defer s.scratches.Put(scratch)
	answers := make([][]frame, len(question.Addresses))
	for i, address := range question.Addresses {
		offset, err := strconv.ParseUint(address, 0, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		if answers[i], err = answer(index, offset, scratch); err != nil {
			http.Error(w, err.Error(), status(err))
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answers); err != nil {
		log.Print(err)
	}
}

// answer returns the frames at an image offset, none if the index has no function there.
func answer(index *symdex.Index, offset uint64, scratch *symdex.Scratch) ([]frame, error) {
	frames, err := index.Lookup(offset, symdex.Statement, scratch)
	if err != nil && !errors.Is(err, symdex.ErrNoAnswer) {
		return nil, err
	}
	answer := make([]frame, len(frames))
	for i, f := range frames {
		answer[i] = frame{Function: f.Function, File: f.File, Inlined: f.Inlined}
		if f.HasLine {
			answer[i].Line = &f.Line
		}
	}
	return answer, nil
}

// index returns the index of an image. Any one of the open indexes makes room for another.
func (s *service) index(id symdex.ImageID) (*symdex.Index, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if index, ok := s.indexes[id]; ok {
		return index, nil
	}
	index, err := symdex.FindFS(s.folder, id)
	if err != nil {
		return nil, err
	}
	for other := range s.indexes {
		if len(s.indexes) < maxOpen {
			break
		}
		delete(s.indexes, other)
	}
	s.indexes[id] = index
	return index, nil
}

// status tells an image without an index from a damaged index.
func status(err error) int {
	if errors.Is(err, fs.ErrNotExist) {
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

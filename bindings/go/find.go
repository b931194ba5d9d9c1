package symdex

import (
	"errors"
	"fmt"
	"io/fs"
)

// FindFS opens the index of an image in a folder of indexes. The folder is flat, as symdex build -o writes it, or has a
// subfolder for the first two characters of the names, as a store has. [os.DirFS] makes an [fs.FS] of a folder.
//
// The error wraps [fs.ErrNotExist] if the folder has no index of the image. Others are those of [OpenFS].
func FindFS(fsys fs.FS, id ImageID) (*Index, error) { return Options{}.FindFS(fsys, id) }

// FindFS is as the function [FindFS].
func (o Options) FindFS(fsys fs.FS, id ImageID) (*Index, error) {
	name := id.String() + ".symdex"
	for _, path := range [...]string{name, name[:2] + "/" + name} {
		index, err := o.OpenFS(fsys, path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if index.metadata.ID != id {
			return nil, fmt.Errorf("%s: %w", path, damaged("header", "the image id is %v", index.metadata.ID))
		}
		return index, nil
	}
	return nil, fmt.Errorf("symdex: there is no index %s: %w", name, fs.ErrNotExist)
}

package importapp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/senders/promblock"
	"github.com/promlake/promlake/internal/store/objstore"
)

// ErrChanged reports a staged file that is not the one that was to be imported.
var ErrChanged = errors.New("the file has changed since the upload was finished")

// Staged is a Source: one block whose files are objects of a store. It is fetched to the temporary
// directory to be read.
type Staged struct {
	Store  objstore.Store
	Prefix string            // of the keys of the files; ends with a slash
	Meta   []byte            // meta.json, which is none of the files
	Files  map[string]string // ETags by path
}

// find implements Source.
func (b Staged) find(_ context.Context, dir string) (found, error) {
	f := &blocks{}
	meta, err := promblock.ReadMeta(b.Meta)
	if err != nil {
		return found{}, err
	}
	if meta.MinTime < meta.MaxTime {
		var at string
		in := TSDB{}.input(&source{
			Found: promblock.Found{Meta: meta},
			fetch: func(ctx context.Context) (_ string, remove func() error, err error) {
				at, remove, err = b.fetch(ctx, dir)
				return at, remove, err
			},
		}, f)
		open := in.Open
		in.Open = func(ctx context.Context) (bulk.Opened, error) {
			o, err := open(ctx)
			if err != nil && at != "" {
				err = &hidden{err, at, meta.ULID.String()}
			}
			return o, err
		}
		f.inputs = append(f.inputs, in)
	}
	return found{inputs: f.inputs, describe: func(*human.Table) {}, series: countSeries, left: f.left}, nil
}

// hidden is an error whose text has the name of the block in the place of a temporary directory.
type hidden struct {
	error
	dir, name string
}

// Error implements error.
func (h *hidden) Error() string { return strings.ReplaceAll(h.error.Error(), h.dir, h.name) }

// Unwrap returns the cause.
func (h *hidden) Unwrap() error { return h.error }

// fetch copies the block to a directory below dir.
func (b Staged) fetch(ctx context.Context, dir string) (at string, remove func() error, err error) {
	var keys []string
	etags := map[string]string{}
	for path, etag := range b.Files {
		keys = append(keys, b.Prefix+path)
		etags[b.Prefix+path] = etag
	}
	if at, remove, err = (bucket{pinned{b.Store, etags}, dir}).fetch(ctx, b.Prefix, keys); err != nil {
		return "", nil, err
	}
	if err := os.WriteFile(filepath.Join(at, promblock.MetaFile), b.Meta, 0o600); err != nil {
		return "", nil, errors.Join(err, remove())
	}
	return at, remove, nil
}

// pinned is a store of which certain versions of objects are read.
type pinned struct {
	objstore.Store
	etags map[string]string // by key
}

// Get implements objstore.Store. Errors: also ErrChanged.
func (p pinned) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	r, obj, err := p.Store.Get(ctx, k, offset, length)
	if err == nil && obj.ETag != p.etags[k] {
		err = errors.Join(fmt.Errorf("%s: %w", k, ErrChanged), r.Close())
	}
	return r, obj, err
}

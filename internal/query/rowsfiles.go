package query

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/parquetfile"
	"github.com/promlake/promlake/internal/query/fetch"
	"github.com/promlake/promlake/internal/segment"
)

// rowsNeed is what a read wants of one file of a block that has samples, histograms or exemplars: some columns of some row groups.
type rowsNeed struct {
	key     string
	file    *block.File // as meta.json describes it
	groups  []int       // positions in file.RowGroups, ascending
	columns []string    // names
}

// rowsFile is a local Parquet file that has what a rowsNeed asks for. It may have more.
type rowsFile struct {
	path string
	at   []int64 // by group of the need: the row in path that is the group's first
}

// openRows makes what is needed local: in place, or by fetching just these column chunks. The files, parallel to needs, are valid until release.
// An error because an object is gone is objstore.ErrNotFound.
func (f *files) openRows(ctx context.Context, needs []rowsNeed) ([]rowsFile, func(), error) {
	out := make([]rowsFile, len(needs))
	remote, at, err := f.remote(needs)
	if err != nil {
		return nil, nil, err
	}
	for i := range needs {
		if n := &needs[i]; f.inPlace(n.key) {
			out[i].path = f.local.LocalPath(n.key)
			for _, g := range n.groups {
				out[i].at = append(out[i].at, n.firstRow(g))
			}
		}
	}
	if len(remote) == 0 {
		return out, func() {}, nil
	}
	got, release, err := f.cache.Rows(ctx, remote)
	if err != nil {
		return nil, nil, err
	}
	for i, l := range got {
		out[at[i]] = rowsFile{path: l.Path, at: l.At}
	}
	return out, release, nil
}

// cost says how many requests to the store openRows would send for needs now, and for how many bytes.
func (f *files) cost(needs []rowsNeed) (gets int, bytes int64, err error) {
	remote, _, err := f.remote(needs)
	if err != nil {
		return 0, 0, err
	}
	gets, bytes = f.cache.Cost(remote)
	return gets, bytes, nil
}

// remote translates the needs that are not in place, and says where in needs they are.
func (f *files) remote(needs []rowsNeed) (out []fetch.Need, at []int, err error) {
	for i := range needs {
		if f.inPlace(needs[i].key) {
			continue
		}
		n, err := needs[i].chunks()
		if err != nil {
			return nil, nil, fmt.Errorf("plan the read of %s: %w", needs[i].key, err)
		}
		out, at = append(out, n), append(at, i)
	}
	return out, at, nil
}

// firstRow returns the first row of a row group, counted from the file's.
func (n *rowsNeed) firstRow(group int) int64 {
	return n.file.RowGroups[group].FirstRow - n.file.RowGroups[0].FirstRow
}

// chunks says which column chunks have what is needed. meta.json knows where they are, and the times of the row groups, which become the
// statistics of ts; the rest of a footer stands in the chunks themselves. So the remote file's own is not read.
func (n *rowsNeed) chunks() (fetch.Need, error) {
	schema, err := n.file.Schema()
	if err != nil {
		return fetch.Need{}, err
	}
	out := fetch.Need{
		Key: n.key, Size: n.file.Bytes, Codec: block.Codec, KeyValues: []format.KeyValue{block.VersionKeyValue()}, Schema: schema[:1:1],
	}
	var leaves []int
	for leaf, e := range schema[1:] {
		if slices.Contains(n.columns, e.Name) {
			leaves = append(leaves, leaf)
			out.Schema = append(out.Schema, e)
		}
	}
	if len(leaves) != len(n.columns) {
		return fetch.Need{}, fmt.Errorf("%w: it does not have all of the columns %q", block.ErrFormat, n.columns)
	}
	for _, i := range n.groups {
		g := &n.file.RowGroups[i]
		group := fetch.Group{ID: i, FirstRow: n.firstRow(i), Rows: g.Rows}
		for _, leaf := range leaves {
			c := fetch.Chunk{Span: fetch.Span{Offset: g.Columns[leaf][0], Length: g.Columns[leaf][1]}}
			if schema[1+leaf].Name == segment.ColTS {
				c.Min, c.Max = parquetfile.Stat(g.MinT), parquetfile.Stat(g.MaxT)
			}
			group.Chunks = append(group.Chunks, c)
		}
		out.Groups = append(out.Groups, group)
	}
	return out, nil
}

// spanReader reads an object in parts. Its caller closes it.
type spanReader interface {
	io.ReaderAt
	io.Closer
	// prefetch makes ranges of the object, each [offset, length] in bytes, local at once, so that reads of them do not wait.
	prefetch(spans [][2]int64) error
}

// readerAt reads an object of size bytes: in place, or what is not local yet from the store, each byte once while it is cached. ctx bounds all
// of its reads. An error because the object is gone is objstore.ErrNotFound, and may come from any of them.
func (f *files) readerAt(ctx context.Context, key string, size int64) spanReader {
	if f.inPlace(key) {
		return &localReader{open: sync.OnceValues(func() (*os.File, error) {
			file, err := os.Open(f.local.LocalPath(key))
			return file, f.gone(key, err)
		})}
	}
	return remoteReader{f.cache.Reader(ctx, key, size)}
}

// localReader opens its file at the first read.
type localReader struct{ open func() (*os.File, error) }

func (r *localReader) ReadAt(p []byte, off int64) (int, error) {
	file, err := r.open()
	if err != nil {
		return 0, err
	}
	return file.ReadAt(p, off)
}

func (*localReader) prefetch([][2]int64) error { return nil }

func (r *localReader) Close() error {
	file, err := r.open()
	if err != nil {
		return nil // there is nothing to close, and whoever read was told
	}
	return file.Close()
}

type remoteReader struct{ *fetch.Reader }

func (r remoteReader) prefetch(spans [][2]int64) error {
	out := make([]fetch.Span, len(spans))
	for i, s := range spans {
		out[i] = fetch.Span{Offset: s[0], Length: s[1]}
	}
	return r.Prefetch(out)
}

package importapp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/senders/promblock"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/internal/store/objstore/storeurl"
)

// TSDB names blocks of a Prometheus, of Thanos or of a tenant of Mimir.
type TSDB struct {
	Source         string `arg:"" name:"source" help:"Directory or s3://bucket/prefix with the blocks, or one block."`
	ExternalLabels bool   `name:"external-labels" help:"Add the external labels that Thanos and Mimir keep in meta.json to all series."`
	SkipCorrupt    bool   `name:"skip-corrupt" help:"Leave out chunks that cannot be read, and count them. Default: the first one ends the import."`
}

// blocks are those of a source.
type blocks struct {
	inputs  []bulk.Input
	bytes   int64    // of all inputs
	skipped []string // one line for each block that is not read
	corrupt atomic.Int64
}

// find implements Source. Blocks of a bucket are fetched to dir when they are read.
func (t TSDB) find(ctx context.Context, dir string) (found, error) {
	f := &blocks{}
	all, err := t.list(ctx, dir)
	if err != nil {
		return found{}, err
	}
	for _, b := range all {
		if b.Skipped != "" {
			f.skipped = append(f.skipped, fmt.Sprintf("block %s %s", b.Meta.ULID, b.Skipped))
			continue
		}
		if b.Meta.Stats.NumSamples == 0 && b.Meta.MinTime >= b.Meta.MaxTime {
			continue
		}
		f.bytes += b.Bytes
		f.inputs = append(f.inputs, t.input(&b, f))
	}
	if len(all) == 0 {
		return found{}, fmt.Errorf("import: %s has no block: want a directory with meta.json, or one with such directories below it, named by ULIDs", t.Source)
	}
	return found{inputs: f.inputs, bytes: f.bytes, describe: f.describe, series: countSeries, left: f.left}, nil
}

func (f *blocks) describe(table *human.Table) {
	table.Row("blocks found", human.Count(int64(len(f.inputs))))
	table.Row("their size", human.Bytes(f.bytes))
	for _, s := range f.skipped {
		table.Row("not read", s)
	}
}

func (f *blocks) left(table *human.Table) { table.Some("corrupt chunks left out", f.corrupt.Load()) }

// source is a block, and how it becomes a directory.
type source struct {
	promblock.Found
	fetch func(ctx context.Context) (dir string, remove func() error, err error)
}

// input is a block as an input of an import.
func (t TSDB) input(b *source, f *blocks) bulk.Input {
	o := promblock.Options{}
	id := "tsdb/" + b.Meta.ULID.String()
	if t.ExternalLabels {
		o.External = b.Meta.External()
		h := sha256.New()
		for _, l := range o.External {
			fmt.Fprintf(h, "%q=%q,", l.Name, l.Value)
		}
		if len(o.External) > 0 {
			id += "+" + hex.EncodeToString(h.Sum(nil)[:8])
		}
	}
	if t.SkipCorrupt {
		o.Skip = func(*promblock.CorruptError) bool {
			f.corrupt.Add(1)
			return true
		}
	}
	fetch := b.fetch
	return bulk.Input{
		ID: id, Written: ulid.Time(b.Meta.ULID.Time()), MinT: b.Meta.MinTime, MaxT: b.Meta.MaxTime - 1, Samples: int64(b.Meta.Stats.NumSamples),
		Open: func(ctx context.Context) (bulk.Opened, error) {
			dir, remove, err := fetch(ctx)
			if err != nil {
				return nil, err
			}
			block, err := promblock.Open(dir, o)
			if err != nil {
				return nil, errors.Join(err, remove())
			}
			return &opened{block, remove}, nil
		},
	}
}

// opened is a block that is open.
type opened struct {
	block  *promblock.Block
	remove func() error
}

// Scan implements bulk.Opened.
func (o *opened) Scan(ctx context.Context, from, to int64, keep bulk.Keep) (bulk.Rows, error) {
	return o.block.Scan(ctx, from, to, promblock.Keep(keep))
}

// Close implements bulk.Opened.
func (o *opened) Close() error { return errors.Join(o.block.Close(), o.remove()) }

// list returns the blocks of a directory or a bucket.
func (t TSDB) list(ctx context.Context, dir string) ([]source, error) {
	if path, ok := strings.CutPrefix(t.Source, "file://"); ok || !strings.Contains(t.Source, "://") {
		blocks, err := promblock.Find(path)
		out := make([]source, len(blocks))
		for i, b := range blocks {
			out[i] = source{b, func(context.Context) (string, func() error, error) { return b.Dir, func() error { return nil }, nil }}
		}
		return out, err
	}
	store, err := storeurl.Open(ctx, t.Source)
	if err != nil {
		return nil, err
	}
	return bucket{store, dir}.list(ctx)
}

// bucket is a source that is fetched to a directory.
type bucket struct {
	store objstore.Store
	dir   string
}

// list returns the blocks of the bucket.
func (b bucket) list(ctx context.Context) ([]source, error) {
	var out []source
	for folder, err := range b.store.ListFolders(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list blocks: %w", err)
		}
		if !promblock.IsBlockName(strings.TrimSuffix(folder, "/")) {
			continue
		}
		s, ok, err := b.look(ctx, folder)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, s)
		}
	}
	return out, nil
}

// look reads the meta.json of a block. A block without is not complete.
func (b bucket) look(ctx context.Context, folder string) (s source, ok bool, err error) {
	raw, _, err := objstore.ReadAll(ctx, b.store, folder+promblock.MetaFile)
	if errors.Is(err, objstore.ErrNotFound) {
		return s, false, nil
	}
	if err != nil {
		return s, false, err
	}
	if s.Meta, err = promblock.ReadMeta(raw); err != nil {
		return s, false, fmt.Errorf("block %s: %w", folder, err)
	}
	s.Skipped = s.Meta.Skip()
	var files []string
	for obj, err := range b.store.List(ctx, folder, "") {
		if err != nil {
			return s, false, fmt.Errorf("list block %s: %w", folder, err)
		}
		if obj.Key == folder+promblock.DeletionMark {
			s.Skipped = "is marked for deletion"
		}
		if strings.HasSuffix(obj.Key, "/") { // stands for a folder
			continue
		}
		s.Bytes += obj.Size
		files = append(files, obj.Key)
	}
	s.fetch = func(ctx context.Context) (string, func() error, error) { return b.fetch(ctx, folder, files) }
	return s, true, nil
}

// fetch copies a block to a directory.
func (b bucket) fetch(ctx context.Context, folder string, files []string) (dir string, remove func() error, err error) {
	tmp, err := tempdir.Make(b.dir, "promlake-import-")
	if err != nil {
		return "", nil, fmt.Errorf("make a directory for block %s: %w", folder, err)
	}
	dir, remove = filepath.Join(tmp.Path, "block"), tmp.Remove
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", nil, errors.Join(fmt.Errorf("make a directory for block %s: %w", folder, err), remove())
	}
	for _, k := range files {
		name, err := filepath.Localize(strings.TrimPrefix(k, folder))
		if err != nil { // such as ../x, which would be a file elsewhere
			return "", nil, errors.Join(fmt.Errorf("fetch block %s: object %q: %w", folder, k, err), remove())
		}
		if err := b.file(ctx, k, filepath.Join(dir, name)); err != nil {
			return "", nil, errors.Join(fmt.Errorf("fetch block %s: %w", folder, err), remove())
		}
	}
	return dir, remove, nil
}

// file copies an object to a file.
func (b bucket) file(ctx context.Context, k, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	r, _, err := b.store.Get(ctx, k, 0, -1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	return errors.Join(err, f.Close())
}

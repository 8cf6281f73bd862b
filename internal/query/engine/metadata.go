package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/metadata"

	"github.com/promlake/promlake/internal/format/block"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
)

// Metadata returns the distinct metadata of metric families that the segments and blocks of the
// recent window hold, by name and then by type, unit and help. metric "" means all families.
func (s *Storage) Metadata(ctx context.Context, metric string) (map[string][]metadata.Metadata, error) {
	var seen map[string]map[metadata.Metadata]struct{} // by name
	_, err := s.Snapshots.Range(s.Recent()).Read(ctx, func(snap catalog.Snapshot) error {
		objs, err := s.Files.Live(ctx, snap)
		if err != nil {
			return err
		}
		ofBlocks := make([][]segment.Metadata, len(objs))
		err = s.Files.Each(ctx, len(objs), func(ctx context.Context, i int) (err error) {
			if m := objs[i].Footer.Meta; m != nil && m.File(block.MetadataFile) != nil {
				ofBlocks[i], err = s.blockMetadata(ctx, &objs[i])
			}
			return err
		})
		seen = map[string]map[metadata.Metadata]struct{}{}
		add := func(m segment.Metadata) {
			if metric != "" && m.Metric != metric {
				return
			}
			if seen[m.Metric] == nil {
				seen[m.Metric] = map[metadata.Metadata]struct{}{}
			}
			seen[m.Metric][metadata.Metadata{Type: model.MetricType(m.Type), Help: m.Help, Unit: m.Unit}] = struct{}{}
		}
		for i := range objs {
			for _, h := range objs[i].Footer.Descriptions {
				add(h.Value())
			}
			for _, m := range ofBlocks[i] {
				add(m)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make(map[string][]metadata.Metadata, len(seen))
	for name, ms := range seen {
		out[name] = slices.SortedFunc(maps.Keys(ms), func(a, b metadata.Metadata) int {
			return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Unit, b.Unit), cmp.Compare(a.Help, b.Help))
		})
	}
	return out, nil
}

// blockMetadata reads the descriptions of metric families in a block.
func (s *Storage) blockMetadata(ctx context.Context, o *source.Object) ([]segment.Metadata, error) {
	src := &blockSource{ctx: ctx, files: s.Files, object: o}
	r, err := block.OpenWith(src, *o.Footer.Meta)
	var out []segment.Metadata
	if err == nil {
		out, err = r.Metadata()
	}
	if err = errors.Join(err, src.close()); err != nil {
		return nil, o.Broken(fmt.Errorf("read metadata of %s: %w", o.Name(), err))
	}
	return out, nil
}

// blockSource opens the files of a block. It implements block.Source.
type blockSource struct {
	ctx    context.Context
	files  *source.Files
	object *source.Object
	opened []source.Reader
}

// Open implements block.Source. It fetches the file at once.
func (b *blockSource) Open(name string) (io.ReaderAt, int64, error) {
	f := b.object.Footer.Meta.File(name)
	if f == nil {
		return nil, 0, fmt.Errorf("%w: meta.json names no %s", block.ErrFormat, name)
	}
	in := b.files.Open(b.ctx, b.object.Block.File(name), f.Bytes)
	b.opened = append(b.opened, in)
	return in, f.Bytes, in.Prefetch([][2]int64{{0, f.Bytes}})
}

func (b *blockSource) close() (err error) {
	for _, in := range b.opened {
		err = errors.Join(err, in.Close())
	}
	return err
}

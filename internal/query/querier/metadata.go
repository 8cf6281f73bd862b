package querier

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

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/segment"
)

// Metadata returns the distinct metadata of metric families that the segments and blocks of the
// recent window hold. metric "" means all families. It returns at most limit families, the first by
// name, with at most limitPerMetric entries each. A negative limit, and a limitPerMetric below 1,
// mean no limit.
func (s *Storage) Metadata(ctx context.Context, metric string, limit, limitPerMetric int) (map[string][]metadata.Metadata, error) {
	var seen families
	now := s.Now()
	_, err := s.Snapshots.Range(now.Add(-s.RecentWindow).UnixMilli(), now.UnixMilli()).Read(ctx, func(snap catalog.Snapshot) error {
		objs, err := s.Files.Locate(ctx, source.Refs(snap))
		if err != nil {
			return err
		}
		seen = families{}
		for _, o := range objs {
			for _, h := range o.Footer.Descriptions {
				if m := h.Value(); metric == "" || m.Metric == metric {
					seen.add(m)
				}
			}
		}
		return s.blockMetadata(ctx, objs, metric, seen)
	})
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(seen))
	if limit >= 0 && len(names) > limit {
		names = names[:limit]
	}
	out := make(map[string][]metadata.Metadata, len(names))
	for _, n := range names {
		ms := slices.SortedFunc(maps.Keys(seen[n]), compareMetadata)
		if limitPerMetric > 0 && len(ms) > limitPerMetric {
			ms = ms[:limitPerMetric]
		}
		out[n] = ms
	}
	return out, nil
}

func compareMetadata(a, b metadata.Metadata) int {
	return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Help, b.Help), cmp.Compare(a.Unit, b.Unit))
}

// families are the distinct descriptions of metric families, by name.
type families map[string]map[metadata.Metadata]struct{}

func (f families) add(m segment.Metadata) {
	if f[m.Metric] == nil {
		f[m.Metric] = map[metadata.Metadata]struct{}{}
	}
	f[m.Metric][metadata.Metadata{Type: model.MetricType(m.Type), Help: m.Help, Unit: m.Unit}] = struct{}{}
}

// blockMetadata adds the descriptions of one metric family, or of all, in the blocks among objs.
func (s *Storage) blockMetadata(ctx context.Context, objs []source.Object, metric string, seen families) error {
	said := make([][]segment.Metadata, len(objs))
	err := s.Files.Each(ctx, len(objs), func(ctx context.Context, i int) (err error) {
		if m := objs[i].Footer.Meta; m != nil && m.File(block.MetadataFile) != nil {
			said[i], err = s.metadataOf(ctx, &objs[i])
		}
		return err
	})
	for i := range said {
		for _, m := range said[i] {
			if metric == "" || m.Metric == metric {
				seen.add(m)
			}
		}
	}
	return err
}

// metadataOf reads the descriptions of metric families in a block.
func (s *Storage) metadataOf(ctx context.Context, o *source.Object) ([]segment.Metadata, error) {
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

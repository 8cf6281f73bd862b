package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/catalog"
)

// leftOut are the damaged objects of one read.
type leftOut struct {
	again   []string // read once more: only the local copy may be damaged
	objects []string // left out: keys of segments, prefixes of blocks
	notes   annotations.Annotations
}

// reading calls fn with a snapshot, without the objects that turn out to be damaged.
func (s *Cache) reading(ctx context.Context, l *leftOut, snap *catalog.Snapshot, fn func(*catalog.Snapshot) error) error {
	for {
		err := fn(l.without(snap))
		var d *source.DamagedError
		if !errors.As(err, &d) || ctx.Err() != nil || slices.Contains(l.objects, d.Object) {
			return err
		}
		if !slices.Contains(l.again, d.Object) {
			l.again = append(l.again, d.Object)
			if err := s.files.Forget(d.Object); err != nil {
				return fmt.Errorf("read damaged object again: %w", err)
			}
			s.metrics.Rereads.Inc()
			continue
		}
		s.metrics.Damaged.Inc()
		leave := s.settings.PartialResponse && !request.From(ctx).Snapshot.IsPinned() // or the process that pinned the snapshot decides
		s.logger.Error("an object is damaged", "tenant", snap.Tenant, "object", d.Object, "left_out", leave, "err", d.Err)
		if !leave {
			return err
		}
		l.objects = append(l.objects, d.Object)
		l.notes.Add(d.Warning())
	}
}

// without returns the snapshot without the objects that are left out.
func (l *leftOut) without(snap *catalog.Snapshot) *catalog.Snapshot {
	if len(l.objects) == 0 {
		return snap
	}
	out := *snap
	out.Segments = slices.DeleteFunc(slices.Clone(snap.Segments), func(r catalog.SegmentRef) bool { return slices.Contains(l.objects, r.String()) })
	out.Blocks = slices.DeleteFunc(slices.Clone(snap.Blocks), func(b catalog.Block) bool {
		return slices.ContainsFunc(l.objects, func(name string) bool { return strings.HasPrefix(name, b.Key(snap.Tenant).Prefix()) })
	})
	return &out
}

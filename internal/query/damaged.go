package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/util/annotations"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/checksum"
	"github.com/promlake/promlake/internal/parquetfile"
	"github.com/promlake/promlake/internal/rollup"
	"github.com/promlake/promlake/internal/segment"
)

// DamagedError reports an object that is there and cannot be read: bytes that do not match their
// checksum, or that are not what the format says.
type DamagedError struct {
	Object     string // key of a segment, prefix of a block
	MinT, MaxT int64  // ms, inclusive: no sample of the object is outside of it
	Err        error
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("object %s, which holds samples from %s to %s, is damaged: %v; promlake doctor says what is lost, and --query.partial-response answers without it",
		e.Object, rfc3339(e.MinT), rfc3339(e.MaxT), e.Err)
}

// Unwrap returns what is wrong with the bytes.
func (e *DamagedError) Unwrap() error { return e.Err }

// warning is what an answer without the object says.
func (e *DamagedError) warning() error {
	return fmt.Errorf("the answer is partial: object %s, which holds samples from %s to %s, is damaged and was left out: %w", e.Object, rfc3339(e.MinT), rfc3339(e.MaxT), e.Err)
}

func rfc3339(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// broken makes a DamagedError of an error that says that the bytes of o are wrong, and leaves
// others as they are.
func (o *object) broken(err error) error {
	var known *DamagedError
	if err == nil || errors.As(err, &known) {
		return err
	}
	for _, format := range []error{checksum.ErrDamaged, block.ErrFormat, segment.ErrFormat, rollup.ErrFormat, parquetfile.ErrFormat} {
		if errors.Is(err, format) {
			return &DamagedError{Object: o.name(), MinT: o.from, MaxT: o.upto, Err: err}
		}
	}
	return err
}

// leftOut are the damaged objects of one read.
type leftOut struct {
	again   []string // read once more: it may be the copy here that is damaged
	objects []string // left out
	notes   annotations.Annotations
}

// reading calls fn with a snapshot. An object that turns out to be damaged is read once more, from
// the store. If it still is, that is the error, or fn is called without it, as the settings say.
func (l *leftOut) reading(ctx context.Context, s *Stage, snap catalog.Snapshot, fn func(catalog.Snapshot) error) error {
	for {
		err := fn(l.without(snap))
		var d *DamagedError
		if !errors.As(err, &d) || ctx.Err() != nil || slices.Contains(l.objects, d.Object) {
			return err
		}
		if !slices.Contains(l.again, d.Object) {
			l.again = append(l.again, d.Object)
			if err := s.files.cache.Forget(d.Object); err != nil {
				return fmt.Errorf("read damaged object again: %w", err)
			}
			s.metrics.rereads.Inc()
			continue
		}
		s.metrics.damaged.Inc()
		s.logger.Error("an object is damaged", "tenant", snap.Tenant, "object", d.Object, "left_out", s.settings.PartialResponse, "err", d.Err)
		if !s.settings.PartialResponse {
			return err
		}
		l.objects = append(l.objects, d.Object)
		l.notes.Add(d.warning())
	}
}

// without returns the snapshot without the objects that are left out.
func (l *leftOut) without(snap catalog.Snapshot) catalog.Snapshot {
	if len(l.objects) == 0 {
		return snap
	}
	out := snap
	out.Segments = slices.DeleteFunc(slices.Clone(snap.Segments), func(r catalog.SegmentRef) bool { return slices.Contains(l.objects, r.String()) })
	out.Blocks = slices.DeleteFunc(slices.Clone(snap.Blocks), func(b catalog.Block) bool {
		return slices.ContainsFunc(l.objects, func(name string) bool { return strings.HasPrefix(name, b.Key(snap.Tenant).Prefix()) })
	})
	return out
}

package sql

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/sql/pushdown"
	"github.com/promlake/promlake/internal/sql/views"
)

// viewOf returns the view of a scan, given its argument.
func viewOf(argument string) string {
	name, _, _ := strings.Cut(argument, "#")
	return name
}

// bindScan returns the table behind a view.
func (x *execution) bindScan(arguments []*string) (table.Table, error) {
	if arguments[0] == nil {
		return nil, fmt.Errorf("%s is not a table", scanFunction)
	}
	r := &reader{x, *arguments[0], pushdown.All()}
	bind, ok := catalogued[viewOf(*arguments[0])]
	if !ok {
		return nil, fmt.Errorf("there is no view %q", viewOf(*arguments[0]))
	}
	return bind(x, r), nil
}

// metadataView reads no snapshot.
const metadataView = "metadata"

// catalogued are the views.
var catalogued = map[string]func(x *execution, r *reader) table.Table{
	"samples":                samplesView,
	storedPrefix + "samples": samplesView,
	"marked_samples": func(x *execution, r *reader) table.Table {
		return &views.Samples{Store: x.Store, Reader: r, Shape: views.Flat{}, Stale: true}
	},
	"series":                seriesView,
	storedPrefix + "series": seriesView,
	"histograms":            func(x *execution, r *reader) table.Table { return &views.Histograms{Store: x.Store, Reader: r} },
	"exemplars":             func(x *execution, r *reader) table.Table { return views.Exemplars(x.Store, r) },
	"blocks":                func(_ *execution, r *reader) table.Table { return views.Blocks(r) },
	"segments":              func(_ *execution, r *reader) table.Table { return views.Segments(r) },
	metadataView:            func(x *execution, r *reader) table.Table { return views.Metadata(r, x.Metadata) },
	"rollup_1h":             rollupView("rollup_1h"),
	"rollup_5m":             rollupView("rollup_5m"),
}

// storedPrefix begins the names of the views that show each replica as it is stored.
const storedPrefix = "stored_"

func samplesView(x *execution, r *reader) table.Table {
	return &views.Samples{Store: x.Store, Reader: r, Shape: views.Flat{}}
}

func seriesView(x *execution, r *reader) table.Table {
	return views.Series(x.Store, r)
}

func rollupView(name string) func(x *execution, r *reader) table.Table {
	return func(x *execution, r *reader) table.Table {
		return &views.Rollup{Store: x.Store, Reader: r, Step: views.RollupSteps[name]}
	}
}

// viewNames are the views, sorted.
var viewNames = slices.Sorted(maps.Keys(catalogued))

// reader implements views.Reader for one scan.
type reader struct {
	x    *execution
	key  string
	base pushdown.Constraint // by the arguments
}

// Read implements views.Reader.
func (r *reader) Read() (context.Context, views.Read, error) {
	x := r.x
	c := r.base.And(x.within(r.key))
	return x.ctx, views.Read{
		Snap: x.snap, Wide: x.wide, Stored: strings.HasPrefix(r.key, storedPrefix), MinT: max(c.MinT, x.mint, key.MinTime), MaxT: min(c.MaxT, x.maxt, key.MaxTime), Sets: c.MatchAll(),
	}, x.ctx.Err()
}

// Counts implements views.Reader.
func (r *reader) Counts(rows func() (stored, computed int64)) {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	r.x.counts[r.key] = append(r.x.counts[r.key], rows)
}

// Progress implements views.Reader.
func (r *reader) Progress(of func() (done, planned int64)) {
	if p := request.From(r.x.ctx).Progress; p != nil {
		p.Add(r.key, of)
	}
}

// Fail implements views.Reader.
func (r *reader) Fail(err error) error { return r.x.fail(err) }

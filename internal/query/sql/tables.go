package sql

import (
	"context"
	"fmt"
	"strings"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/sql/pushdown"
	"github.com/promlake/promlake/internal/query/sql/views"
)

// viewOf returns the view of a scan's argument.
func viewOf(arguments []string) string {
	if len(arguments) == 0 {
		return ""
	}
	name, _, _ := strings.Cut(arguments[0], "#")
	return name
}

func viewMeaning(column string) pushdown.Meaning { return views.Meaning(column) }

// bindScan returns the table behind a view.
func (x *execution) bindScan(arguments []*string) (table.Table, error) {
	if arguments[0] == nil {
		return nil, fmt.Errorf("%s is not a table", scanFunction)
	}
	r := &reader{x, pushdown.Key(scanFunction, []string{*arguments[0]})}
	switch view := viewOf([]string{*arguments[0]}); view {
	case "samples":
		return &views.Samples{Store: x.Store, Reader: r, Shape: views.Flat{}}, nil
	case "series":
		return &views.Series{Store: x.Store, Reader: r}, nil
	default:
		return nil, fmt.Errorf("there is no view %q", view)
	}
}

// reader implements views.Reader for one scan.
type reader struct {
	x   *execution
	key string
}

// Read implements views.Reader.
func (r *reader) Read() (context.Context, views.Read, error) {
	x := r.x
	c := x.within(r.key)
	return x.ctx, views.Read{
		Snap: x.snap, MinT: max(c.MinT, x.mint, key.MinTime), MaxT: min(c.MaxT, x.maxt, key.MaxTime), Sets: c.MatchAll(),
	}, x.ctx.Err()
}

// Fail implements views.Reader.
func (r *reader) Fail(err error) error {
	r.x.mu.Lock()
	defer r.x.mu.Unlock()
	if r.x.failed == nil {
		r.x.failed = err
	}
	return err
}

package views

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/promlake/promlake/internal/query/duck/table"
	"github.com/promlake/promlake/internal/query/lookup"
	"github.com/promlake/promlake/internal/sql/pushdown"
)

// Wide is the shape of samples with a column for each label: ts, value, then the labels by name. A
// series without a label has NULL. Columns of SQL differ by more than case, so a label whose name
// is taken has a number at its end.
type Wide struct {
	names   []string // of the labels
	columns []table.Column
}

// NewWide returns the shape that shows all labels of some series but __name__.
func NewWide(series []lookup.Series) *Wide {
	seen := map[string]bool{}
	for i := range series {
		series[i].Labels.Range(func(l labels.Label) { seen[l.Name] = true })
	}
	delete(seen, model.MetricNameLabel)
	w := &Wide{columns: []table.Column{{Name: timeColumn, Type: table.Timestamp}, {Name: valueColumn, Type: table.Double}}}
	for n := range seen {
		w.names = append(w.names, n)
	}
	slices.Sort(w.names)
	taken := map[string]bool{timeColumn: true, valueColumn: true}
	for _, n := range w.names {
		column := n
		for i := 1; taken[strings.ToLower(column)]; i++ {
			column = fmt.Sprintf("%s_%d", n, i)
		}
		taken[strings.ToLower(column)] = true
		w.columns = append(w.columns, table.Column{Name: column, Type: table.Varchar})
	}
	return w
}

// Meaning returns what a column holds.
func (w *Wide) Meaning(column string) pushdown.Meaning {
	i := slices.IndexFunc(w.columns, func(c table.Column) bool { return c.Name == column })
	switch {
	case i == w.Time():
		return pushdown.Meaning{Kind: pushdown.Time}
	case i > w.Value():
		return pushdown.Meaning{Kind: pushdown.Label, Label: w.names[i-2]}
	}
	return pushdown.Meaning{}
}

// Columns implements Shape.
func (w *Wide) Columns() []table.Column { return w.columns }

// Put implements Shape.
func (w *Wide) Put(c *table.Chunk, l labels.Labels) {
	for i, n := range w.names {
		t := c.Texts(i + 2)
		if v := l.Get(n); v != "" {
			t.Add(v)
		} else {
			t.AddNull()
		}
	}
}

// Repeat implements Shape.
func (w *Wide) Repeat(c *table.Chunk, n int) {
	for i := range w.names {
		c.Texts(i + 2).Choose(n)
	}
}

// Time implements Shape.
func (*Wide) Time() int { return 0 }

// Value implements Shape.
func (*Wide) Value() int { return 1 }

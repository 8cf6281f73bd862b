package query

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/read"
	"github.com/promlake/promlake/internal/segment"
)

// source is the set of objects that a statement reads series from, with the union of their columns. It is a plan: pure and printable.
type source struct {
	objs     []located
	paths    []string       // parallel to objs once the files are open
	columns  []string       // label names that have a column in some object, sorted
	partial  bool           // the objects' columns differ
	inColumn map[string]int // label name -> number of objects with the column
	inMap    map[string]bool
	segments bool // some object is a segment
	blocks   bool // some object is a block
	hasST    bool // some segment has it; so below
	hasHist  bool
	unread   int64 // ms: the latest sample of the objects that were left out because they end too early
}

func newSource(sel selection) *source {
	s := &source{objs: sel.objs, unread: sel.unread, inColumn: map[string]int{}, inMap: map[string]bool{}}
	for i, o := range sel.objs {
		ft := o.footer
		for _, n := range ft.LabelColumns {
			s.inColumn[n]++
		}
		for _, n := range ft.MapNames {
			s.inMap[n] = true
		}
		s.hasST = s.hasST || ft.HasST
		s.hasHist = s.hasHist || ft.HasHist
		s.segments, s.blocks = s.segments || ft.block == nil, s.blocks || ft.block != nil
		s.partial = s.partial || i > 0 && !sameColumns(sel.objs[0].footer, ft)
	}
	for n := range s.inColumn {
		s.columns = append(s.columns, n)
	}
	slices.Sort(s.columns)
	return s
}

func sameColumns(a, b *footer) bool {
	return a.HasST == b.HasST && a.HasHist == b.HasHist && a.HasExemplars == b.HasExemplars && (a.block == nil) == (b.block == nil) &&
		(len(a.MapNames) > 0) == (len(b.MapNames) > 0) && slices.Equal(a.LabelColumns, b.LabelColumns)
}

// has says whether some series of the objects may carry a label of this name.
func (s *source) has(name string) bool {
	return name == model.MetricNameLabel || s.inColumn[name] > 0 || s.inMap[name]
}

// from renders the table expression: the files, by rank. A column that a file lacks reads as NULL.
func (s *source) from() string {
	var b strings.Builder
	b.WriteString("read_parquet([")
	b.WriteString(duck.Literals(s.paths))
	b.WriteString("], hive_partitioning = false")
	if s.partial {
		b.WriteString(", union_by_name = true")
	}
	b.WriteString(")")
	return b.String()
}

// rows returns the number of series rows in the objects.
func (s *source) rows() int64 {
	var n int64
	for _, o := range s.objs {
		n += o.footer.Rows
	}
	return n
}

// totals says what a statement over the source reads.
func (s *source) totals() (t read.Totals) {
	for _, o := range s.objs {
		n := o.size
		if m := o.footer.block; m != nil {
			t.Blocks++
			if f := fileOf(m, block.SeriesFile); f != nil {
				n = f.Bytes
			}
		} else {
			t.Segments++
		}
		t.Bytes.Considered, t.Bytes.Read = t.Bytes.Considered+n, t.Bytes.Read+n
	}
	return t
}

// fileOf returns a block's file by name, nil if there is none.
func fileOf(m *block.Meta, name string) *block.File {
	i := slices.IndexFunc(m.Files, func(f block.File) bool { return f.Name == name })
	if i < 0 {
		return nil
	}
	return &m.Files[i]
}

// column is the SQL name of a label's column.
func column(label string) string {
	if label == model.MetricNameLabel {
		return duck.Ident(segment.ColMetric)
	}
	return duck.Ident(segment.LabelPrefix + label)
}

// mapEntry is the SQL expression of a label in the MAP, NULL if it is not there.
func mapEntry(label string) string {
	return duck.Ident(segment.ColLabels) + "[" + duck.Literal(label) + "]"
}

// value is the SQL expression of a label's value, never NULL: the label is in its column, or in the MAP, or absent.
func (s *source) value(label string) string {
	col, inMap := s.inColumn[label] > 0, s.inMap[label]
	switch {
	case label == model.MetricNameLabel, col && !inMap && s.inColumn[label] == len(s.objs):
		return column(label)
	case col && !inMap:
		return "coalesce(" + column(label) + ", '')"
	case inMap && !col:
		return "coalesce(" + mapEntry(label) + ", '')"
	case col && inMap:
		return "coalesce(nullif(" + column(label) + ", ''), " + mapEntry(label) + ", '')"
	default:
		return "''"
	}
}

// terms are the SQL expressions of which at most one is a label's value and the others are NULL or ”.
func (s *source) terms(label string) []string {
	if label == model.MetricNameLabel {
		return []string{column(label)}
	}
	var out []string
	if s.inColumn[label] > 0 {
		out = append(out, column(label))
	}
	if s.inMap[label] {
		out = append(out, mapEntry(label))
	}
	return out
}

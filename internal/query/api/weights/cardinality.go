package weights

import (
	"cmp"
	"maps"
	"slices"

	"github.com/prometheus/prometheus/model/labels"
)

// Weight is what is stored of some series.
type Weight struct {
	Series  int64
	Samples int64
	Bytes   float64
	Last    int64 // ms; time of the last sample
}

func (w *Weight) add(samples int64, bytes float64, last int64) {
	w.Series, w.Samples, w.Bytes, w.Last = w.Series+1, w.Samples+samples, w.Bytes+bytes, max(w.Last, last)
}

// Row is what is stored of the series with a label, or with a value of a label.
type Row struct {
	Name   string
	Values int64 // distinct values; 1 if the row is a value
	Length int64 // bytes of the values over all series
	Weight
}

// Counter counts distinct series. The zero value has counted none.
type Counter struct {
	Total  Weight
	labels map[string]*label
}

// label is what was counted of a label.
type label struct {
	Row
	values map[string]*Weight
}

// Add counts a series.
func (c *Counter) Add(lset labels.Labels, samples int64, bytes float64, last int64) {
	if c.labels == nil {
		c.labels = map[string]*label{}
	}
	c.Total.add(samples, bytes, last)
	lset.Range(func(l labels.Label) {
		of := c.labels[l.Name]
		if of == nil {
			of = &label{Row: Row{Name: l.Name}, values: map[string]*Weight{}}
			c.labels[l.Name] = of
		}
		w := of.values[l.Value]
		if w == nil {
			w = &Weight{}
			of.values[l.Value] = w
			of.Values++
		}
		w.add(samples, bytes, last)
		of.add(samples, bytes, last)
		of.Length += int64(len(l.Value))
	})
}

// Pairs is the number of distinct label pairs.
func (c *Counter) Pairs() (n int64) {
	for _, l := range c.labels {
		n += l.Values
	}
	return n
}

// Labels returns a row for each label.
func (c *Counter) Labels() []Row {
	out := make([]Row, 0, len(c.labels))
	for _, l := range c.labels {
		out = append(out, l.Row)
	}
	return out
}

// Label returns the row of a label; ok is false if no series has it.
func (c *Counter) Label(name string) (r Row, ok bool) {
	l := c.labels[name]
	if l == nil {
		return Row{Name: name}, false
	}
	return l.Row, true
}

// Values returns a row for each value of a label.
func (c *Counter) Values(name string) []Row {
	l := c.labels[name]
	if l == nil {
		return []Row{}
	}
	out := make([]Row, 0, len(l.values))
	for v, w := range l.values {
		out = append(out, Row{Name: v, Values: 1, Weight: *w})
	}
	return out
}

// PairRows returns a row, with a name such as job=api, for each label pair.
func (c *Counter) PairRows() []Row {
	out := make([]Row, 0, c.Pairs())
	for _, name := range slices.Sorted(maps.Keys(c.labels)) {
		for v, w := range c.labels[name].values {
			out = append(out, Row{Name: name + "=" + v, Values: 1, Weight: *w})
		}
	}
	return out
}

// Largest returns the n rows with the largest numbers by one of them, descending, then by name. It
// changes the order of rows.
func Largest(rows []Row, n int, by func(*Row) int64) []Row {
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(by(&b), by(&a)), cmp.Compare(a.Name, b.Name)) })
	return rows[:min(n, len(rows))]
}

// BySeries orders rows by the number of series.
func BySeries(r *Row) int64 { return r.Series }

// ByValues orders labels by the number of their values.
func ByValues(r *Row) int64 { return r.Values }

// ByLength orders labels by the bytes of their values.
func ByLength(r *Row) int64 { return r.Length }

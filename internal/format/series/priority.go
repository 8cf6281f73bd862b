package series

import (
	"strings"
)

// priorityNames are the labels that follow the metric in the order of blocks. Most matchers use
// them, so that matching series are stored together. The list and its order are part of version 1
// of the block format.
var priorityNames = [...]string{"cluster", "namespace", "job", "instance"}

// priority holds the value ordinals plus one of the labels of priorityNames; 0 = absent.
type priority [len(priorityNames)]uint32

func (v *View) priorityValues(pairs []Pair) (vals priority) {
	for _, p := range pairs {
		if at := v.priority[p.Name]; at != 0 {
			vals[at-1] = p.Value + 1
		}
	}
	return vals
}

// ComparePriority orders the series of blocks: by metric, then by the values of the labels cluster,
// namespace, job and instance (bytewise, absent first), then by the other labels in upstream's
// labels.Compare order.
func ComparePriority(v *View, a, b Ref) int {
	if a == b {
		return 0
	}
	if ma, mb := v.Metric(a), v.Metric(b); ma != mb {
		return strings.Compare(v.Metrics[ma], v.Metrics[mb])
	}
	pa, pb := v.Pairs(a), v.Pairs(b)
	for len(pa) > 0 && len(pb) > 0 && pa[0] == pb[0] { // skip equal labels
		pa, pb = pa[1:], pb[1:]
	}
	va, vb := v.priorityValues(pa), v.priorityValues(pb)
	for i := range va {
		if va[i] != vb[i] {
			return strings.Compare(v.priorityText(pa, i), v.priorityText(pb, i))
		}
	}
	return v.compareRest(pa, pb)
}

// priorityText returns the value of the label at an index of priorityNames, or "" if it is absent:
// no label has an empty value.
func (v *View) priorityText(pairs []Pair, at int) string {
	for _, p := range pairs {
		if int(v.priority[p.Name]) == at+1 {
			return v.Values[p.Name][p.Value]
		}
	}
	return ""
}

// compareRest compares label lists as Compare does, but skips the priority labels.
func (v *View) compareRest(a, b []Pair) int {
	for {
		for len(a) > 0 && v.priority[a[0].Name] != 0 {
			a = a[1:]
		}
		for len(b) > 0 && v.priority[b[0].Name] != 0 {
			b = b[1:]
		}
		if len(a) == 0 || len(b) == 0 {
			return len(a) - len(b)
		}
		x, y := a[0], b[0]
		if x.Name != y.Name {
			return strings.Compare(v.Names[x.Name], v.Names[y.Name])
		}
		if x.Value != y.Value {
			return strings.Compare(v.Values[x.Name][x.Value], v.Values[x.Name][y.Value])
		}
		a, b = a[1:], b[1:]
	}
}

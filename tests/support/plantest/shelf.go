package plantest

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"
)

// Shelf is the content of world.txt: the labels of metrics.
type Shelf struct {
	domains map[string][]string
	metrics [][]string // pattern, labels...
}

// Lines returns the lines of all sections of a file.
func Lines(t testing.TB, name string) (out []string) {
	for _, s := range Sections(t, name) {
		out = append(out, s.Lines...)
	}
	return out
}

// ReadShelf reads a file like world.txt.
func ReadShelf(t testing.TB, name string) *Shelf {
	s := &Shelf{domains: map[string][]string{}}
	for _, l := range Lines(t, name) {
		words := strings.Fields(l)
		if words[0] == "label" {
			s.domains[words[1]] = words[2:]
			continue
		}
		s.metrics = append(s.metrics, words)
	}
	return s
}

// Series returns the label sets of a metric.
func (s *Shelf) Series(t testing.TB, name string) []labels.Labels {
	at := slices.IndexFunc(s.metrics, func(m []string) bool {
		ok, err := path.Match(m[0], name)
		require.NoError(t, err)
		return ok
	})
	require.GreaterOrEqual(t, at, 0, "world.txt has no metric %s", name)
	sets := []map[string]string{{model.MetricNameLabel: name}}
	var follow [][2]string
	for _, l := range s.metrics[at][1:] {
		if name, from, ok := strings.Cut(l, "~"); ok {
			follow = append(follow, [2]string{name, from})
			continue
		}
		name, values, ok := strings.Cut(l, "=")
		domain := strings.Split(values, "|")
		if !ok {
			domain = s.domains[name]
		}
		require.NotEmpty(t, domain, "world.txt has no values of label %s", name)
		var more []map[string]string
		for _, set := range sets {
			for _, v := range domain {
				more = append(more, with(set, name, v))
			}
		}
		sets = more
	}
	out := make([]labels.Labels, len(sets))
	for i, set := range sets {
		for _, f := range follow {
			set[f[0]] = s.follows(set, f[0], strings.Split(f[1], "+"))
		}
		out[i] = labels.FromMap(set)
	}
	slices.SortFunc(out, labels.Compare)
	return out
}

func with(set map[string]string, name, value string) map[string]string {
	out := map[string]string{name: value}
	for k, v := range set {
		out[k] = v
	}
	return out
}

// follows returns the value of a label that other labels determine: one of its own values, if it
// has any, else the values of the others joined.
func (s *Shelf) follows(set map[string]string, name string, from []string) string {
	var values []string
	at := 0
	for _, f := range from {
		values = append([]string{set[f]}, values...)
		at += max(slices.Index(s.domains[f], set[f]), 0)
	}
	if own := s.domains[name]; len(own) > 0 {
		return own[at%len(own)]
	}
	return strings.Join(values, ".")
}

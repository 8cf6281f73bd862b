package otlp

import (
	"sync"

	"github.com/prometheus/otlptranslator"

	"github.com/promlake/promlake/internal/format/remotewrite"
)

// family is a metric's name and unit in Prometheus' terms.
type family struct {
	name string
	unit string
	err  error // why it has no name
}

// The names of maxKnown metrics are kept, unless their texts are longer than maxKnownBytes.
const (
	maxKnown      = 10_000
	maxKnownBytes = 512
)

// names are the translated names of metrics. Translating one takes longer than decoding ten data
// points, and most requests have few points of each metric.
type names struct {
	namer otlptranslator.MetricNamer
	mu    sync.RWMutex
	known map[string]*family
}

// of returns the family of a metric.
func (n *names) of(m *metric) *family {
	var buf [maxKnownBytes + 8]byte
	size := len(m.name) + len(m.unit)
	if size > maxKnownBytes {
		return n.translate(m)
	}
	k := append(remotewrite.AppendKey(append(buf[:0], byte(m.kind)), m.unit), m.name...)
	n.mu.RLock()
	f := n.known[string(k)]
	n.mu.RUnlock()
	if f != nil {
		return f
	}
	f = n.translate(m)
	n.mu.Lock()
	defer n.mu.Unlock()
	if old := n.known[string(k)]; old != nil {
		return old
	}
	if len(n.known) >= maxKnown {
		clear(n.known)
	}
	n.known[string(k)] = f
	return f
}

func (n *names) translate(m *metric) *family {
	units := otlptranslator.UnitNamer{}
	f := &family{unit: units.Build(string(m.unit))}
	f.name, f.err = n.namer.Build(otlptranslator.Metric{Name: string(m.name), Unit: string(m.unit), Type: m.kind.translated()})
	return f
}

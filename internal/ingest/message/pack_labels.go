package message

import (
	"encoding/binary"
	"slices"
	"sort"

	"github.com/prometheus/common/model"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
)

// labels appends the label sets of the message's series: names, shapes (which names occur
// together), the values of each name, the shape of each series, and the values of each series.
// Values are numbered in order of first use; a value is the difference to the last number of its
// name.
func (p *packer) labels(dst []byte) []byte {
	guess := uint32(0)
	for _, r := range p.series {
		pairs := p.view.Pairs(r)
		k := p.shape(pairs, guess)
		p.kinds = binary.AppendUvarint(p.kinds, uint64(k))
		at := p.shapes[k].metric
		for _, pr := range pairs[:at] {
			p.rows = p.columns[pr.Name+1].step(p.rows, pr.Value)
		}
		p.rows = p.columns[metricColumn].step(p.rows, p.view.Metric(r))
		for _, pr := range pairs[at:] {
			p.rows = p.columns[pr.Name+1].step(p.rows, pr.Value)
		}
		guess = k
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.used)))
	for _, i := range p.used {
		dst = remotewrite.AppendKey(dst, p.columns[i].name)
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.shapes)))
	for i := range p.shapes {
		s := &p.shapes[i]
		dst = binary.AppendUvarint(dst, uint64(len(s.names)+1))
		for i, n := range s.names {
			if i == s.metric {
				dst = binary.AppendUvarint(dst, uint64(p.columns[metricColumn].number-1))
			}
			dst = binary.AppendUvarint(dst, uint64(p.columns[n+1].number-1))
		}
		if s.metric == len(s.names) {
			dst = binary.AppendUvarint(dst, uint64(p.columns[metricColumn].number-1))
		}
	}
	for _, i := range p.used {
		c := &p.columns[i]
		dst = binary.AppendUvarint(dst, uint64(len(c.used)))
		for _, v := range c.used {
			dst = remotewrite.AppendKey(dst, c.values[v])
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(p.series)))
	return append(append(dst, p.kinds...), p.rows...)
}

// shape returns the number of the shape of a series with these labels. last is the shape of the
// previous series: the shape that followed it last time mostly follows it again.
func (p *packer) shape(pairs []series.Pair, last uint32) uint32 {
	if int(last) < len(p.shapes) {
		if next := p.shapes[last].next; p.shapes[next].has(pairs) {
			return next
		}
	}
	p.nameKey = p.nameKey[:0]
	for _, pr := range pairs {
		p.nameKey = binary.LittleEndian.AppendUint32(p.nameKey, pr.Name)
	}
	k, ok := p.byNames[string(p.nameKey)]
	if !ok {
		k = uint32(len(p.shapes))
		p.byNames[string(p.nameKey)] = k
		p.shapes = append(p.shapes, p.newShape(pairs))
	}
	p.shapes[last].next = k
	return k
}

func (s *shape) has(pairs []series.Pair) bool {
	return slices.EqualFunc(s.names, pairs, func(name uint32, pr series.Pair) bool { return name == pr.Name })
}

func (p *packer) newShape(pairs []series.Pair) shape {
	s := shape{
		names:  make([]uint32, len(pairs)),
		metric: sort.Search(len(pairs), func(i int) bool { return p.view.Names[pairs[i].Name] > model.MetricNameLabel }),
	}
	p.use(metricColumn)
	for i, pr := range pairs {
		s.names[i] = pr.Name
		p.use(pr.Name + 1)
	}
	return s
}

// use takes a column into the message.
func (p *packer) use(i uint32) {
	c := &p.columns[i]
	if c.number > 0 {
		return
	}
	if i == metricColumn {
		c.name, c.values = model.MetricNameLabel, p.view.Metrics
	} else {
		c.name, c.values = p.view.Names[i-1], p.view.Values[i-1]
	}
	p.used = append(p.used, i)
	c.number = uint32(len(p.used))
	c.numbers = zeros(c.numbers, len(c.values))
}

// step appends a value.
func (c *column) step(dst []byte, v uint32) []byte {
	n := c.numbers[v]
	if n == 0 {
		c.used = append(c.used, v)
		n = uint32(len(c.used))
		c.numbers[v] = n
	}
	d := int64(n-1) - int64(c.last)
	c.last = n - 1
	if d == 0 {
		return append(dst, 0)
	}
	return binary.AppendVarint(dst, d)
}

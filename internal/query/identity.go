package query

import (
	"slices"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/zeebo/xxh3"

	"github.com/promlake/promlake/internal/query/duck"
)

// seriesKey tells series apart across files: a hash of its labels under a seed that senders cannot know. Equal keys mean equal
// labels, for that two label sets share one is as good as impossible, and equal labels mean equal keys, which is not so of the stored
// ids: a block stores another one for a series whose id is taken. So labels are decoded once per key.
type seriesKey = xxh3.Uint128

// identifier computes series keys and labels from the chunks of one scan.
type identifier struct {
	scan  *scan
	seed  uint64
	names []string    // by label column; first the metric
	salts []uint64    // by label column
	keys  []seriesKey // of the current chunk's rows
	build labels.ScratchBuilder
}

func newIdentifier(s *scan, seed uint64) *identifier {
	id := &identifier{scan: s, seed: seed, names: append([]string{model.MetricNameLabel}, s.src.columns...), build: labels.NewScratchBuilder(16)}
	for _, n := range id.names {
		id.salts = append(id.salts, xxh3.HashStringSeed(n, seed))
	}
	return id
}

// chunk hashes the label sets of a chunk's rows. The hash is a sum over labels, so it does not depend on which of them
// have a column in a file.
func (d *identifier) chunk(n int, cols []duck.Vector) {
	d.keys = slices.Grow(d.keys[:0], n)[:n]
	clear(d.keys)
	for c, salt := range d.salts {
		col := cols[colMetric+c]
		vals := col.Strings()
		for i := range vals {
			if s := &vals[i]; col.Valid(i) && s.Len() > 0 {
				d.add(i, s.Bytes(), salt)
			}
		}
	}
	if d.scan.labelMap < 0 {
		return
	}
	col := cols[d.scan.labelMap]
	entries, keys, values := col.Map()
	ks, vs := keys.Strings(), values.Strings()
	for i, e := range entries {
		if !col.Valid(i) {
			continue
		}
		for j := e.Offset; j < e.Offset+e.Length; j++ {
			if vs[j].Len() > 0 {
				d.add(i, vs[j].Bytes(), xxh3.HashSeed(ks[j].Bytes(), d.seed))
			}
		}
	}
}

// add adds a label to the hash of a row. salt stands for its name.
func (d *identifier) add(row int, value []byte, salt uint64) {
	h, k := xxh3.Hash128Seed(value, salt), &d.keys[row]
	k.Hi, k.Lo = k.Hi+h.Hi, k.Lo+h.Lo
}

// labels decodes the label set of a row of the current chunk.
func (d *identifier) labels(row int, cols []duck.Vector) labels.Labels {
	d.build.Reset()
	for c, name := range d.names {
		col := cols[colMetric+c]
		if vals := col.Strings(); col.Valid(row) && vals[row].Len() > 0 {
			d.build.Add(name, vals[row].String())
		}
	}
	if d.scan.labelMap >= 0 && cols[d.scan.labelMap].Valid(row) {
		entries, keys, values := cols[d.scan.labelMap].Map()
		ks, vs := keys.Strings(), values.Strings()
		for j := entries[row].Offset; j < entries[row].Offset+entries[row].Length; j++ {
			if vs[j].Len() > 0 {
				d.build.Add(ks[j].String(), vs[j].String())
			}
		}
	}
	d.build.Sort()
	return d.build.Labels()
}

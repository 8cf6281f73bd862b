package buckets

import (
	"math"

	"github.com/promlake/promlake/internal/query/request"
	"github.com/promlake/promlake/internal/query/samples"
	"github.com/promlake/promlake/internal/query/source"
)

// Parts returns what the scan reads of blocks: of rollups, and of the samples from which rows are
// computed.
func (s *Scan) Parts() (parts []source.Parts, took request.Totals) {
	byObject := map[int]int{} // positions in parts
	for _, g := range s.groups {
		at, ok := byObject[g.object]
		if !ok {
			file, o := s.file(g.object), &s.res.Objects[g.object]
			at = len(parts)
			byObject[g.object] = at
			parts = append(parts, s.reader.Files.Parts(s.ctx, o.Block.File(file.Name), file.Bytes))
			took.RowGroups.Considered += int64(s.places[g.object].Groups())
			took.Bytes.Considered += file.Bytes
		}
		took.RowGroups.Read++
		for _, span := range s.places[g.object].FieldSpans(g.number, s.fields) {
			parts[at].Spans = append(parts[at].Spans, span)
			took.Bytes.Read += span[1]
		}
	}
	add := func(series []int, of span, kinds ...func(*samples.Collector) ([]source.Parts, request.Totals)) {
		c := s.reader.Samples.Collect(s.res.Match(series, of.from+1, of.to))
		for _, k := range kinds {
			p, t := k(c)
			parts = append(parts, p...)
			took.Add(t)
		}
	}
	floats := func(c *samples.Collector) ([]source.Parts, request.Totals) { return c.FloatParts(s.ctx) }
	hists := func(c *samples.Collector) ([]source.Parts, request.Totals) { return c.HistParts(s.ctx) }
	for _, b := range s.computed {
		add(b.series, b.span, floats)
	}
	if len(s.hists) > 0 {
		add(s.hists, s.all, floats, hists)
	}
	return parts, took
}

// Estimate is about how many rows are stored and computed, as if each series had samples in all
// buckets from its first to its last.
func (s *Scan) Estimate() (stored, computed int64) {
	if s.all.from >= s.all.to {
		return 0, 0
	}
	buckets := func(a, b span) int64 {
		return max(0, min(a.to, b.to)-max(a.from, b.from)) / s.step.Millis
	}
	for i := range s.res.Series {
		life := span{math.MaxInt64, math.MinInt64}
		for _, at := range s.res.Series[i].At {
			if first, last := s.res.Tables[at.Object].Times(int(at.Row)); first <= last {
				life = span{min(life.from, s.step.BucketOf(first)), max(life.to, s.step.EndOf(last))}
			}
		}
		for _, of := range s.spans[i] {
			computed += buckets(life, of)
		}
	}
	for _, i := range s.hists {
		for _, at := range s.res.Series[i].At {
			first, last := s.res.Tables[at.Object].Times(int(at.Row))
			computed += buckets(span{s.step.BucketOf(first), s.step.EndOf(last)}, s.all)
		}
	}
	for o, members := range s.members {
		for _, m := range members {
			first, last := s.res.Tables[o].Times(int(m.row))
			life := span{s.step.BucketOf(first), s.step.EndOf(last)}
			if m.joined != never {
				life.from += s.step.Millis
			}
			stored += buckets(life, s.all)
			for _, of := range s.spans[m.series] {
				stored -= buckets(span{max(life.from, s.all.from), min(life.to, s.all.to)}, of)
			}
		}
	}
	return stored, computed
}

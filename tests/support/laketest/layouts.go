package laketest

import (
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
)

// Writer stores rows and metadata of a tenant.
type Writer func(l *Lake, tenantID string, rows []segment.Row, meta ...segment.Metadata)

// Layouts are the ways in which a test's samples may be stored. None of them may change an answer.
var Layouts = []struct {
	Name  string
	Write Writer
}{
	{"segments", (*Lake).Write},
	{"24h blocks", func(l *Lake, tenantID string, rows []segment.Row, meta ...segment.Metadata) {
		l.WriteBlocks(tenantID, Shape{Level: key.L24h, GroupRows: 50, FileBytes: 4 << 10}, rows, meta...)
	}},
	{"mixture", WriteMixture},
}

// WriteMixture stores rows as a block, segments and another block, each of which has some of the
// samples. Some samples are in two of them; then the one with the lower rank has wrong values.
func WriteMixture(l *Lake, tenantID string, rows []segment.Row, meta ...segment.Metadata) {
	var parts [3][]segment.Row
	for _, r := range rows {
		var of [3]segment.Row
		for i := range of {
			of[i].Labels = r.Labels
		}
		for i, f := range r.Floats {
			wrong := segment.Float{T: f.T, V: f.V + 1000, ST: f.ST}
			switch i % 4 {
			case 0, 1, 2:
				of[i%4].Floats = append(of[i%4].Floats, f)
			default:
				low := i / 4 % 2
				of[low].Floats = append(of[low].Floats, wrong)
				of[low+1].Floats = append(of[low+1].Floats, f)
			}
		}
		for i, h := range r.Hists {
			switch i % 4 {
			case 0, 1, 2:
				of[i%4].Hists = append(of[i%4].Hists, h)
			default:
				low := i / 4 % 2
				of[low].Hists = append(of[low].Hists, segment.Hist{T: h.T, FH: tsdbutil.GenerateTestFloatHistogram(99)})
				of[low+1].Hists = append(of[low+1].Hists, h)
			}
		}
		for i, e := range r.Exemplars {
			of[i%3].Exemplars = append(of[i%3].Exemplars, e)
		}
		for i := range of {
			if len(of[i].Floats)+len(of[i].Hists)+len(of[i].Exemplars) > 0 {
				parts[i] = append(parts[i], of[i])
			}
		}
	}
	l.WriteBlocks(tenantID, Shape{Level: key.L24h, GroupRows: 30}, parts[0], meta...)
	l.Write(tenantID, parts[1], meta...)
	l.WriteBlocks(tenantID, Shape{Level: key.L12h}, parts[2], meta...)
}

package query_test

import (
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
)

// writer stores rows and metadata of a tenant.
type writer func(l *lake, tenantID string, rows []segment.Row, meta ...segment.Metadata)

// layouts are the ways in which a test's samples may be stored. None of them may change an answer.
var layouts = []struct {
	name  string
	write writer
}{
	{"segments", (*lake).write},
	{"24h blocks", func(l *lake, tenantID string, rows []segment.Row, meta ...segment.Metadata) {
		l.writeBlocks(tenantID, blockShape{level: key.L24h, groupRows: 50, fileBytes: 4 << 10}, rows, meta...)
	}},
	{"mixture", writeMixture},
}

// writeMixture stores rows as a block, segments and another block, each of which has some of the
// samples. Some samples are in two of them; then the one with the lower rank has wrong values.
func writeMixture(l *lake, tenantID string, rows []segment.Row, meta ...segment.Metadata) {
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
	l.writeBlocks(tenantID, blockShape{level: key.L24h, groupRows: 30}, parts[0], meta...)
	l.write(tenantID, parts[1], meta...)
	l.writeBlocks(tenantID, blockShape{level: key.L12h}, parts[2], meta...)
}

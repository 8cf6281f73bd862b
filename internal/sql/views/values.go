package views

import (
	"github.com/prometheus/prometheus/promql"

	"github.com/promlake/promlake/internal/query/duck/table"
)

// Values is the table of a PromQL expression's values, with the columns of samples.
type Values struct {
	// Eval evaluates the expression. Its result has no histograms.
	Eval func() (promql.Matrix, error)
}

// Columns implements table.Table.
func (*Values) Columns() []table.Column { return flatColumns }

// Rows implements table.Table.
func (*Values) Rows() int64 { return 100_000 }

// Open implements table.Table.
func (v *Values) Open([]int) (table.Scan, error) {
	m, err := v.Eval()
	if err != nil {
		return nil, err
	}
	return &valueScan{series: m}, nil
}

// valueScan is a scan by one thread. It implements table.Scan and table.Cursor.
type valueScan struct {
	series promql.Matrix
	at     int // the next point of the first series
}

func (s *valueScan) Threads() int         { return 1 }
func (s *valueScan) Cursor() table.Cursor { return s }
func (s *valueScan) Close()               {}

// Next implements table.Cursor.
func (s *valueScan) Next(out *table.Chunk) error {
	times, values := out.Numbers(2), out.Doubles(3)
	for len(s.series) > 0 && out.Rows < table.ChunkRows {
		points := s.series[0].Floats[s.at:]
		if apart(out, len(points)) {
			return nil
		}
		n := min(len(points), table.ChunkRows-out.Rows)
		for i, p := range points[:n] {
			if times != nil {
				times[out.Rows+i] = p.T * 1000
			}
			if values != nil {
				values[out.Rows+i] = p.F
			}
		}
		if n > 0 {
			Flat{}.Put(out, s.series[0].Metric)
			Flat{}.Repeat(out, n)
		}
		out.Rows += n
		if s.at += n; s.at == len(s.series[0].Floats) {
			s.series, s.at = s.series[1:], 0
		}
	}
	return nil
}

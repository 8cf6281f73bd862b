package query

import (
	"strings"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/segment"
)

// payload says which sample columns a scan reads beside the labels.
type payload int

const (
	labelsOnly payload = iota
	samples
	exemplars
)

// scan is the statement that reads whole series rows of a source. Its columns are, in this order: file_index, series_id, metric,
// one per label column, the MAP if any, and those of the payload.
type scan struct {
	src   *source
	pred  predicate
	want  payload
	types []string // SQL types of the columns
	exprs []string // their SQL
	// Positions of columns; -1 = not read.
	labelMap, ts, value, st, histTS, hist, exTS, exValue, exLabels int
}

// Positions of the columns that every scan has.
const (
	colFileIndex = iota
	colSeriesID
	colMetric // followed by the label columns
)

func newScan(src *source, pred predicate, want payload) *scan {
	s := &scan{src: src, pred: pred, want: want,
		labelMap: -1, ts: -1, value: -1, st: -1, histTS: -1, hist: -1, exTS: -1, exValue: -1, exLabels: -1}
	// file_index is the file's position in the list, and so its age.
	s.add("file_index", duck.UBigInt)
	s.add(duck.Ident(segment.ColSeriesID), duck.UBigInt)
	s.add(duck.Ident(segment.ColMetric), duck.Varchar)
	for _, n := range src.columns {
		s.add(column(n), duck.Varchar)
	}
	if len(src.inMap) > 0 {
		s.labelMap = s.add(duck.Ident(segment.ColLabels), duck.Map)
	}
	switch want {
	case samples:
		s.ts, s.value = s.add(segment.ColTS, duck.Times), s.add(segment.ColValue, duck.Doubles)
		if src.hasST {
			s.st = s.add(segment.ColST, duck.Times)
		}
		if src.hasHist {
			s.histTS, s.hist = s.add(segment.ColHistTS, duck.Times), s.add(segment.ColHist, duck.Blobs)
		}
	case exemplars:
		s.exTS, s.exValue = s.add(segment.ColExTS, duck.Times), s.add(segment.ColExValue, duck.Doubles)
		s.exLabels = s.add(segment.ColExLabels, duck.Varchars)
	}
	return s
}

func (s *scan) add(expr, typ string) int {
	s.exprs, s.types = append(s.exprs, expr), append(s.types, typ)
	return len(s.exprs) - 1
}

// String renders the statement.
func (s *scan) String() string {
	return "SELECT " + strings.Join(s.exprs, ", ") + " FROM " + s.src.from() + s.pred.sql()
}

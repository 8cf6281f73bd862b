package query

import (
	"strings"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/segment"
)

// payload says which sample columns a scan reads beside the labels.
type payload int

const (
	labelsOnly payload = iota
	samples
	times // of samples, to count them
	exemplars
)

// scan is the statement that reads series rows of a source. Its columns are, in this order: file_index, series_id, metric,
// one per label column, the MAP if any, and those of the payload.
type scan struct {
	src   *source
	pred  predicate
	want  payload
	types []string // SQL types of the columns
	exprs []string // their SQL
	// Positions of columns; -1 = not read. The lists are NULL in rows of blocks, the numbers in rows of segments.
	labelMap, ts, value, st, histTS, hist, exTS, exValue, exLabels int
	rowStart, rowCount, histStart, histCount, exCount              int
}

// Positions of the columns that every scan has.
const (
	colFileIndex = iota
	colSeriesID
	colMetric // followed by the label columns
)

func newScan(src *source, pred predicate, want payload) *scan {
	s := &scan{src: src, pred: pred, want: want,
		labelMap: -1, ts: -1, value: -1, st: -1, histTS: -1, hist: -1, exTS: -1, exValue: -1, exLabels: -1,
		rowStart: -1, rowCount: -1, histStart: -1, histCount: -1, exCount: -1}
	// file_index is the file's position in the list, and so that of its object in the order of ranks.
	s.add("file_index", duck.UBigInt)
	s.add(duck.Ident(segment.ColSeriesID), duck.UBigInt)
	s.add(duck.Ident(segment.ColMetric), duck.Varchar)
	for _, n := range src.columns {
		s.add(column(n), duck.Varchar)
	}
	if len(src.inMap) > 0 {
		s.labelMap = s.add(duck.Ident(segment.ColLabels), duck.Map)
	}
	if src.segments {
		s.addLists()
	}
	if src.blocks {
		s.addPlaces()
	}
	return s
}

// addLists reads what segments' rows carry.
func (s *scan) addLists() {
	switch s.want {
	case samples, times:
		s.ts = s.add(segment.ColTS, duck.Times)
		if s.src.hasHist {
			s.histTS = s.add(segment.ColHistTS, duck.Times)
		}
	case exemplars:
		s.exTS, s.exValue = s.add(segment.ColExTS, duck.Times), s.add(segment.ColExValue, duck.Doubles)
		s.exLabels = s.add(segment.ColExLabels, duck.Varchars)
	}
	if s.want != samples {
		return
	}
	s.value = s.add(segment.ColValue, duck.Doubles)
	if s.src.hasST {
		s.st = s.add(segment.ColST, duck.Times)
	}
	if s.src.hasHist {
		s.hist = s.add(segment.ColHist, duck.Blobs)
	}
}

// addPlaces reads where blocks have what their rows stand for.
func (s *scan) addPlaces() {
	switch s.want {
	case samples, times:
		s.rowStart, s.rowCount = s.add(block.ColRowStart, duck.BigInt), s.add(block.ColRowCount, duck.BigInt)
		s.histStart, s.histCount = s.add(block.ColHistStart, duck.BigInt), s.add(block.ColHistCount, duck.BigInt)
	case exemplars:
		s.exCount = s.add(block.ColExCount, duck.BigInt)
	}
}

func (s *scan) add(expr, typ string) int {
	s.exprs, s.types = append(s.exprs, expr), append(s.types, typ)
	return len(s.exprs) - 1
}

// String renders the statement.
func (s *scan) String() string {
	return "SELECT " + strings.Join(s.exprs, ", ") + " FROM " + s.src.from() + s.pred.sql()
}

package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/plan"
	"github.com/promlake/promlake/internal/query/plan/ordinals"
)

// scanText renders a leafScan. Its BLOBs become arguments of the statement.
type scanText struct {
	args [][]byte
}

// arg returns the placeholder of a BLOB.
func (t *scanText) arg(b []byte) string {
	t.args = append(t.args, b)
	return plan.Arg(len(t.args) - 1)
}

// set returns the placeholder of a set of keys for prom_pick, which a hundred thousand keys do not
// slow down.
func (t *scanText) set(keys []uint64) string {
	keys = slices.Clone(keys)
	slices.Sort(keys)
	return t.arg(ordinals.Map(keys, make([]uint32, len(keys))))
}

// scan renders the scan of files and segments. path returns the path of a key.
func (s *leafScan) scan(path func(key string) string) plan.Scan {
	t := &scanText{}
	decoded := len(s.segments) > 0
	var parts []string
	for i := range s.blocks {
		for j := range s.blocks[i].files {
			s.blocks[i].files[j].path = path(s.blocks[i].files[j].key)
		}
		parts = append(parts, t.block(s, &s.blocks[i], decoded)...)
	}
	if len(s.segments) > 0 {
		paths := make([]string, len(s.res.Objects))
		for _, g := range s.segments {
			paths[g.object] = path(s.res.Objects[g.object].Series)
		}
		parts = append(parts, t.segments(s, paths)...)
	}
	if len(parts) == 0 {
		parts = append(parts, "SELECT 0::UBIGINT AS rank, 0::UBIGINT AS series_id, make_timestamptz(0) AS ts, 0::BIGINT AS v_int, 0::DOUBLE AS v_div WHERE false")
	}
	return plan.Scan{SQL: strings.Join(parts, " UNION ALL "), Decoded: decoded, Args: t.args}
}

// rowSpan is a range of rows of a file.
type rowSpan struct {
	path     string
	from, to int64
	whole    bool  // all of the file
	inside   bool  // all its times are wanted
	wanted   int64 // rows
	last     int   // the row group with its last row
}

// Neighbouring spans are joined if at most spanGap rows lie between them: a span costs DuckDB about
// as long as that many rows. They are also joined if a file has more than maxSpans, or if all files
// of a scan have more than maxScanSpans.
const (
	spanGap      = 16 << 10
	maxSpans     = 16
	maxScanSpans = 512
)

// spans returns the ranges of a file that have the wanted rows, at most limit.
func (s *leafScan) spans(b *blockRows, f *fileRows, limit int) []rowSpan {
	var out []rowSpan
	for _, j := range f.groups {
		g := &f.file.RowGroups[j]
		runs := b.within(g)
		from, to := max(runs[0].from, g.FirstRow), min(runs[len(runs)-1].to, g.FirstRow+g.Rows)
		first := g.FirstRow - f.file.RowGroups[0].FirstRow // in the file
		next := rowSpan{path: f.path, from: first + from - g.FirstRow, to: first + to - g.FirstRow, inside: g.MinT >= s.mint && g.MaxT <= s.maxt, last: j}
		for _, r := range runs {
			next.wanted += min(r.to, to) - max(r.from, from)
		}
		if n := len(out); n > 0 && next.from >= out[n-1].to && next.from-out[n-1].to <= spanGap {
			out[n-1].join(next)
			continue
		}
		out = append(out, next)
	}
	slices.SortFunc(out, func(a, b rowSpan) int { return int(a.from - b.from) })
	if size := (len(out) + limit - 1) / limit; size > 1 {
		var fewer []rowSpan
		for group := range slices.Chunk(out, size) {
			for _, next := range group[1:] {
				group[0].join(next)
			}
			fewer = append(fewer, group[0])
		}
		out = fewer
	}
	for i := range out {
		out[i].whole = out[i].from == 0 && out[i].to == f.file.Rows
	}
	return out
}

// join adds a later span and the rows between them.
func (s *rowSpan) join(next rowSpan) {
	s.inside = s.inside && next.inside && s.last+1 == next.last
	s.to, s.wanted, s.last = next.to, s.wanted+next.wanted, next.last
}

// block renders the read of a block.
func (t *scanText) block(s *leafScan, b *blockRows, decoded bool) []string {
	rank, value := 0, "v_int, v_div"
	if s.ranked {
		rank = b.rank
	}
	if decoded {
		value = "prom_value(v_int, v_div) AS value"
	}
	set, out := "", []string(nil)
	files := 0
	for i := range s.blocks {
		files += len(s.blocks[i].files)
	}
	limit := max(1, min(maxSpans, maxScanSpans/max(1, files)))
	for i := range b.files {
		for _, sp := range s.spans(b, &b.files[i], limit) {
			var conds []string
			if !sp.whole {
				conds = append(conds, fmt.Sprintf("file_row_number >= %d AND file_row_number < %d", sp.from, sp.to))
			}
			if !sp.inside {
				conds = append(conds, "ts >= "+timeLiteral(s.mint)+" AND ts <= "+timeLiteral(s.maxt))
			}
			if sp.wanted < sp.to-sp.from {
				if set == "" {
					set = t.set(b.ids)
				}
				conds = append(conds, "prom_pick(series_id, "+set+") IS NOT NULL")
			}
			conds = append(conds, t.alive("series_id", b.gone)...)
			out = append(out, fmt.Sprintf("SELECT %d::UBIGINT AS rank, series_id, ts, %s FROM read_parquet([%s], hive_partitioning = false)%s",
				rank, value, duck.Literal(sp.path), where(conds)))
		}
	}
	return out
}

// alive are the conditions that a sample is not deleted. key identifies series.
func (t *scanText) alive(key string, gone []goneRows) []string {
	var out []string
	for _, g := range gone {
		out = append(out, fmt.Sprintf("(ts < %s OR ts > %s OR prom_pick(%s, %s) IS NULL)", timeLiteral(g.mint), timeLiteral(g.maxt), key, t.set(g.keys)))
	}
	return out
}

func where(conds []string) string {
	if len(conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conds, " AND ")
}

// microsPerMilli: DuckDB reads TIMESTAMP_MS with a time zone as microseconds.
const microsPerMilli = 1000

// timeLiteral renders a timestamp (ms) as SQL.
func timeLiteral(ms int64) string {
	return "make_timestamptz(" + strconv.FormatInt(ms*microsPerMilli, 10) + "::BIGINT)"
}

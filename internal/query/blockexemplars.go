package query

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/query/read"
	"github.com/promlake/promlake/internal/segment"
)

// maxListedIDs is the number of series up to which a statement names them; beyond, it reads those of all series.
const maxListedIDs = 200

// placeExemplars notes which series of blocks have exemplars. Their rows are found by the id of the series, which is unique in a block.
func (c *exemplarCollector) placeExemplars(rows []*memSeries, cols []duck.Vector) {
	if c.scan.exCount < 0 {
		return
	}
	object, ids := cols[colFileIndex].Uint64s(), cols[colSeriesID].Uint64s()
	for i, s := range rows {
		if s == nil || !cols[c.scan.exCount].Valid(i) {
			continue
		}
		p := &c.places[object[i]]
		if p.exemplars == nil {
			p.exemplars = map[uint64]*memSeries{}
		}
		p.exemplars[ids[i]] = s
	}
}

// readBlockExemplars reads the exemplars of the series that c found in blocks, in one statement.
func (s *Stage) readBlockExemplars(ctx context.Context, c *exemplarCollector) error {
	var keys []string
	var objects []int // by key
	ids := map[uint64]struct{}{}
	var took read.Totals
	for i := range c.places {
		p, o := &c.places[i], &c.scan.src.objs[i]
		if len(p.exemplars) == 0 {
			continue
		}
		keys, objects = append(keys, o.block.File(block.ExemplarsFile)), append(objects, i)
		for id := range p.exemplars {
			ids[id] = struct{}{}
		}
		took.Add(exemplarTotals(o.footer.block))
	}
	s.count(ctx, took)
	if len(keys) == 0 {
		return nil
	}
	return s.files.with(ctx, keys, func(paths []string) error {
		sql := exemplarSQL(paths, ids, c.mint, c.maxt)
		types := []string{duck.UBigInt, duck.UBigInt, duck.Time, duck.Double, duck.Varchar}
		return s.db.Each(ctx, sql, types, func(n int, cols []duck.Vector) error { return c.blockExemplars(objects, n, cols) })
	})
}

// exemplarTotals says what a read of a block's exemplars takes: the file as a whole.
func exemplarTotals(m *block.Meta) (t read.Totals) {
	f := fileOf(m, block.ExemplarsFile)
	if f == nil {
		return t
	}
	groups := int64(len(f.RowGroups))
	return read.Totals{RowGroups: read.Share{Considered: groups, Read: groups}, Bytes: read.Share{Considered: f.Bytes, Read: f.Bytes}}
}

// exemplarSQL renders the statement that reads the exemplars of [mint, maxt] (ms) of the series with these ids.
func exemplarSQL(paths []string, ids map[uint64]struct{}, mint, maxt int64) string {
	sql := fmt.Sprintf("SELECT file_index, %s, %s, value, labels FROM read_parquet([%s], hive_partitioning = false) WHERE ts >= %s AND ts <= %s",
		segment.ColSeriesID, segment.ColTS, duck.Literals(paths), timeLiteral(mint), timeLiteral(maxt))
	if len(ids) > maxListedIDs {
		return sql
	}
	var list []string
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		list = append(list, strconv.FormatUint(id, 10)+"::UBIGINT")
	}
	return sql + " AND " + segment.ColSeriesID + " IN (" + strings.Join(list, ", ") + ")"
}

// blockExemplars takes the rows of a chunk. objects are those of the files.
func (c *exemplarCollector) blockExemplars(objects []int, n int, cols []duck.Vector) error {
	files, ids, times, values, texts := cols[0].Uint64s(), cols[1].Uint64s(), cols[2].Int64s(), cols[3].Float64s(), cols[4].Strings()
	for i := range n {
		object := objects[files[i]]
		s := c.places[object].exemplars[ids[i]]
		if s == nil {
			continue
		}
		if c.size++; c.size > c.settings.MaxSamples {
			return c.settings.tooManySamples()
		}
		if err := c.add(s, object, times[i], values[i], &texts[i]); err != nil {
			return err
		}
	}
	return nil
}

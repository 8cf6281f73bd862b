package query

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/promlake/promlake/internal/block"
	"github.com/promlake/promlake/internal/catalog"
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/query/duck"
	"github.com/promlake/promlake/internal/segment"
)

// timeLiteral renders a timestamp (ms) as SQL.
func timeLiteral(ms int64) string {
	return "make_timestamptz(" + strconv.FormatInt(ms*microsPerMilli, 10) + "::BIGINT)"
}

// overlapping is the condition that a row of a block has samples around [mint, maxt] (ms). Rows of segments pass: their time range is
// that of the file. It is "" if all of every block is in the range.
func (s *source) overlapping(mint, maxt int64) string {
	inside := func(o located) bool {
		return o.footer.block == nil || o.footer.MinT >= mint && o.footer.MaxT <= maxt
	}
	if !s.blocks || !slices.ContainsFunc(s.objs, func(o located) bool { return !inside(o) }) {
		return ""
	}
	cond := fmt.Sprintf("%s <= %s AND %s >= %s", block.ColMinTS, timeLiteral(maxt), block.ColMaxTS, timeLiteral(mint))
	if s.segments {
		return "(" + block.ColMinTS + " IS NULL OR " + cond + ")"
	}
	return cond
}

// alive returns the conditions that the samples of a series row within [mint, maxt] (ms) are not all deleted by one tombstone. What only
// several tombstones cover together is not found out here.
func (s *Stage) alive(ctx context.Context, src *source, tombs []catalog.Tombstone, mint, maxt int64) ([]string, error) {
	var out []string
	for _, t := range tombs {
		files := src.appliesTo(t)
		if files == "" {
			continue
		}
		ms, err := t.LabelMatchers()
		if err != nil {
			return nil, fmt.Errorf("read tombstone %s: %w", t.ID, err)
		}
		p, err := s.predicate(ctx, src, ms)
		if err != nil {
			return nil, err
		}
		if p.never {
			continue
		}
		conds := append(append([]string{files}, p.conds...), src.within(t, mint, maxt)...)
		out = append(out, "("+strings.Join(conds, " AND ")+") IS NOT TRUE")
	}
	return out, nil
}

// appliesTo is the condition that a row is of an object that a tombstone applies to; "" is never.
func (s *source) appliesTo(t catalog.Tombstone) string {
	var ids []string
	for i := range s.objs {
		if t.AppliesTo(s.objs[i].rank, s.objs[i].deletesThrough) {
			ids = append(ids, strconv.Itoa(i))
		}
	}
	switch len(ids) {
	case 0:
		return ""
	case len(s.objs):
		return "true"
	}
	return "file_index IN (" + strings.Join(ids, ", ") + ")"
}

// within are the conditions that a tombstone covers all samples of a row that are within [mint, maxt] (ms).
func (s *source) within(t catalog.Tombstone, mint, maxt int64) []string {
	var out []string
	if from := max(mint, key.MinTime); t.MinT > from {
		out = append(out, s.bound("least", "[1]", block.ColMinTS)+" >= "+timeLiteral(min(t.MinT, key.MaxTime)))
	}
	if to := min(maxt, key.MaxTime); t.MaxT < to {
		out = append(out, s.bound("greatest", "[-1]", block.ColMaxTS)+" <= "+timeLiteral(max(t.MaxT, key.MinTime)))
	}
	return out
}

// bound is the SQL expression of the first or last timestamp of a row's samples, NULL if it has none.
func (s *source) bound(fn, at, inBlock string) string {
	lists := duck.Ident(segment.ColTS) + at
	if s.hasHist {
		lists = fn + "(" + lists + ", " + duck.Ident(segment.ColHistTS) + at + ")"
	}
	switch {
	case !s.blocks:
		return lists
	case !s.segments:
		return inBlock
	default:
		return "coalesce(" + inBlock + ", " + lists + ")"
	}
}

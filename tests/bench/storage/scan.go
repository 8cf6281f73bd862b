package storage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	_ "github.com/duckdb/duckdb-go/v2"

	"github.com/promlake/promlake/tests/bench/proc"
)

// scan compares DuckDB's sum(value) over a block with that over plain doubles. Times are processor
// time on one thread, which other work on the machine hardly moves.
type scan struct {
	Block      []time.Duration `json:"block_ns"` // by run; the runs alternate
	Plain      []time.Duration `json:"plain_ns"`
	PlainBytes int64           `json:"plain_bytes"` // of the column of values
}

// best returns the speed of the block relative to plain doubles, in the best run of each and in the
// median of the ratios of neighbours.
func (s *scan) ratios() (best, median float64) {
	r := make([]float64, len(s.Block))
	for i := range r {
		r[i] = s.Plain[i].Seconds() / s.Block[i].Seconds()
	}
	slices.Sort(r)
	return slices.Min(s.Plain).Seconds() / slices.Min(s.Block).Seconds(), (r[(len(r)-1)/2] + r[len(r)/2]) / 2
}

// compareScans writes the plain doubles into dir and lets DuckDB sum both by turns, after one run
// of each that does not count.
func compareScans(ctx context.Context, files []string, dir string, runs int) (s *scan, err error) {
	doubles, err := writePlain(files, dir)
	if err != nil {
		return nil, err
	}
	bytes, err := columnBytes(doubles)
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("duckdb", "")
	if err != nil {
		return nil, fmt.Errorf("open DuckDB: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, "SET threads = 1"); err != nil {
		return nil, fmt.Errorf("set threads: %w", err)
	}
	block := fmt.Sprintf("SELECT sum(v_int / v_div) FROM read_parquet(%s)", list(files))
	plain := fmt.Sprintf("SELECT sum(value) FROM read_parquet(%s)", list(doubles))
	s = &scan{PlainBytes: bytes["value"]}
	for i := range runs + 1 {
		b, sum, err := timed(ctx, db, block)
		if err != nil {
			return nil, err
		}
		p, want, err := timed(ctx, db, plain)
		if err != nil {
			return nil, err
		}
		if sum != want && math.Abs(sum-want) > 1e-9*math.Abs(want) {
			return nil, fmt.Errorf("the block's values add up to %g, as plain doubles to %g", sum, want)
		}
		if i > 0 {
			s.Block, s.Plain = append(s.Block, b), append(s.Plain, p)
		}
	}
	return s, nil
}

// timed runs a query for one number.
func timed(ctx context.Context, db *sql.DB, query string) (took time.Duration, v float64, err error) {
	begin, err := proc.Self()
	if err != nil {
		return 0, 0, err
	}
	if err := db.QueryRowContext(ctx, query).Scan(&v); err != nil {
		return 0, 0, fmt.Errorf("run %s: %w", query, err)
	}
	end, err := proc.Self()
	return end - begin, v, err
}

// list is a list of strings in SQL.
func list(files []string) string {
	quoted := make([]string, len(files))
	for i, f := range files {
		quoted[i] = "'" + strings.ReplaceAll(f, "'", "''") + "'"
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/promblock/promblocktest"
)

// linesOf returns a line for each sample that keep wants, sorted, with the bits of floats.
func linesOf(t *testing.T, from storage.Queryable, keep func(kind chunkenc.ValueType, v float64) bool) []string {
	t.Helper()
	q, err := from.Querier(math.MinInt64, math.MaxInt64)
	require.NoError(t, err)
	defer func() { require.NoError(t, q.Close()) }()
	var out []string
	set := q.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for set.Next() {
		it := set.At().Iterator(nil)
		for kind := it.Next(); kind != chunkenc.ValNone; kind = it.Next() {
			v, text := 0.0, ""
			if kind == chunkenc.ValFloat {
				_, v = it.At()
				text = fmt.Sprintf("%x", math.Float64bits(v))
			} else {
				_, h := it.AtFloatHistogram(nil)
				text = h.String()
			}
			if keep(kind, v) {
				out = append(out, fmt.Sprintf("%s %d %s", set.At().Labels(), it.AtT(), text))
			}
		}
		require.NoError(t, it.Err())
	}
	require.NoError(t, set.Err())
	slices.Sort(out)
	return out
}

func TestExport(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := promblocktest.History(7, begin.UnixMilli(), 5*time.Hour)
	source, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	promblocktest.Write(t, source, begin.UnixMilli(), begin.Add(5*time.Hour).UnixMilli(), all)
	_, errs, status := invoke(t, "import", "tsdb", source, "--store", store)
	require.Zero(t, status, errs)
	span := []string{"--store", store, "--start", "2025-12-30T00:00:00Z", "--end", "2026-01-02T00:00:00Z"}
	export := func(args ...string) (string, string, int) {
		return invoke(t, slices.Concat([]string{"export"}, span, args)...)
	}

	t.Run("tsdb", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "out")
		_, errs, status := export("--format", "tsdb", "--output", dir)
		require.Zero(t, status, errs)
		require.Contains(t, errs, "as 3 blocks in")
		blocks, err := filepath.Glob(dir + "/*")
		require.NoError(t, err)
		every := func(chunkenc.ValueType, float64) bool { return true }
		require.Equal(t, linesOf(t, promblocktest.Plain(all), every), linesOf(t, promblocktest.Queryable(t, blocks...), every))
		_, errs, status = export("--format", "tsdb", "--output", dir)
		require.NotZero(t, status)
		require.Contains(t, errs, "is not empty")
	})
	t.Run("openmetrics", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "out.om")
		_, errs, status := export("--output", file)
		require.Zero(t, status, errs)
		require.Contains(t, errs, "left out")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		want := linesOf(t, promblocktest.Plain(all), func(kind chunkenc.ValueType, v float64) bool {
			return kind == chunkenc.ValFloat && math.Float64bits(v) != value.StaleNaN
		})
		require.Equal(t, want, parsed(t, text))
		_, errs, status = export("--output", file)
		require.NotZero(t, status)
		require.Contains(t, errs, "file exists")
	})
	t.Run("selectors", func(t *testing.T) {
		out, errs, status := export("--match", `temperature{n="1"}`, "--match", `temperature{n=~"1|2"}`, "--end", begin.Add(time.Minute).Format(time.RFC3339))
		require.Zero(t, status, errs)
		require.Contains(t, out, `temperature{cluster="west",instance="b",n="1"} `)
		require.NotContains(t, out, `n="3"`)
		require.Equal(t, 1, strings.Count(out, `n="1"`), out)
		require.True(t, strings.HasSuffix(out, "# EOF\n"))
	})
	t.Run("jsonl", func(t *testing.T) {
		out, errs, status := export("--format", "jsonl", "--match", `temperature{n="1"}`)
		require.Zero(t, status, errs)
		require.Contains(t, out, `"n":"1"`)
	})
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--format", "tsdb"}, "name it with --output"},
		{[]string{"--match", "{"}, "--match"},
		{[]string{"--end", "2020-01-01T00:00:00Z"}, "want a start before the end"},
		{[]string{"--start", "x"}, `--start "x": want RFC 3339`},
	} {
		_, errs, status := export(tc.args...)
		require.NotZero(t, status)
		require.Contains(t, errs, tc.want)
	}
}

// parsed returns the samples of OpenMetrics text as linesOf does.
func parsed(t *testing.T, text []byte) (out []string) {
	t.Helper()
	p, err := textparse.New(text, "application/openmetrics-text; version=1.0.0", labels.NewSymbolTable(), textparse.ParserOptions{})
	require.NoError(t, err)
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if entry != textparse.EntrySeries {
			continue
		}
		_, at, v := p.Series()
		var ls labels.Labels
		p.Labels(&ls)
		out = append(out, fmt.Sprintf("%s %d %x", ls, *at, math.Float64bits(v)))
	}
	slices.Sort(out)
	return out
}

// TestExportFails holds that an unreadable store ends an export with an error.
func TestExportFails(t *testing.T) {
	var out, errs bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	store := filled(t)
	require.NotZero(t, run(ctx, []string{"export", "--store", store, "--start", "2026-01-01T00:00:00Z", "--end", "2026-01-03T00:00:00Z"}, flags.Streams{Out: &out, Err: &errs}))
	require.NotContains(t, out.String(), "# EOF")
}

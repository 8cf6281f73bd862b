package kept

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/query"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/laketest"
)

// panels are those of a dashboard over 90 days.
var panels = []string{
	`sum by (job) (rate(m_total[5m]))`, `max by (job) (m_total)`, `avg by (job) (m_total)`, `sum(rate(m_total[1h]))`, `count by (job) (m_total)`,
	`quantile_over_time(0.9, m_total{job="job1"}[1h])`, `m_total{job="job2"}`, `topk(5, m_total)`, `max by (job) (max_over_time(m_total[1h]))`,
	`sum by (job) (m_total) / count by (job) (m_total)`, `min by (job) (min_over_time(m_total[1h]))`, `sum by (i) (increase(m_total{job=~"job[34]"}[1h]))`,
}

// processor returns the processor time that the process has used.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRefresh: a dashboard of twelve panels over 90 days with steps of an hour, in a new
// process: first, again, the last step alone, and moved by a step; all series have a sample each
// minute.
func BenchmarkRefresh(b *testing.B) {
	const days, series, jobs = 90, 200, 10
	dir := laketest.NewDir(b)
	writer := laketest.New(b, dir, query.Settings{})
	end := laketest.Now().Truncate(24 * time.Hour)
	for day := range days {
		from := end.Add(time.Duration(day-days) * 24 * time.Hour).UnixMilli()
		var rows []segment.Row
		for i := range series {
			r := segment.Row{Labels: laketest.Metric("m_total", "i", fmt.Sprint(i), "job", fmt.Sprint("job", i%jobs))}
			for k := range int64(24 * 60) {
				r.Floats = append(r.Floats, segment.Float{T: from + k*60_000, V: float64((int64(day)*1440 + k) * int64(i+1))})
			}
			rows = append(rows, r)
		}
		writer.WriteBlocks(tenant.Default, laketest.Shape{Level: key.L24h}, rows)
	}
	var recent []segment.Row
	for i := range series {
		r := segment.Row{Labels: laketest.Metric("m_total", "i", fmt.Sprint(i), "job", fmt.Sprint("job", i%jobs))}
		for at := end.UnixMilli(); at <= laketest.Now().UnixMilli(); at += 60_000 {
			r.Floats = append(r.Floats, segment.Float{T: at, V: float64((days*1440 + (at-end.UnixMilli())/60_000) * int64(i+1))})
		}
		recent = append(recent, r)
	}
	writer.Write(tenant.Default, recent)
	for _, samples := range []int64{0, 1_000_000} { // a query that is too small to be kept
		l := laketest.New(b, dir, query.Settings{MaxStaleness: time.Hour, KeptAnswersSamples: samples})
		b.Run(fmt.Sprintf("small/kept=%t", samples > 0), func(b *testing.B) {
			for range b.N {
				require.NoError(b, l.Exec(b.Context(), laketest.Query{Text: `m_total{i="7"}`, Start: end.Add(-7 * 24 * time.Hour), End: end, Step: time.Hour}).Err)
			}
			require.Empty(b, counts(l))
		})
	}
	for _, remote := range []bool{false, true} {
		var store objstore.Store = dir
		if remote {
			store = &laketest.Remote{Store: dir}
		}
		for _, process := range []string{"off", "writes", "reads"} {
			b.Run(fmt.Sprintf("remote=%t/kept=%s", remote, process), func(b *testing.B) {
				for range b.N {
					s := query.Settings{MaxStaleness: time.Hour}
					if process != "off" {
						s.KeptAnswersSamples = 10_000_000
					}
					if process == "writes" {
						for obj, err := range dir.List(b.Context(), key.AnswersPrefix(tenant.Default), "") {
							require.NoError(b, err)
							require.NoError(b, dir.Delete(b.Context(), obj.Key))
						}
					}
					l := laketest.New(b, store, s)
					at := laketest.Now()
					for _, round := range []string{"first", "again", "third", "step", "moved"} {
						if round == "moved" {
							at = at.Add(time.Hour)
						}
						from := at.Add(-days * 24 * time.Hour)
						if round == "step" {
							from = at
						}
						used, begun := processor(), time.Now()
						for _, text := range panels {
							require.NoError(b, l.Exec(b.Context(), laketest.Query{Text: text, Start: from, End: at, Step: time.Hour}).Err)
						}
						waited := time.Since(begun)
						l.WaitKept(b.Context())
						b.ReportMetric((processor()-used).Seconds()*1000, round+"-cpu-ms")
						b.ReportMetric(waited.Seconds()*1000, round+"-ms")
					}
					b.Logf("kept answers: %v", counts(l))
				}
			})
		}
	}
}

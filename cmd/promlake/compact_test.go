package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/compactapp"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
)

func TestSummary(t *testing.T) {
	for _, tc := range []struct {
		name   string
		totals compactapp.Totals
		took   time.Duration
		want   string
	}{
		{
			"fine", compactapp.Totals{Jobs: 3, SamplesRead: 2_000_000, SamplesWritten: 1_900_000, BytesRead: 3 << 20, BytesWritten: 1 << 20}, 2 * time.Second, "" +
				"jobs done        3\n" +
				"samples read     2.0M\n" +
				"samples written  1.9M\n" +
				"bytes read       3.0 MiB\n" +
				"bytes written    1.0 MiB\n" +
				"time             2s\n" +
				"speed            1.0M/s samples\n",
		},
		{
			"all that may happen", compactapp.Totals{Conflicts: 1, Failed: 2, SamplesDeleted: 5, ObjectsRemoved: 7, BytesRemoved: 1024}, time.Second, "" +
				"jobs done                        0\n" +
				"jobs that another compactor did  1\n" +
				"jobs that failed                 2\n" +
				"samples read                     0\n" +
				"samples written                  0\n" +
				"samples deleted                  5\n" +
				"bytes read                       0 B\n" +
				"bytes written                    0 B\n" +
				"garbage removed                  1.0 KiB in 7 objects\n" +
				"time                             1s\n" +
				"speed                            0/s samples\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) { require.Equal(t, tc.want, summary(tc.totals, tc.took)) })
	}
}

func TestWatchAddsUpJobs(t *testing.T) {
	var out bytes.Buffer
	w := &watch{bar: &bar{out: &out, width: 200}, begin: time.Now(), jobs: map[string]*progress{}}
	see := func(tenant string, done, total int64) string {
		out.Reset()
		w.drawn = time.Time{}
		w.see(tenant, plan.Job{Kind: plan.Merge, Level: key.L24h, Why: "window is closed"}, done, total)
		return out.String()
	}
	require.Contains(t, see("a", 10, 100), "]  10% 10 samples, ")
	got := see("b", 50, 100)
	require.Contains(t, got, "]  30% 60 samples, ")
	require.Contains(t, got, "b: merge 24h ")
	require.Contains(t, see("b", 150, 100), "]  64% 160 samples, ", "an estimate that was too low")

	out.Reset()
	w.drawn = time.Now().Add(time.Hour) // as if the machine were never busy
	w.see("a", plan.Job{}, 11, 100)
	require.Empty(t, out.String(), "so soon, nobody would see it")
	w.bar.show(0, 0, "")
	require.Equal(t, eraseLine, out.String())
}

package compact

import (
	"bytes"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/compacttest"
	"github.com/promlake/promlake/tests/support/memstore"
)

// TestObjectBetweenSources: a planned merge is a conflict if a segment of the queue appears between
// its sources in rank. The block would have the rank of the newest source, so a value of the oldest
// source would hide the segment's newer value.
func TestObjectBetweenSources(t *testing.T) {
	l := newLake(t)
	s := l.stage(Settings{}, 2)
	l.at("1:00").write("t", seriesRows(3, 1, clock("0:30")))
	l.at("1:10").write("t", []segment.Row{burst(clock("0:40"))})
	jobs := plan.Jobs(s.Settings().Policy, l.at("2:15").now, l.snapshot("t"))
	require.Len(t, jobs, 1)

	late := seriesRows(3, 2, clock("0:30"))
	data, err := compacttest.Encode(late)
	require.NoError(t, err)
	k := key.Segment{Tenant: "t", Window: key.WindowOf(day.UnixMilli()), ID: ulid.MustNew(ulid.Timestamp(clock("1:05")), l.ids), Queued: true}
	_, err = l.store.Put(t.Context(), k.String(), bytes.NewReader(data), objstore.Condition{IfAbsent: true})
	require.NoError(t, err)
	require.NoError(t, l.want.Add(late, nil))
	l.check("t")

	r, err := s.Run(t.Context(), "t", jobs[0])
	require.NoError(t, err)
	require.Equal(t, Conflict, r.Outcome)
	require.ErrorContains(t, r.Err, "another object is between the sources in rank")
	l.check("t")
	l.at("4:00").untilIdle(s)
	require.Len(t, l.snapshot("t").Blocks, 1)
	l.check("t")
}

// TestOldJob: a merge that was planned too long ago is a conflict before it reads its sources.
func TestOldJob(t *testing.T) {
	for age, want := range map[time.Duration]Outcome{catalog.MaxJobAge - time.Second: Done, catalog.MaxJobAge + time.Second: Conflict} {
		l := newLake(t)
		s := l.stage(Settings{}, 2)
		l.scrape("t", "0:00", "2:00", 30*time.Minute, 15)
		jobs := plan.Jobs(s.Settings().Policy, l.at("2:15").now, l.snapshot("t"))
		require.Len(t, jobs, 1)
		l.now = l.now.Add(age)
		asked := l.requests(func() {
			r, err := s.Run(t.Context(), "t", jobs[0])
			require.NoError(t, err)
			require.Equal(t, want, r.Outcome, "%v", r.Err)
			if want == Conflict {
				require.ErrorContains(t, r.Err, "the limit is 15m0s")
			}
		})
		if want == Conflict {
			require.Equal(t, map[memstore.Op]int{memstore.Get: 1, memstore.Now: 1}, asked)
		}
		l.check("t")
	}
}

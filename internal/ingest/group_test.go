package ingest

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/objstore/filestore"
	"github.com/promlake/promlake/internal/objstore/memstore"
	"github.com/promlake/promlake/internal/remotewrite"
)

// acceptedOf is a request with so many samples.
func acceptedOf(samples int) *accepted {
	charge := newBudget(1, nil, prometheus.NewGauge(prometheus.GaugeOpts{})).admit("")
	return &accepted{&remotewrite.Batch{Floats: make([]remotewrite.Float, samples)}, charge}
}

// TestTake goes through the rules by which a group is due. All times count from the opening of the group.
func TestTake(t *testing.T) {
	const wait, gap = time.Second, 100 * time.Millisecond
	opened := time.Unix(1000, 0)
	for _, tc := range []struct {
		name      string
		batches   int
		receiving int
		company   [recentGroups]int
		last      time.Duration // beginning of the last flush; 0 = long ago
		samples   int           // of each batch
		closing   bool
		at        time.Duration
		want      time.Duration // wait; -1 = due
	}{
		{name: "nothing", batches: 0, at: time.Hour, want: 0},
		{name: "lone request", batches: 1, want: -1},
		{name: "lone request as usual", batches: 1, company: [recentGroups]int{1, 1}, want: -1},
		{name: "another is being received", batches: 1, receiving: 1, want: wait},
		{name: "another is being received, later", batches: 1, receiving: 1, at: wait - 1, want: 1},
		{name: "another has been received for too long", batches: 1, receiving: 1, at: wait, want: -1},
		{name: "right after a flush", batches: 1, last: -1, want: gap - 1},
		{name: "a while after a flush", batches: 1, last: -gap + 1, want: 1},
		{name: "a gap after a flush", batches: 1, last: -gap, want: -1},
		{name: "fewer than half of the usual company", batches: 1, company: [recentGroups]int{1, 3, 2}, want: wait},
		{name: "half of the usual company", batches: 2, company: [recentGroups]int{1, 4, 2}, want: -1},
		{name: "half of the usual company right after a flush", batches: 2, company: [recentGroups]int{4}, last: -1, want: gap - 1},
		{name: "half of the usual company, another is being received", batches: 2, receiving: 1, company: [recentGroups]int{4}, at: 10, want: wait - 10},
		{name: "company that does not come back", batches: 1, company: [recentGroups]int{9}, at: wait, want: -1},
		{name: "full", batches: 2, receiving: 5, samples: 50, company: [recentGroups]int{9}, last: -1, want: -1},
		{name: "almost full", batches: 2, receiving: 5, samples: 49, want: wait},
		{name: "closing", batches: 1, receiving: 5, company: [recentGroups]int{9}, last: -1, closing: true, want: -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCollector(pace{wait: wait, gap: gap, maxSamples: 100}, time.Now)
			c.company, c.receiving, c.closing = tc.company, tc.receiving, tc.closing
			if tc.last != 0 {
				c.last = opened.Add(tc.last)
			}
			if tc.batches > 0 {
				c.open = &group{opened: opened, samples: tc.batches * tc.samples, batches: make([]*remotewrite.Batch, tc.batches)}
			}
			open := c.open
			g, got := c.take(opened.Add(tc.at))
			if tc.want >= 0 {
				require.Nil(t, g)
				require.Equal(t, tc.want, got)
				require.Same(t, open, c.open)
				return
			}
			require.Same(t, open, g)
			require.Zero(t, got)
			require.Nil(t, c.open)
			require.True(t, c.flushing)
			require.Equal(t, opened.Add(tc.at), c.last)
			require.Equal(t, tc.batches+tc.receiving, c.company[0], "the oldest memory is replaced")
		})
	}
}

// TestCompanyIsForgotten lets a lone sender be answered at once again after enough groups of its own.
func TestCompanyIsForgotten(t *testing.T) {
	c := newCollector(pace{wait: time.Second, maxSamples: 1000}, time.Now)
	now := time.Now()
	for i := range recentGroups {
		c.company[i] = 10
	}
	for i := range recentGroups + 1 {
		require.NoError(t, c.enter())
		g := c.leave(acceptedOf(1))
		g.opened = now
		taken, wait := c.take(now)
		if i < recentGroups {
			require.Nil(t, taken)
			require.Equal(t, time.Second, wait)
			now = now.Add(wait)
			taken, _ = c.take(now)
		}
		require.Same(t, g, taken)
		c.flushed()
	}
}

func TestPace(t *testing.T) {
	files, err := filestore.New(t.TempDir())
	require.NoError(t, err)
	memory := memstore.New(memstore.Settings{})
	for _, tc := range []struct {
		name     string
		interval time.Duration
		store    objstore.Store
		want     pace
	}{
		{"a directory", 0, files, pace{wait: minWait, gap: 0, maxSamples: 50_000}},
		{"another store", 0, memory, pace{wait: RemoteFlushInterval, gap: RemoteFlushInterval, maxSamples: 50_000}},
		{"set", 3 * time.Second, files, pace{wait: 3 * time.Second, gap: 3 * time.Second, maxSamples: 50_000}},
		{"set short", time.Millisecond, memory, pace{wait: minWait, gap: time.Millisecond, maxSamples: 50_000}},
	} {
		set := DefaultSettings()
		set.FlushInterval = tc.interval
		require.Equal(t, tc.want, set.pace(tc.store), tc.name)
	}
}

func TestRetire(t *testing.T) {
	c := newCollector(pace{maxSamples: 1}, time.Now)
	require.NoError(t, c.enter())
	require.False(t, c.retire(), "a request is being received")
	c.leave(acceptedOf(1))
	require.False(t, c.retire(), "a group waits")
	require.False(t, c.idle())
	g, _ := c.take(time.Now())
	require.NotNil(t, g)
	require.False(t, c.idle(), "a group is being flushed")
	c.flushed()
	require.True(t, c.idle())
	require.True(t, c.retire())
	require.ErrorIs(t, c.enter(), errClosing)
}

// TestStop fails the open group and whatever still comes.
func TestStop(t *testing.T) {
	c := newCollector(pace{wait: time.Hour, maxSamples: 1000}, time.Now)
	gone := errors.New("gone")
	require.NoError(t, c.enter())
	require.NoError(t, c.enter())
	require.NoError(t, c.enter())
	open := c.leave(acceptedOf(1))
	require.Same(t, open, c.stop(gone))
	late := c.leave(acceptedOf(1))
	<-late.done
	require.ErrorIs(t, late.err, gone)
	require.Nil(t, c.leave(nil))
	require.ErrorIs(t, c.enter(), errClosing)
	require.True(t, c.idle())
}

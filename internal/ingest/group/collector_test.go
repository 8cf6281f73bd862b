package group

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/body"
)

// requestOf returns a request with the given number of samples.
func requestOf(samples int) Request {
	charge := body.NewBudget(1, nil, prometheus.NewGauge(prometheus.GaugeOpts{})).Admit("")
	return Request{&remotewrite.Batch{Floats: make([]remotewrite.Float, samples)}, charge}
}

// TestTake tests the rules by which a group is due. All times are relative to the opening of the
// group.
func TestTake(t *testing.T) {
	const wait, gap, full = time.Second, 100 * time.Millisecond, 2 * smallSamples
	opened := time.Unix(1000, 0)
	for _, tc := range []struct {
		name       string
		batches    int
		receiving  int
		concurrent [recentGroups]int
		last       time.Duration // beginning of the last flush; 0 = long ago
		took       time.Duration // of the last flush
		samples    int           // of each batch
		closing    bool
		at         time.Duration
		want       time.Duration // wait; -1 = due
	}{
		{name: "nothing", batches: 0, at: time.Hour, want: 0},
		{name: "lone request", batches: 1, want: -1},
		{name: "lone request as usual", batches: 1, concurrent: [recentGroups]int{1, 1}, want: -1},
		{name: "another is being received", batches: 1, receiving: 1, want: wait},
		{name: "another is being received, later", batches: 1, receiving: 1, at: wait - 1, want: 1},
		{name: "another has been received for too long", batches: 1, receiving: 1, at: wait, want: -1},
		{name: "right after a flush", batches: 1, last: -1, want: gap - 1},
		{name: "a while after a flush", batches: 1, last: -gap + 1, want: 1},
		{name: "a gap after a flush", batches: 1, last: -gap, want: -1},
		{name: "fewer than half of the usual requests", batches: 1, concurrent: [recentGroups]int{1, 3, 2}, want: wait},
		{name: "half of the usual requests", batches: 2, concurrent: [recentGroups]int{1, 4, 2}, want: -1},
		{name: "half of the usual requests right after a flush", batches: 2, concurrent: [recentGroups]int{4}, last: -1, want: gap - 1},
		{name: "half of the usual requests, another is being received", batches: 2, receiving: 1, concurrent: [recentGroups]int{4}, at: 10, want: wait - 10},
		{name: "small without the senders of the last flush", batches: 2, concurrent: [recentGroups]int{4}, last: -gap, took: gap, want: smallWait * gap},
		{name: "small a while after a slow flush", batches: 2, concurrent: [recentGroups]int{4}, last: -3 * gap / 2, took: gap, at: 10, want: smallWait*gap - gap/2 - 10},
		{name: "small after the longest wait for the usual senders", batches: 2, concurrent: [recentGroups]int{4}, last: -gap, took: gap, at: smallWait * gap, want: -1},
		{name: "small after a flush that took longer than the wait", batches: 2, concurrent: [recentGroups]int{4}, last: -2 * wait, took: 2 * wait, want: wait},
		{name: "small with all senders", batches: 4, concurrent: [recentGroups]int{4}, last: -gap, took: gap, want: -1},
		{name: "large without the senders of the last flush", batches: 2, concurrent: [recentGroups]int{4}, last: -gap, took: gap, samples: smallSamples / 2, want: -1},
		{name: "senders that do not come back", batches: 1, concurrent: [recentGroups]int{9}, at: wait, want: -1},
		{name: "full", batches: 2, receiving: 5, samples: full / 2, concurrent: [recentGroups]int{9}, last: -1, want: -1},
		{name: "almost full", batches: 2, receiving: 5, samples: full/2 - 1, want: wait},
		{name: "closing", batches: 1, receiving: 5, concurrent: [recentGroups]int{9}, last: -1, closing: true, want: -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := NewCollector(Pace{Wait: wait, Gap: gap, MaxSamples: full}, time.Now)
			c.concurrent, c.receiving, c.closing = tc.concurrent, tc.receiving, tc.closing
			if tc.last != 0 {
				c.last = opened.Add(tc.last)
				c.ended = c.last.Add(tc.took)
			}
			if tc.batches > 0 {
				c.open = &Group{opened: opened, Samples: tc.batches * tc.samples, Batches: make([]*remotewrite.Batch, tc.batches)}
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
			require.Equal(t, tc.batches+tc.receiving, c.concurrent[0], "the oldest memory is replaced")
		})
	}
}

// TestCompanyIsForgotten lets a lone sender be answered at once again after enough groups of its
// own.
func TestCompanyIsForgotten(t *testing.T) {
	c := NewCollector(Pace{Wait: time.Second, MaxSamples: 1000}, time.Now)
	now := time.Now()
	for i := range recentGroups {
		c.concurrent[i] = 10
	}
	for i := range recentGroups + 1 {
		require.NoError(t, c.Enter())
		g := c.Join(requestOf(1))
		g.opened = now
		taken, wait := c.take(now)
		if i < recentGroups {
			require.Nil(t, taken)
			require.Equal(t, time.Second, wait)
			now = now.Add(wait)
			taken, _ = c.take(now)
		}
		require.Same(t, g, taken)
		c.Flushed()
	}
}

func TestRetire(t *testing.T) {
	c := NewCollector(Pace{MaxSamples: 1}, time.Now)
	require.NoError(t, c.Enter())
	require.False(t, c.Retire(), "a request is being received")
	c.Join(requestOf(1))
	require.False(t, c.Retire(), "a group waits")
	require.False(t, c.Idle())
	g, _ := c.take(time.Now())
	require.NotNil(t, g)
	require.False(t, c.Idle(), "a group is being flushed")
	c.Flushed()
	require.True(t, c.Idle())
	require.True(t, c.Retire())
	require.ErrorIs(t, c.Enter(), ErrClosing)
}

// TestStop fails the open group and whatever still comes.
func TestStop(t *testing.T) {
	c := NewCollector(Pace{Wait: time.Hour, MaxSamples: 1000}, time.Now)
	gone := errors.New("gone")
	require.NoError(t, c.Enter())
	require.NoError(t, c.Enter())
	require.NoError(t, c.Enter())
	open := c.Join(requestOf(1))
	require.Same(t, open, c.Stop(gone))
	late := c.Join(requestOf(1))
	<-late.done
	require.ErrorIs(t, late.err, gone)
	c.Leave()
	require.ErrorIs(t, c.Enter(), ErrClosing)
	require.True(t, c.Idle())
}

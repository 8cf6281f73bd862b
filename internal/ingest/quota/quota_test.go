package quota_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/admission"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/ingest/quota"
)

var begin = time.Date(2026, 1, 1, 0, 30, 0, 0, time.UTC)

func TestRates(t *testing.T) {
	var qs quota.Quotas
	q, now := qs.Of("a", begin), begin
	require.Same(t, q, qs.Of("a", begin))
	l := &admission.Limits{IngestionRate: 100, IngestionBurst: 1000, RequestRate: 0.5, RequestBurst: 1}
	require.NoError(t, q.Samples(&admission.Limits{}, math.MaxInt, now), "no limit")

	require.NoError(t, q.Samples(l, 1000, now))
	require.NoError(t, q.Samples(l, 0, now))
	var rate *quota.RateError
	require.ErrorAs(t, q.Samples(l, 500, now), &rate)
	require.Equal(t, 5*time.Second, rate.Wait)
	require.EqualError(t, rate, "too many samples: the limit is 100 a second and 1000 at once (ingestion_rate of the tenant, or --distributor.ingestion-rate-limit); try again in 5s")
	now = now.Add(rate.Wait)
	require.NoError(t, q.Samples(l, 500, now), "as the error promised")
	require.ErrorAs(t, q.Samples(l, 1001, now), &rate)
	require.Zero(t, rate.Wait)
	require.EqualError(t, rate, "1001 samples in one request, the limit is 1000 (ingestion_burst_size of the tenant, or --distributor.ingestion-burst-size): send fewer in a request")

	l.BytesRate, l.BytesBurst = 1<<20, 4<<20
	require.NoError(t, q.Bytes(&admission.Limits{}, math.MaxInt, now), "no limit")
	require.NoError(t, q.Bytes(l, 4<<20, now))
	require.ErrorAs(t, q.Bytes(l, 2<<20, now), &rate)
	require.Equal(t, 2*time.Second, rate.Wait)
	require.EqualError(t, rate, "too many bytes: the limit is 1048576 a second and 4194304 at once (ingestion_bytes_rate of the tenant, or --distributor.ingestion-bytes-rate-limit); try again in 2s")
	require.EqualError(t, q.Bytes(l, 4<<20+1, now), "4194305 bytes in one request, the limit is 4194304 (ingestion_bytes_burst_size of the tenant, or --distributor.ingestion-bytes-burst-size): send fewer in a request")

	require.NoError(t, q.Request(l, now))
	require.ErrorAs(t, q.Request(l, now), &rate)
	require.Equal(t, 2*time.Second, rate.Wait)
	require.EqualError(t, rate, "too many write requests: the limit is 0.5 a second and 1 at once (request_rate of the tenant, or --distributor.request-rate-limit); try again in 2s")
	now = now.Add(2 * time.Second)
	require.NoError(t, q.Request(l, now))
	l.RequestRate, l.RequestBurst = 1000, 3 // changed limits count from the next request on
	require.Error(t, q.Request(l, now))
	now = now.Add(3 * time.Millisecond)
	for range 3 {
		require.NoError(t, q.Request(l, now))
	}
	require.Error(t, q.Request(l, now))
	slow := &admission.Limits{IngestionRate: 1e-6, IngestionBurst: 10}
	fresh := qs.Of("b", now)
	require.NoError(t, fresh.Samples(slow, 10, now))
	require.ErrorAs(t, fresh.Samples(slow, 10, now), &rate)
	require.Equal(t, time.Hour, rate.Wait)
}

func lset(i int) []series.Label {
	return []series.Label{{Name: "__name__", Value: "m"}, {Name: "i", Value: fmt.Sprint(i)}}
}

// TestSeries: a series that was accepted stays accepted in its period, and at most the stated part
// more than the limit is.
func TestSeries(t *testing.T) {
	const limit, asked = 8_000, 24_000
	q := new(quota.Quotas).Of("a", begin)
	l := &admission.Limits{MaxHourlySeries: limit, MaxDailySeries: limit + limit/2}
	write := func(now time.Time, from int) (accepted []int, reasons map[remotewrite.Reason]int) {
		reasons = map[remotewrite.Reason]int{}
		for i := from; i < from+asked; i++ {
			err := q.Series(l, lset(i), now)
			if err == nil {
				accepted = append(accepted, i)
				continue
			}
			var r *remotewrite.Rejection
			require.ErrorAs(t, err, &r)
			reasons[r.Reason]++
		}
		return accepted, reasons
	}
	accepted, reasons := write(begin, 0)
	require.InDelta(t, limit, len(accepted), 0.004*asked)
	require.GreaterOrEqual(t, len(accepted), limit)
	require.Len(t, reasons, 1)
	require.Equal(t, asked-len(accepted), reasons[remotewrite.ReasonHourlySeries])
	for _, i := range accepted {
		require.NoError(t, q.Series(l, lset(i), begin.Add(29*time.Minute)))
	}
	err := q.Series(l, lset(-1), begin)
	require.EqualError(t, err, `series {__name__="m", i="-1"} is one more than the 8000 that the tenant may write in one hour (UTC) (max_hourly_series); it is set by max_hourly_series of the tenant, or --ingest.max-hourly-series`)

	next := begin.Add(time.Hour) // half of the day is left
	again, reasons := write(next, asked)
	require.InDelta(t, limit/2, len(again), 0.004*asked)
	require.Positive(t, reasons[remotewrite.ReasonDailySeries])
	for _, i := range accepted[:limit/4] { // series of the day before count in the hour only
		require.NoError(t, q.Series(l, lset(i), next))
	}
	require.NoError(t, q.Series(l, lset(-1), begin.Add(24*time.Hour)))
}

// TestMemory: what counts series is charged to the memory of the process, which refuses to grow it,
// and gets it back when the period or the tenant is over.
func TestMemory(t *testing.T) {
	b := memory.New(8<<10, memory.Probe{Usage: func() int64 { return 0 }, Now: time.Now}, nil)
	qs := quota.Quotas{Memory: b}
	q := qs.Of("a", begin)
	l := &admission.Limits{MaxHourlySeries: 1e6}
	var err error
	counted := 0
	for ; err == nil && counted < 1e6; counted++ {
		err = q.Series(l, lset(counted), begin)
	}
	require.ErrorIs(t, err, memory.ErrMemory)
	require.ErrorContains(t, err, memory.Flag)
	require.Less(t, counted, 2_000, "two bytes a series, in layers")
	require.NoError(t, q.Series(l, lset(0), begin), "it is counted already")
	require.Error(t, b.TryAcquire(8<<10))
	require.NoError(t, q.Series(&admission.Limits{}, lset(0), begin.Add(time.Hour)))
	require.NoError(t, b.TryAcquire(8<<10), "the hour is over")
	b.Release(8 << 10)

	require.NoError(t, q.Series(l, lset(0), begin.Add(time.Hour)))
	require.Error(t, b.TryAcquire(8<<10))
	for i := range 1000 {
		qs.Of(fmt.Sprint(i), begin.Add(26*time.Hour))
	}
	require.NoError(t, b.TryAcquire(8<<10), "the tenant is forgotten")
}

// TestUnusedQuotasAreForgotten after a day, and those that count no series after an hour.
func TestUnusedQuotasAreForgotten(t *testing.T) {
	var qs quota.Quotas
	l := &admission.Limits{MaxDailySeries: 1}
	counted := qs.Of("counted", begin)
	require.NoError(t, counted.Series(l, lset(1), begin))
	idle := qs.Of("idle", begin)
	fill := func(now time.Time, n int) {
		for i := range n {
			qs.Of(fmt.Sprint(now.Unix(), " ", i), now)
		}
	}
	fill(begin.Add(2*time.Hour), 100)
	require.Same(t, counted, qs.Of("counted", begin))
	require.NotSame(t, idle, qs.Of("idle", begin))
	fill(begin.Add(25*time.Hour), 1000)
	require.NotSame(t, counted, qs.Of("counted", begin))
}

func TestRefusals(t *testing.T) {
	var rs quota.Refusals
	require.Equal(t, []quota.Refusal{}, rs.Of("a"))
	for i := range 250 {
		rs.Note("a", quota.Refusal{Time: begin.Add(time.Duration(i)), Samples: i, Error: fmt.Sprintf("%1000d", i)})
	}
	got := rs.Of("a")
	require.Len(t, got, 100)
	for i, r := range got {
		require.Equal(t, 249-i, r.Samples)
	}
	require.Less(t, len(got[0].Error), 600)
	for i := range 199 {
		rs.Note(fmt.Sprint(i), quota.Refusal{Time: begin.Add(time.Hour)})
	}
	require.Len(t, rs.Of("a"), 100)
	rs.Note("one more", quota.Refusal{Time: begin})
	require.Empty(t, rs.Of("a"), "its last refusal was the oldest")
	require.Len(t, rs.Of("one more"), 1)
}

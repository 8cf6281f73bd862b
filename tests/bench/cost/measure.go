package cost

import (
	"context"
	"time"

	"github.com/promlake/promlake/internal/compact"
	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/bench/proc"
)

// report holds the costs of the samples. Processor time is user and system time of this process,
// without the time of building the requests.
type report struct {
	Mode     string
	Series   int
	Samples  int64
	Requests int64

	WireBytesPerSample    float64 // bodies as sent: snappy
	QueueBytesPerSample   float64 `json:",omitempty"` // text of the messages
	SegmentBytesPerSample float64
	SamplesPerSegment     float64

	// seconds per million samples: a request until its answer
	RequestCPUPerMillion float64
	// seconds per million samples: messages to segments
	FlushCPUPerMillion  float64            `json:",omitempty"`
	IngestStoreRequests map[string]float64 // by operation

	Compaction compactionReport
}

type compactionReport struct {
	// seconds per million samples that were ingested, all levels together
	CPUPerMillion float64
	Rewrites      float64            // how often a sample was read
	Jobs          map[string]int     // by kind and level
	StoreRequests map[string]float64 // by operation; of planning too
	Ticks         int
	BlockBytesPerSample,
	BlocksLeft, SegmentsLeft float64
}

// compaction adds up ticks.
type compaction struct {
	ticks int
	read  int64
	jobs  map[string]int
	state plan.State
}

func (c *compaction) add(r *compact.Report) {
	if c.jobs == nil {
		c.jobs = map[string]int{}
	}
	c.ticks++
	for i := range r.Jobs {
		kind := r.Jobs[i].Job.Kind.String() + " " + r.Jobs[i].Job.Level.String()
		c.jobs[kind]++
		c.read += r.Jobs[i].Read
	}
	c.state = r.State
}

// stopwatch adds up processor time of this process.
type stopwatch struct{ sum time.Duration }

func (s *stopwatch) time(f func() error) error {
	before, err := proc.Self()
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	after, err := proc.Self()
	s.sum += after - before
	return err
}

// run is one measurement under way.
type run struct {
	*lake
	report
	requests, flushes, merges stopwatch
	wireBytes                 int64
	minute                    time.Time // of the next tick
}

// measure writes the span and compacts it, minute by minute.
func (l *lake) measure(ctx context.Context, hosts *fleet.Fleet) (report, error) {
	bodies, err := templates(hosts, l.set.Batch)
	if err != nil {
		return report{}, err
	}
	r := &run{lake: l, report: report{Mode: l.set.Mode, Series: hosts.Len()}, minute: midnight.Add(time.Minute)}
	for round := 0; ; round++ {
		at := midnight.Add(time.Duration(round) * l.set.Interval)
		if err := r.compactUntil(ctx, at); err != nil {
			return r.report, err
		}
		if !at.Before(midnight.Add(l.set.Span)) {
			break
		}
		l.clock = at
		for _, b := range bodies {
			if err := r.send(ctx, b.encode(hosts, round, at), b.template.Len()); err != nil {
				return r.report, err
			}
		}
	}
	if err := r.flush(ctx); err != nil {
		return r.report, err
	}
	if err := r.compactUntil(ctx, midnight.Add(l.set.Span+settled)); err != nil {
		return r.report, err
	}
	return r.report, r.finish()
}

// send makes one request, and flushes when a batch of messages is full.
func (r *run) send(ctx context.Context, body []byte, samples int) error {
	r.wireBytes, r.Requests, r.Samples = r.wireBytes+int64(len(body)), r.Requests+1, r.Samples+int64(samples)
	if err := r.requests.time(func() error { return r.writer.request(ctx, body) }); err != nil {
		return err
	}
	if r.Requests%int64(r.set.Messages) != 0 {
		return nil
	}
	return r.flush(ctx)
}

func (r *run) flush(ctx context.Context) error {
	return r.flushes.time(func() error { return r.writer.flush(ctx) })
}

// compactUntil runs the ticks that are due by end.
func (r *run) compactUntil(ctx context.Context, end time.Time) error {
	for ; !r.minute.After(end); r.minute = r.minute.Add(time.Minute) {
		r.clock = r.minute
		if err := r.merges.time(func() error { return r.tick(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

// finish reads the counters of the stages, and ends them.
func (r *run) finish() error {
	written, err := r.ingest.counters("promlake_ingest_segment_bytes_total", "")
	if err != nil {
		return err
	}
	segments, err := r.ingest.counters("promlake_ingest_segments_total", "")
	if err != nil {
		return err
	}
	if r.IngestStoreRequests, err = r.ingest.counters("promlake_objstore_requests_total", "op"); err != nil {
		return err
	}
	n := float64(r.Samples)
	queued, _ := r.writer.queued()
	r.WireBytesPerSample, r.QueueBytesPerSample = float64(r.wireBytes)/n, float64(queued)/n
	r.SegmentBytesPerSample, r.SamplesPerSegment = written[""]/n, n/segments[""]
	r.RequestCPUPerMillion, r.FlushCPUPerMillion = r.requests.sum.Seconds()/n*1e6, r.flushes.sum.Seconds()/n*1e6
	if err := r.finishCompaction(n); err != nil {
		return err
	}
	return r.writer.close()
}

func (r *run) finishCompaction(samples float64) (err error) {
	c := &r.Compaction
	if c.StoreRequests, err = r.compact.counters("promlake_objstore_requests_total", "op"); err != nil {
		return err
	}
	c.CPUPerMillion = r.merges.sum.Seconds() / samples * 1e6
	c.Rewrites, c.Jobs, c.Ticks = float64(r.took.read)/samples, r.took.jobs, r.took.ticks
	c.SegmentsLeft = float64(r.took.state.Segments)
	var blocks int64
	for level, size := range r.took.state.BlockBytes {
		blocks += size
		c.BlocksLeft += float64(r.took.state.Blocks[level])
	}
	c.BlockBytesPerSample = float64(blocks) / samples
	return nil
}

package imports

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/tsdbutil"

	"github.com/promlake/promlake/tests/bench/fleet"
	"github.com/promlake/promlake/tests/support/promblocktest"
)

const (
	// blockSpan is that of the blocks of the source; Prometheus makes blocks of two hours, then of
	// six and eighteen.
	blockSpan = 6 * time.Hour
	// one of so many hosts is also in a block that overlaps others
	overlapping = 10
	// one of so many series is a native histogram
	nativeShare = 100
	nativeName  = "request_duration_seconds"
)

// start is that of the history. All its windows are closed.
var start = time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)

// content identifies a set of samples: their number, and the sum of their hashes, which does not
// depend on their order. A sample that is there twice counts twice.
type content struct {
	Samples int64
	Sum     uint64
}

func (c content) String() string {
	return fmt.Sprintf("%d samples with checksum %016x", c.Samples, c.Sum)
}

var hashSeed = maphash.MakeSeed()

func hashOf(text string) uint64 { return maphash.String(hashSeed, text) }

// add adds the sample of a series (by the hash of its labels) at a time (ms). value is the bits of a
// float or the hash of a histogram.
func (c *content) add(series uint64, t int64, value uint64) {
	c.Samples++
	c.Sum += mix(series + mix(uint64(t)+mix(value)))
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// source is the history that is written as blocks of a TSDB.
type source struct {
	dir     string
	replay  *fleet.Replay
	rounds  int
	series  []labels.Labels
	content content
	Blocks  int
	Bytes   int64
}

// write writes all blocks: those of blockSpan, and one that overlaps them. The latter has samples of
// the former again, and samples between these.
func (s *source) write(ctx context.Context) error {
	first := s.replay.Time(0, 0)
	per := int(blockSpan.Milliseconds() / (s.replay.Time(0, 1) - first))
	for from := 0; from < s.rounds; from += per {
		if err := s.block(ctx, from, min(from+per, s.rounds), false); err != nil {
			return err
		}
	}
	if err := s.block(ctx, s.rounds/2, min(s.rounds/2+per/3+1, s.rounds), true); err != nil {
		return err
	}
	return filepath.WalkDir(s.dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			s.Bytes += info.Size()
		}
		return err
	})
}

// block writes one block with the rounds [from, to) of all series, or of those that overlap.
func (s *source) block(ctx context.Context, from, to int, overlap bool) (err error) {
	span := s.replay.Time(0, to) - s.replay.Time(0, from)
	w, err := tsdb.NewBlockWriter(slog.New(slog.DiscardHandler), s.dir, 4*span)
	if err != nil {
		return fmt.Errorf("begin block: %w", err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for i := range s.series {
		if overlap && i/s.replay.PerHost()%overlapping > 0 {
			continue
		}
		app := appending{Appender: w.Appender(ctx), source: s, series: i, hash: hashOf(s.series[i].String())}
		for round := from; round < to; round++ {
			t := s.time(i, round)
			if err := app.add(t, round, !overlap); err != nil {
				return errors.Join(fmt.Errorf("append sample: %w", err), app.Rollback())
			}
			if !overlap {
				continue
			}
			if err := app.add((t+s.time(i, round+1))/2, round, true); err != nil {
				return errors.Join(fmt.Errorf("append sample: %w", err), app.Rollback())
			}
		}
		if err := app.Commit(); err != nil {
			return fmt.Errorf("append samples: %w", err)
		}
	}
	if _, err := w.Flush(ctx); err != nil {
		return fmt.Errorf("write block: %w", err)
	}
	s.Blocks++
	return nil
}

// host returns the host of a series, and its number there.
func (s *source) host(series int) (host, number int) {
	if n := s.replay.Hosts() * s.replay.PerHost(); series >= n {
		return (series - n) % s.replay.Hosts(), 0 // a native histogram
	}
	return series / s.replay.PerHost(), series % s.replay.PerHost()
}

func (s *source) native(series int) bool { return series >= s.replay.Hosts()*s.replay.PerHost() }

func (s *source) time(series, round int) int64 {
	host, _ := s.host(series)
	return s.replay.Time(host, round)
}

// appending appends the samples of one series.
type appending struct {
	storage.Appender
	source *source
	series int
	hash   uint64
	ref    storage.SeriesRef
}

// add appends the sample of a round at t (ms), and counts it if it is fresh.
func (a *appending) add(t int64, round int, fresh bool) (err error) {
	var bits uint64
	if a.source.native(a.series) {
		h := nativeValue(a.series, round)
		if fresh {
			bits = hashOf(h.String())
		}
		a.ref, err = a.AppendHistogram(a.ref, a.source.series[a.series], t, h, nil)
	} else {
		host, number := a.source.host(a.series)
		v := a.source.replay.Value(host, number, round)
		bits = math.Float64bits(v)
		a.ref, err = a.Append(a.ref, a.source.series[a.series], t, v)
	}
	if fresh {
		a.source.content.add(a.hash, t, bits)
	}
	return err
}

// nativeValue is a histogram whose buckets grow at the pace of the series, and restart.
func nativeValue(series, round int) *histogram.Histogram {
	return tsdbutil.GenerateTestHistogram(int64(round%1700) * int64(1+series%7))
}

// newSource prepares a history of hosts, each a captured one, and of native histograms.
func newSource(dir string, r *fleet.Replay, rounds int) *source {
	s := &source{dir: dir, replay: r, rounds: rounds}
	for host := range r.Hosts() {
		for i := range r.PerHost() {
			s.series = append(s.series, r.Labels(host, i))
		}
	}
	for i := range max(1, len(s.series)/nativeShare) {
		b := labels.NewBuilder(s.series[i%r.Hosts()*r.PerHost()])
		b.Set(model.MetricNameLabel, nativeName)
		b.Set("handler", fmt.Sprint(i/r.Hosts()))
		s.series = append(s.series, b.Labels())
	}
	return s
}

// open returns upstream's view of the blocks, and what closes them.
func (s *source) open() (blocks promblocktest.Blocks, end func() error, err error) {
	end = func() error {
		var errs []error
		for _, b := range blocks {
			errs = append(errs, b.Close())
		}
		return errors.Join(errs...)
	}
	dirs, err := filepath.Glob(filepath.Join(s.dir, "*", "meta.json"))
	if err != nil {
		panic(err) // the pattern is well-formed
	}
	for _, meta := range dirs {
		b, err := tsdb.OpenBlock(slog.New(slog.DiscardHandler), filepath.Dir(meta), nil, nil)
		if err != nil {
			return nil, nil, errors.Join(fmt.Errorf("open block of the source: %w", err), end())
		}
		blocks = append(blocks, b)
	}
	return blocks, end, nil
}

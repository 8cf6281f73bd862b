package importapp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	smithytime "github.com/aws/smithy-go/time"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"

	"github.com/promlake/promlake/internal/compact/bulk"
	"github.com/promlake/promlake/internal/senders/promblock"
)

// stream is a part of a server's samples, [from, to] in ms. They are fetched when they are first
// scanned, and stay in a temporary file, so that slices of the series are not fetched again.
type stream struct {
	*server
	from, to int64

	once  sync.Once
	spool *promblock.Spool
	err   error
}

// Scan implements bulk.Opened.
func (s *stream) Scan(ctx context.Context, from, to int64, keep bulk.Keep) (bulk.Rows, error) {
	s.once.Do(func() { s.err = s.fetch(ctx) })
	if s.err != nil {
		return nil, s.err
	}
	return s.spool.Scan(ctx, max(from, s.from), min(to, s.to+1), promblock.Keep(keep))
}

// Close implements bulk.Opened.
func (s *stream) Close() error {
	if s.spool == nil {
		return nil
	}
	return s.spool.Close()
}

// pauses are the waits before another attempt to read a part.
var pauses = []time.Duration{time.Second, 5 * time.Second, 20 * time.Second}

// fetch reads the samples from the server.
func (s *stream) fetch(ctx context.Context) error {
	for attempt := 0; ; attempt++ {
		err := s.attempt(ctx)
		if _, refused := errors.AsType[*refusedError](err); err == nil || ctx.Err() != nil || attempt == len(pauses) || refused {
			return err
		}
		if smithytime.SleepWithContext(ctx, pauses[attempt]) != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
}

func (s *stream) attempt(ctx context.Context) (err error) {
	spool, err := promblock.NewSpool(s.dir)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, spool.Close())
		}
	}()
	for _, ms := range s.sets {
		q, err := remote.ToQuery(s.from, s.to, ms, nil)
		if err != nil {
			return err
		}
		set, err := s.read.Read(ctx, q, false)
		if err != nil {
			return fmt.Errorf("read from %s: %w", s.base, err)
		}
		for set.Next() {
			if err := add(spool, set.At()); err != nil {
				return err
			}
		}
		if err := set.Err(); err != nil {
			return fmt.Errorf("read from %s: %w", s.base, err)
		}
	}
	if err := spool.End(); err != nil {
		return err
	}
	s.spool = spool
	return nil
}

// add adds a series of an answer to the spool: its chunks as they were sent, or those of its
// samples.
func add(spool *promblock.Spool, one storage.Series) error {
	lset := one.Labels()
	if name, twice := lset.HasDuplicateLabelNames(); twice {
		return fmt.Errorf("read: the server sends series %s with label %s twice", lset, name)
	}
	var b labels.ScratchBuilder
	lset.Range(func(l labels.Label) { b.Add(l.Name, l.Value) })
	b.Sort()
	lset = b.Labels()
	var metas []chunks.Meta
	if sent, ok := one.(interface{ GetChunks() []prompb.Chunk }); ok {
		for _, c := range sent.GetChunks() {
			chunk, err := chunkenc.FromData(chunkenc.Encoding(c.Type), c.Data)
			if err != nil {
				return fmt.Errorf("read: the server sends a chunk of series %s: %w", lset, err)
			}
			metas = append(metas, chunks.Meta{MinTime: c.MinTimeMs, MaxTime: c.MaxTimeMs, Chunk: chunk})
		}
		return spool.Add(lset, metas)
	}
	it := storage.NewSeriesToChunkEncoder(one).Iterator(nil)
	for it.Next() {
		metas = append(metas, it.At())
	}
	if err := it.Err(); err != nil {
		return fmt.Errorf("read series %s: %w", lset, err)
	}
	return spool.Add(lset, metas)
}

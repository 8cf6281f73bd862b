// Package instrument counts the calls of an object store.
//
//	promlake_objstore_requests_total{op,status}       calls by outcome
//	promlake_objstore_bytes_total{op}                 bytes read from bodies (get) and written by
//	                                                  successful calls (put)
//	promlake_objstore_request_duration_seconds{op}    of get until the body can be read, of other
//	                                                  calls until they return
//	promlake_objstore_read_failures_total             bodies of successful Gets that failed later
//
// A call is counted once, however many requests it needs (pages of a listing, parts, attempts). The
// time that the consumer of a listing spends between objects is not counted.
package instrument

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	opGet    = "get"
	opPut    = "put"
	opList   = "list"
	opDelete = "delete"
	opNow    = "now"
)

// New returns store with counters in reg; stores with the same registerer share them. writes
// remembers what is put; nil: nobody asks. The result is an objstore.Local exactly if store is one.
// New panics if other metrics have the same names.
func New(store objstore.Store, reg prometheus.Registerer, writes *Writes) objstore.Store {
	return objstore.Over(store, &instrumented{Store: store, metrics: newMetrics(reg), writes: writes})
}

type instrumented struct {
	objstore.Store
	metrics *metrics
	writes  *Writes
}

func (s *instrumented) Get(ctx context.Context, key string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	start := time.Now()
	r, o, err := s.Store.Get(ctx, key, offset, length)
	s.metrics.observe(opGet, time.Since(start), err)
	if err != nil {
		return nil, o, err
	}
	return &body{ReadCloser: r, bytes: s.metrics.bytes.WithLabelValues(opGet), failures: s.metrics.readFailures}, o, nil
}

func (s *instrumented) Put(ctx context.Context, key string, b io.ReadSeeker, cond objstore.Condition) (string, error) {
	start := time.Now()
	_, size, err := objstore.Measure(b)
	var etag string
	if err != nil {
		err = fmt.Errorf("put %q: %w", key, err)
	} else {
		etag, err = s.Store.Put(ctx, key, b, cond)
		s.writes.note(key)
	}
	s.metrics.observe(opPut, time.Since(start), err)
	if err == nil {
		s.metrics.bytes.WithLabelValues(opPut).Add(float64(size))
	}
	return etag, err
}

func (s *instrumented) List(ctx context.Context, prefix, startAfter string) iter.Seq2[objstore.Object, error] {
	return listed(s.metrics, s.Store.List(ctx, prefix, startAfter))
}

// ListExcept implements objstore.ExceptLister.
func (s *instrumented) ListExcept(ctx context.Context, prefix, startAfter string, skip func(key string) bool) iter.Seq2[objstore.Object, error] {
	return listed(s.metrics, objstore.ListExcept(ctx, s.Store, prefix, startAfter, skip))
}

func (s *instrumented) ListFolders(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return listed(s.metrics, s.Store.ListFolders(ctx, prefix))
}

// listed returns a listing that is counted when it ends.
func listed[T any](m *metrics, all iter.Seq2[T, error]) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var took time.Duration
		var failure error
		start := time.Now()
		for v, err := range all {
			took += time.Since(start)
			failure = err
			if !yield(v, err) {
				start = time.Now()
				break
			}
			start = time.Now()
		}
		m.observe(opList, took+time.Since(start), failure)
	}
}

func (s *instrumented) Delete(ctx context.Context, key string) error {
	start := time.Now()
	err := s.Store.Delete(ctx, key)
	s.metrics.observe(opDelete, time.Since(start), err)
	return err
}

// DeleteAll implements objstore.BatchDeleter.
func (s *instrumented) DeleteAll(ctx context.Context, keys []string) (int, error) {
	b, ok := s.Store.(objstore.BatchDeleter)
	if !ok { // counts each of its deletions
		return objstore.DeleteAll(ctx, struct{ objstore.Store }{s}, keys)
	}
	start := time.Now()
	n, err := b.DeleteAll(ctx, keys)
	s.metrics.observe(opDelete, time.Since(start), err)
	return n, err
}

func (s *instrumented) Now(ctx context.Context) (time.Time, error) {
	start := time.Now()
	now, err := s.Store.Now(ctx)
	s.metrics.observe(opNow, time.Since(start), err)
	return now, err
}

// body counts the bytes of a Get, and its failure, if any.
type body struct {
	io.ReadCloser
	bytes    prometheus.Counter
	failures prometheus.Counter
	failed   bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.bytes.Add(float64(n))
	if err != nil && !errors.Is(err, io.EOF) && !b.failed {
		b.failed = true
		b.failures.Inc()
	}
	return n, err
}

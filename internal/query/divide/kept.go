package divide

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/query/source"
	"github.com/promlake/promlake/internal/store/objstore"
)

const (
	// listEvery is how long a listing of the answers to a question counts: other processes may have
	// kept some since.
	listEvery = 10 * time.Minute
	// maxQuestions is the number of questions whose kept answers are known without a listing.
	maxQuestions = 4096
	// MaxKeptBytes bounds the answers to one query, and those that are being written.
	MaxKeptBytes = 32 << 20
	// writesAtOnce is the number of objects that are written at once for one query, writeTime the
	// longest time for all of them, and failurePause the time after a failure in which none is.
	writesAtOnce = 8
	writeTime    = 30 * time.Second
	failurePause = time.Minute
)

// Keeper keeps answers to slices of range queries as objects of the store (schemas/kept.md), and
// finds them again. Answers that others must not see are not told apart here: whatever an
// answer depends on is in its key. It is safe for concurrent use.
type Keeper struct {
	store   objstore.Store
	files   *source.Files
	log     *slog.Logger
	now     func() time.Time
	results *prometheus.CounterVec

	writing context.Context // ends with Close
	end     context.CancelFunc
	writes  sync.WaitGroup

	mu      sync.Mutex
	known   *memory.LRU[string, *question] // by prefix of keys
	pending int64                          // bytes that are being written
	paused  time.Time                      // nothing is written before
}

// question is what is known of the kept answers to a question. The lock of the keeper guards it.
type question struct {
	listed time.Time
	sizes  map[string]int64 // bytes, by key
}

// NewKeeper returns a keeper that counts in reg, which may be nil.
func NewKeeper(store objstore.Store, files *source.Files, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) *Keeper {
	m := telemetry.Metrics{Registerer: reg, Prefix: "promlake_query_"}
	k := &Keeper{
		store: store, files: files, log: logger, now: now, known: memory.NewLRU[string, *question](maxQuestions),
		results: m.CountersOf("kept_answers_total", "Slices of range queries over settled windows: hit, whose answer was kept, and miss; and objects with such answers: written; failed, which could not be written or read; damaged, which are not what their key says, and are replaced.", "result", "hit", "miss", "written", "failed", "damaged"),
	}
	k.writing, k.end = context.WithCancel(context.Background())
	return k
}

// Find returns the sizes of the objects of answers to one question, 0 for those that are not kept.
// It lists them if it does not know them all and has not listed them lately.
func (k *Keeper) Find(ctx context.Context, answers []key.Answer) []int64 {
	prefix, out := answers[0].Prefix(), make([]int64, len(answers))
	look := func() (all, fresh bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		q := k.question(prefix)
		all = true
		for i, a := range answers {
			out[i] = q.sizes[a.String()]
			all = all && out[i] > 0
		}
		return all, !q.listed.IsZero() && k.now().Sub(q.listed) < listEvery
	}
	if all, fresh := look(); all || fresh {
		return out
	}
	sizes, begun := map[string]int64{}, k.now()
	for o, err := range k.store.List(ctx, prefix, "") {
		if err != nil {
			k.failed(ctx, "list", prefix, err)
			return out
		}
		sizes[o.Key] = o.Size
	}
	k.mu.Lock()
	*k.question(prefix) = question{begun, sizes}
	k.mu.Unlock()
	look()
	return out
}

// question returns the entry of a question. mu is held.
func (k *Keeper) question(prefix string) *question {
	if e := k.known.Get(prefix); e != nil {
		return e.Value
	}
	q := &question{sizes: map[string]int64{}}
	k.known.Add(prefix, q, 1)
	k.known.Evict(0)
	return q
}

// set notes the size of the object of an answer; 0: it is not kept.
func (k *Keeper) set(a key.Answer, size int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if q := k.question(a.Prefix()); size > 0 {
		q.sizes[a.String()] = size
	} else {
		delete(q.sizes, a.String())
	}
}

// failed counts and logs an error of the store, unless the query has ended.
func (k *Keeper) failed(ctx context.Context, what, key string, err error) {
	if ctx.Err() == nil {
		k.results.WithLabelValues("failed").Inc()
		k.log.Warn(what+" kept answers", "object", key, "err", err)
	}
}

// Read returns the kept answer to a piece, from an object of size bytes; nil if it cannot be read.
// It charges the memory of the answer to ctx's work.
func (k *Keeper) Read(ctx context.Context, of key.Answer, size int64, p *Piece) *Answer {
	in := k.files.Open(ctx, of.String(), size)
	defer in.Close()
	err := in.Prefetch([][2]int64{{0, size}}) // in one request
	var a *Answer
	if err == nil {
		a, err = Read(io.NewSectionReader(in, 0, size), p, memory.Of(ctx).Charge)
	}
	if err == nil {
		return a
	}
	var process *memory.Error
	switch {
	case errors.As(err, &process), ctx.Err() != nil: // the object may be right
		return nil
	case errors.Is(err, objstore.ErrNotFound): // a compactor has deleted it
	default:
		k.results.WithLabelValues("damaged").Inc()
		k.log.Warn("read a kept answer", "object", of.String(), "err", err)
	}
	k.set(of, 0)
	return nil
}

// Counted counts slices whose answers were kept, and others.
func (k *Keeper) Counted(hits, misses int) {
	k.results.WithLabelValues("hit").Add(float64(hits))
	k.results.WithLabelValues("miss").Add(float64(misses))
}

// Object is an answer that is to be kept.
type Object struct {
	Key  key.Answer
	Body []byte
}

// Keep writes the answers of a query in the background. It drops them while too much is being
// written, and for a while after a failure.
func (k *Keeper) Keep(answers []Object) {
	n := int64(0)
	for _, a := range answers {
		n += int64(len(a.Body))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pending+n > MaxKeptBytes || k.now().Before(k.paused) || k.writing.Err() != nil {
		return
	}
	k.pending += n
	k.writes.Go(func() {
		ctx, cancel := context.WithTimeout(k.writing, writeTime)
		defer cancel()
		err := telemetry.Each(ctx, writesAtOnce, answers, k.put)
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.pending -= n; err != nil {
			k.paused = k.now().Add(failurePause)
		}
	})
}

func (k *Keeper) put(ctx context.Context, _ int, o Object) error {
	name := o.Key.String()
	_, err := k.store.Put(ctx, name, bytes.NewReader(o.Body), objstore.Condition{})
	if err == nil {
		err = k.files.Forget(name) // of a damaged object
	}
	if err != nil {
		k.failed(ctx, "write", name, err)
		return err
	}
	k.results.WithLabelValues("written").Inc()
	k.set(o.Key, int64(len(o.Body)))
	return nil
}

// Wait waits until what is being written is written, or ctx ends.
func (k *Keeper) Wait(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		k.writes.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// Close ends what is being written, and waits for it.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.end()
	k.mu.Unlock()
	k.writes.Wait()
}

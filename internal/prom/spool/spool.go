// Package spool brings transactions of this process to the ingest stage. While the store is away
// they wait in files of a local directory, from which they are appended later, in the order of
// their files. A restart continues with the files that are left.
package spool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/prom/appender"
)

// Sink makes samples durable. refused says what was refused for good; after an error the samples
// should be appended again.
type Sink interface {
	Append(ctx context.Context, tenant string, size int64, source func(*remotewrite.Generation, remotewrite.Rules, remotewrite.Room) (*remotewrite.Batch, error)) (refused, err error)
}

// Spool is a queue of transactions. It is safe for concurrent use.
type Spool struct {
	set    Settings
	sink   Sink
	disk   *disk
	met    *metrics
	logger *slog.Logger

	longest    atomic.Int64 // a time.Duration; see SetLinger
	down       atomic.Bool  // an append failed, and what it left is not yet stored: transactions go to the directory
	complained atomic.Int64 // ms since 1970 of the last log entry on a refusal
	wake       chan struct{}
	filled     chan struct{} // capacity 1: the directory has a new file
	ended      sync.WaitGroup
	ctx        context.Context // ends appends and the replay
	cancel     context.CancelFunc

	pace time.Duration // how long samples may wait by the last appends; see adapt; used by run alone

	mu      sync.Mutex
	waiting []*appender.Transaction
	memory  int64         // bytes of the transactions that are added and not settled
	added   uint64        // transactions
	settled uint64        // of them, in the order of adding: stored, in the directory, or lost
	changed chan struct{} // closed when settled changes
	normal  demand        // of Sync
	urgent  demand        // of SyncSoon
	closing bool
}

const (
	// gather is how long transactions wait while the store is away, so that files are not too many.
	gather = 5 * time.Second
	// firstPause and lastPause bound the time between two attempts to append files.
	firstPause, lastPause = time.Second, 30 * time.Second
	// fullShare is the inverse of the part of the memory from which samples wait for no others.
	fullShare = 4
	// quickShare is the inverse of the part of the linger time that a quick append takes at most.
	quickShare = 4
	// soonest bounds the linger time while somebody waits in SyncSoon.
	soonest = time.Second
	// replayTimeout bounds one attempt to append a file.
	replayTimeout = time.Minute
)

// Open returns a running spool.
func Open(s Settings, sink Sink, reg prometheus.Registerer, logger *slog.Logger) (*Spool, error) {
	d, err := openDisk(s.Dir, s.MaxBytes)
	if err != nil {
		return nil, err
	}
	q := &Spool{
		set: s, sink: sink, disk: d, logger: logger,
		wake: make(chan struct{}, 1), filled: make(chan struct{}, 1), changed: make(chan struct{}),
		normal: newDemand(), urgent: newDemand(),
	}
	q.pace = s.Linger
	q.SetLinger(s.Linger)
	f := telemetry.Metrics{Registerer: reg, Prefix: "promlake_queue_"}
	telemetry.Registered(reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "promlake_queue_disk_bytes", Help: "Bytes of the queue on disk."}, func() float64 { return float64(d.size()) }))
	q.met = &metrics{
		waiting: f.Gauge("waiting_transactions", "Scrapes and results of rules that wait in memory for the store."),
		stored:  f.Counter("stored_samples_total", "Scraped samples and results of rules that were stored."),
		spilled: f.Counter("spilled_samples_total", "Samples that were written to the queue on disk because the store was away."),
		dropped: f.Counter("dropped_samples_total", "Samples that were lost because neither the store nor the queue on disk took them, or because they were refused as a whole."),
		refused: f.Counter("refused_appends_total", "Appends of which samples were refused because they break a rule or a limit."),
		failed:  f.Counter("failed_appends_total", "Appends that failed and are repeated."),
		full:    f.Counter("full_waits_total", "Scrapes and results of rules that waited for room in memory, because --scrape.queue-memory was full."),
		damaged: f.Counter("damaged_files_total", "Files of the queue that were damaged."),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	q.down.Store(q.fewLeft())
	q.ended.Add(2)
	go q.run()
	go q.replay()
	return q, nil
}

// AddTo returns Add for the transactions of a tenant, as an appendable calls it.
func (q *Spool) AddTo(tenant string) func(*appender.Transaction) error {
	return func(t *appender.Transaction) error {
		t.Tenant = tenant
		q.Add(t)
		return nil
	}
}

// Add takes a transaction of the tenant that it names. It does not wait for the store, unless the
// memory is full: then it waits until some of what is in memory is stored, or is in the directory
// because the store takes longer than Settings.Patience. So what produces samples faster than they
// can be stored slows down.
func (q *Spool) Add(t *appender.Transaction) {
	n := t.Bytes()
	q.mu.Lock()
	for waits := false; q.memory > 0 && q.memory+n > q.set.MaxMemory && !q.closing; {
		if !waits {
			q.met.full.Inc()
			waits = true
		}
		changed := q.changed
		q.mu.Unlock()
		<-changed
		q.mu.Lock()
	}
	q.waiting = append(q.waiting, t)
	q.memory += n
	q.added++
	q.met.waiting.Set(float64(len(q.waiting)))
	wake := len(q.waiting) == 1 || q.normal.waits || q.urgent.waits || q.full()
	q.mu.Unlock()
	if wake { // otherwise take waits for the end of the linger time
		signal(q.wake)
	}
}

func bytesOf(txs []*appender.Transaction) (n int64) {
	for _, t := range txs {
		n += t.Bytes()
	}
	return n
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Sync waits until everything that was added before is stored, or waits in the directory because
// the store is away. It ends the linger time, but not much more often than once in this time.
func (q *Spool) Sync(ctx context.Context) error { return q.sync(ctx, &q.normal) }

// SyncSoon is Sync for those who wait several times one after the other: it takes about a second at
// most while the store is there.
func (q *Spool) SyncSoon(ctx context.Context) error { return q.sync(ctx, &q.urgent) }

func (q *Spool) sync(ctx context.Context, d *demand) error {
	q.mu.Lock()
	want := q.added
	d.waits = len(q.waiting) > 0
	q.mu.Unlock()
	signal(q.wake)
	for {
		q.mu.Lock()
		settled, changed := q.settled, q.changed
		q.mu.Unlock()
		if settled >= want {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d transactions to be stored: %w", want-settled, ctx.Err())
		}
	}
}

// Close stores what waits in memory, or writes it to the directory if that fails or ctx ends first.
// Nothing may be added any more.
func (q *Spool) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closing = true
	q.mu.Unlock()
	stop := context.AfterFunc(ctx, q.cancel)
	defer stop()
	signal(q.wake)
	err := q.Sync(context.WithoutCancel(ctx))
	q.cancel()
	q.ended.Wait()
	return errors.Join(err, q.disk.close())
}

// SetLinger sets how long samples wait for others while appends are quick.
func (q *Spool) SetLinger(longest time.Duration) { q.longest.Store(int64(longest)) }

// linger returns how long samples wait for others now.
func (q *Spool) linger() time.Duration { return min(q.pace, time.Duration(q.longest.Load())) }

// adapt changes how long samples wait for others by the time that an append took: a slow one may
// not become larger, because after Settings.Patience it counts as failed.
func (q *Spool) adapt(took time.Duration) {
	if took > q.linger()/quickShare {
		q.pace = q.set.Linger
		return
	}
	q.pace = max(q.set.Linger, min(2*q.pace, time.Duration(q.longest.Load())))
}

// take waits for transactions, and for more of them until the linger time is over or somebody waits
// for them. It returns none when the spool is closing and empty.
func (q *Spool) take() (txs []*appender.Transaction, closing bool) {
	linger := q.linger()
	ready := linger == 0
	var over, soon <-chan time.Time // the ends of the linger time, and of that for SyncSoon
	for {
		q.mu.Lock()
		now := time.Now()
		if q.closing || len(q.waiting) > 0 && (ready || q.full() || q.urgent.ends(now, min(linger, soonest)) || q.normal.ends(now, linger)) {
			defer q.mu.Unlock()
			txs, q.waiting, q.normal.waits, q.urgent.waits = q.waiting, nil, false, false
			q.met.waiting.Set(0)
			return txs, q.closing
		}
		if over == nil && len(q.waiting) > 0 {
			linger = q.linger()
			over = time.After(linger)
		}
		if soon == nil && q.urgent.waits {
			soon = time.After(min(linger, soonest))
		}
		q.mu.Unlock()
		select {
		case <-q.wake:
		case <-over:
			ready = true
		case <-soon:
			ready = true
		}
	}
}

// full reports whether samples wait for no others. The caller holds q.mu.
func (q *Spool) full() bool { return q.memory > q.set.MaxMemory/fullShare }

// demand is that of those who wait, and bounds how often they end the linger time: maxEarly times
// at once, and once per linger time in the long run. So a few groups of rules are evaluated without
// delay, and many groups share appends.
type demand struct {
	waits bool // somebody waits for the transactions that are in memory
	early *rate.Limiter
}

func newDemand() demand { return demand{early: rate.NewLimiter(0, maxEarly)} }

const maxEarly = 20

// ends reports whether the linger time ends now. If so, it is counted.
func (d *demand) ends(now time.Time, linger time.Duration) bool {
	if !d.waits {
		return false
	}
	d.early.SetLimitAt(now, rate.Every(linger))
	return d.early.AllowN(now, 1)
}

// settle counts transactions that the spool holds in memory no more.
func (q *Spool) settle(n int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settled += uint64(n)
	q.memory -= bytes
	close(q.changed)
	q.changed = make(chan struct{})
}

// run brings transactions to the store, or to the directory.
func (q *Spool) run() {
	defer q.ended.Done()
	for {
		txs, closing := q.take()
		if len(txs) == 0 {
			return
		}
		bytes := bytesOf(txs)
		rest := [][]*appender.Transaction{txs}
		if !q.down.Load() {
			begin := time.Now()
			rest = q.append(txs)
			q.adapt(time.Since(begin))
		}
		for _, part := range rest {
			q.spill(part)
		}
		if len(rest) > 0 {
			q.down.Store(true) // also if the files before have just been stored; see recovered
		}
		if q.disk.size() == 0 {
			q.down.Store(false) // no file tells when the store is back
		}
		q.settle(len(txs), bytes)
		for _, t := range txs {
			t.Release()
		}
		if len(rest) > 0 && !closing {
			q.pause(gather)
		}
	}
}

// pause waits until the store is back, the spool is full or closed, or d has passed.
func (q *Spool) pause(d time.Duration) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(d); time.Now().Before(end) && q.down.Load(); <-tick.C {
		q.mu.Lock()
		ends := q.closing || q.full()
		q.mu.Unlock()
		if ends {
			return
		}
	}
}

// Settings of a spool. The tags are those of package settings.
type Settings struct {
	Dir      string `name:"scrape.queue-dir" default:"promlake-queue" help:"Directory for scraped samples and results of rules while the store cannot take them. It is made when it is needed, and belongs to one process at a time." when:"Set it to a disk that survives a restart of the process."`
	MaxBytes int64  `name:"scrape.queue-bytes" type:"bytes" default:"10GiB" min:"1" help:"Disk space in --scrape.queue-dir. Beyond it, new samples are dropped and counted." when:"Raise it to survive longer outages of the store; a sample takes about 10 bytes."`

	MaxMemory int64 `name:"scrape.queue-memory" type:"bytes" default:"256MiB" min:"1" help:"Memory of scraped samples and results of rules that wait for the store or for the disk of --scrape.queue-dir. Beyond it, scrapes and rules wait." when:"Raise it if promlake_queue_full_waits_total increases and memory is free."`

	// Linger is how long samples wait for others, so that many scrapes share an append, at first and
	// after a slow append. Spool.SetLinger sets the longest time.
	Linger time.Duration `kong:"-" default:"0"`
	// Patience is how long samples wait in memory for the store before they are written to the
	// directory.
	Patience time.Duration `kong:"-" default:"5s" above:"0"`
}

// metrics are those of a spool.
type metrics struct {
	waiting prometheus.Gauge
	stored  prometheus.Counter
	spilled prometheus.Counter
	dropped prometheus.Counter
	refused prometheus.Counter
	failed  prometheus.Counter
	full    prometheus.Counter
	damaged prometheus.Counter
}

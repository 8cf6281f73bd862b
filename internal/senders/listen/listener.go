package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/semaphore"

	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/telemetry"
	"github.com/promlake/promlake/internal/format/remotewrite"
)

// Listener takes lines until it is closed.
type Listener struct {
	set      Settings
	memory   *memory.Budget // of the process, for connections and lines that wait; nil: no limit
	protocol Protocol
	sink     Sink
	now      func() time.Time
	logger   *slog.Logger
	met      *metrics
	queue    *queue

	tcp net.Listener
	udp net.PacketConn

	ctx     context.Context // ends appends
	cancel  context.CancelFunc
	readers sync.WaitGroup // connections, and the loops of tcp and udp
	writer  sync.WaitGroup
	stop    chan struct{} // closed when Close begins

	received  chan struct{}       // closed when no reader runs any more
	arriving  *semaphore.Weighted // bytes of messages, beyond those that fit into a line's buffer
	unpacking sync.Mutex          // held while a message becomes lines: one at a time takes memory

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	ended bool

	complained atomic.Int64 // ns of the last log entry on lost lines
}

// Open listens and begins to append. Connections and lines that wait are charged to budget.
func Open(ctx context.Context, set Settings, protocol Protocol, sink Sink, budget *memory.Budget, reg prometheus.Registerer, logger *slog.Logger, now func() time.Time) (*Listener, error) {
	tcp, udp, err := both(ctx, set.Address, protocol.Unpack == nil)
	if err != nil {
		return nil, fmt.Errorf("listen for %s: %w", protocol.Name, err)
	}
	l := &Listener{
		set: set, memory: budget, protocol: protocol, sink: sink, now: now, logger: logger.With("protocol", protocol.Name), queue: newQueue(set.QueueBytes),
		tcp: tcp, udp: udp, stop: make(chan struct{}), received: make(chan struct{}), arriving: semaphore.NewWeighted(maxArriving), conns: map[net.Conn]struct{}{},
	}
	l.met = newMetrics(reg, protocol.Name, func() float64 { return float64(l.queue.size()) })
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	l.readers.Go(l.accept)
	if l.udp != nil {
		l.readers.Go(l.datagrams)
	}
	if protocol.Aggregate != nil {
		l.writer.Go(l.flush)
	} else {
		l.writer.Go(l.write)
		go l.tick()
	}
	l.logger.Info("accepting lines", "address", tcp.Addr().String(), "tenant", set.Tenant)
	return l, nil
}

// both listens over TCP, and with datagrams over UDP. Port 0 is a port that is free in both.
func both(ctx context.Context, address string, datagrams bool) (tcp net.Listener, udp net.PacketConn, err error) {
	var lc net.ListenConfig
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, nil, err
	}
	for range 10 {
		if tcp, err = lc.Listen(ctx, "tcp", address); err != nil {
			return nil, nil, err
		}
		if !datagrams {
			return tcp, nil, nil
		}
		if udp, err = lc.ListenPacket(ctx, "udp", tcp.Addr().String()); err == nil {
			return tcp, udp, nil
		}
		if err = errors.Join(err, tcp.Close()); port != "0" {
			break
		}
	}
	return nil, nil, err
}

// Addr is where the listener listens, over TCP and mostly UDP.
func (l *Listener) Addr() string { return l.tcp.Addr().String() }

// tick makes lines ready that have waited for the interval.
func (l *Listener) tick() {
	t := time.NewTicker(l.set.Interval)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			l.queue.cut()
		case <-l.stop:
			return
		}
	}
}

// write appends batch after batch until the queue is closed and empty.
func (l *Listener) write() {
	for {
		b, ok := l.queue.next()
		if !ok {
			return
		}
		l.store(b.count(), int64(len(b.lines))+remotewrite.CostFloat*int64(b.count()), func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error) {
			return l.protocol.Decode(b.lines, b.came, g, rules, room)
		})
		l.queue.done(b)
		l.memory.Release(int64(len(b.lines)))
	}
}

// store appends the samples of some lines, again and again if that fails.
func (l *Listener) store(lines int, size int64, source Source) {
	whole := false
	noted := func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (out *remotewrite.Batch, err error) {
		err = telemetry.Guard(func() error { out, err = source(g, rules, room); return err })()
		whole = err != nil
		return out, err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		refused, err := l.sink.Append(l.ctx, l.set.Tenant, size, noted)
		if err == nil {
			if refused != nil {
				l.met.refused.Inc()
				l.complain("lines were refused", "err", refused)
				if whole {
					l.met.dropped.WithLabelValues(droppedRefused).Add(float64(lines))
				}
			}
			return
		}
		l.met.retries.Inc()
		l.complain("lines cannot be stored yet; senders wait, and lines that come over UDP may be lost", "err", err)
		select {
		case <-time.After(pause):
		case <-l.ctx.Done():
			l.met.dropped.WithLabelValues(droppedShutdown).Add(float64(lines))
			l.logger.Error("lines are lost: they could not be stored before the process ended", "lines", lines, "err", err)
			return
		}
	}
}

// complain logs, but not more often than complainEvery.
func (l *Listener) complain(text string, args ...any) {
	now := l.now().UnixNano()
	if last := l.complained.Load(); (last == 0 || now-last >= int64(complainEvery)) && l.complained.CompareAndSwap(last, now) {
		l.logger.Warn(text, append(args, "tenant", l.set.Tenant)...)
	}
}

// Close stops to listen, ends the connections, and appends what was received. If ctx ends first,
// the lines that are left are lost and counted.
func (l *Listener) Close(ctx context.Context) error {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return nil
	}
	l.ended = true
	err := l.tcp.Close()
	if l.udp != nil {
		err = errors.Join(err, l.udp.Close())
	}
	for c := range l.conns {
		_ = c.Close() // its reader reports it
	}
	l.mu.Unlock()
	close(l.stop)
	defer context.AfterFunc(ctx, l.cancel)()
	read := make(chan struct{})
	go func() {
		l.readers.Wait()
		close(read)
	}()
	select {
	case <-read: // what they have received is in the queue
	case <-ctx.Done():
	}
	l.queue.close() // readers that still wait for room go on
	<-read
	close(l.received)
	l.writer.Wait()
	l.cancel()
	return err
}

// flush appends what lines add up to at intervals, and once more when the last line has come. While
// the store is away, samples of later times are left out: sums go on.
func (l *Listener) flush() {
	t := time.NewTicker(l.set.Interval)
	defer t.Stop()
	for ended := false; !ended; {
		select {
		case <-t.C:
		case <-l.received:
			ended = true
		}
		l.guard(1, func() {
			if samples, size, source := l.protocol.Aggregate.Flush(); samples > 0 {
				l.store(samples, size, source)
			}
		})
	}
}

package rulefn

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/klauspost/compress/snappy"

	"github.com/promlake/promlake/internal/prom/appender"
	"github.com/promlake/promlake/internal/rules/rulestate"
)

// redeliver writes the samples in outboxes that may not be delivered, because an invocation was
// killed, its receiver was away, or another process has evaluated the groups. They must be stored
// before the groups are evaluated again; those that are stored already count once. Notifications in
// these outboxes become unsent ones of the groups.
func (r *Runner) redeliver(ctx context.Context, tenant string, all []*member, at time.Time) error {
	var late []*member
	for _, m := range all {
		if !m.state.Outbox.Empty() && !r.wasDelivered(m.key, m.etag) {
			late = append(late, m)
		}
	}
	// They are written in as few messages as possible: with a queue, most evaluations are those
	// of other processes.
	var messages [][]byte
	bytes, samples := 0, 0
	for i, m := range late {
		if o := &m.state.Outbox; o.Count > 0 {
			message, err := snappy.Decode(nil, o.Samples)
			if err != nil {
				return fmt.Errorf("deliver the samples of %d groups again: group %q of namespace %q: %w", len(late), m.Name(), m.Namespace(), err)
			}
			messages = append(messages, message)
			bytes, samples = bytes+len(message), samples+o.Count
		}
		if samples == 0 || bytes < maxJoinedBytes && i < len(late)-1 {
			continue
		}
		joined, err := appender.Join(messages)
		if err == nil {
			err = r.write(ctx, tenant, joined, samples)
		}
		if err != nil {
			return fmt.Errorf("deliver the samples of %d groups again: %w", len(late), err)
		}
		messages, bytes, samples = nil, 0, 0
	}
	r.met.redelivered.Add(float64(len(late)))
	for _, m := range late {
		if r.Sender != nil {
			// Notifications of alerts that ended long ago are not sent again.
			retention := r.retention()
			m.unsent = slices.DeleteFunc(slices.Clone(m.state.Outbox.Notifications), func(n rulestate.Notification) bool { return at.Sub(n.EndsAt) > retention })
		}
		if len(m.unsent) == 0 {
			r.setDelivered(m.key, m.etag)
		}
	}
	return nil
}

// maxJoinedBytes is the size of joined messages from which on they are written.
const maxJoinedBytes = 8 << 20

// write makes samples durable. What is refused is counted and logged, and not written again.
func (r *Runner) write(ctx context.Context, tenant string, message []byte, samples int) error {
	refused, err := r.Sink.Write(ctx, tenant, message, samples)
	if err != nil {
		return err
	}
	r.met.samples.Add(float64(samples))
	if refused != nil {
		r.met.refused.Inc()
		r.Logger.WarnContext(ctx, "a part of the results of rules was refused", "tenant", tenant, "err", refused)
	}
	return nil
}

// deliver writes the samples of states that were committed in this run, in one message.
func (r *Runner) deliver(ctx context.Context, tenant string, committed []*member, sum *Report) error {
	var txs []*appender.Transaction
	samples := 0
	for _, m := range committed {
		txs = append(txs, m.txs...)
		samples += m.state.Outbox.Count
	}
	if samples == 0 {
		return nil
	}
	message, err := appender.Encode(txs)
	if err == nil {
		err = r.write(ctx, tenant, message, samples)
	}
	if err != nil {
		return fmt.Errorf("deliver %d samples, which wait in the states: %w", samples, err)
	}
	sum.Samples += samples
	return nil
}

// maxRemembered bounds the versions that a process remembers. Forgetting one lets its outbox be
// delivered again, which has no effect.
const maxRemembered = 100_000

// wasDelivered reports whether the outbox of a version of a state is known to be delivered.
func (r *Runner) wasDelivered(key, etag string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delivered[key] == etag
}

func (r *Runner) setDelivered(key, etag string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.delivered) >= maxRemembered {
		clear(r.delivered)
	}
	r.delivered[key] = etag
}

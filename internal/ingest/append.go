package ingest

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/ingest/group"
)

// Source reads samples of this process into a batch of the generation, as remotewrite.Decode and
// remotewrite.Collect do.
type Source = func(g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error)

// Append makes samples of this process durable, such as those of scrapes, and returns then. They
// join the requests of other senders of the tenant. size is about the memory (bytes) that they
// take. refused says what was refused because it breaks a rule or a limit: to append it again is
// useless. Other samples of the source are durable nevertheless, unless the source was refused as a
// whole. With an error it is not known whether the samples are durable, and they should be appended
// again; two times the same sample counts once. The batch of a source that ended with ctx may still
// become durable.
func (s *Stage) Append(ctx context.Context, tenantID string, size int64, source Source) (refused, err error) {
	if _, err := tenant.Parse(tenantID); err != nil {
		return fmt.Errorf("%w: %w", errTenant, err), nil
	}
	refused, err = s.append(ctx, tenantID, size, source)
	code := status(err)
	s.countLimited(err)
	if err == nil && refused != nil {
		code = status(refused)
	}
	s.met.requests.WithLabelValues("append", strconv.Itoa(code)).Inc()
	if err != nil && code < http.StatusInternalServerError && code != http.StatusTooManyRequests {
		return err, nil
	}
	return refused, err
}

func (s *Stage) append(ctx context.Context, tenantID string, size int64, source Source) (refused, err error) {
	t, err := s.enter(tenantID)
	if err != nil {
		return nil, err
	}
	joined := false
	defer func() {
		if !joined {
			t.groups.Leave()
		}
	}()
	came := s.now().Truncate(time.Millisecond)
	charge := s.inflight.Admit(t.id)
	size = min(size, s.set.MaxInflightBytes/2)
	if err := charge.Await(ctx, s.set.InflightWait, size, true); err != nil {
		charge.Release()
		return nil, err
	}
	room := remotewrite.NewRoom(int(size), size, s.set.MaxInflightBytes, func(more int64) error {
		alone, err := charge.Try(more)
		if alone {
			return &remotewrite.DenseError{Message: int(size), Room: s.set.MaxInflightBytes}
		}
		return err
	})
	limits := s.runtime.Current(ctx).Of(t.id)
	k := t.learning(limits)
	b, err := source(k.Generation, t.rules(k, came), room)
	if err == nil {
		// Nobody can divide these samples: beyond the burst they would be refused for ever.
		err = t.spend(limits, b, limits.IngestionBurst)
	}
	if err != nil {
		charge.Release()
		return nil, err
	}
	charge.Settle(costRequest + b.Bytes)
	refused = partial(b)
	joined, err = s.keep(ctx, t, group.Request{Batch: b, Charge: charge}, came)
	return refused, err
}

package rulefn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/store/queue"
)

// messageVersion is the version of messages.
const messageVersion = 1

// message is the work of one invocation: groups of one tenant, by the keys of their states, and the
// time until which they are evaluated. It is a hint: every tick finds what is due by itself.
type message struct {
	Version int       `json:"version"`
	Tenant  string    `json:"tenant"`
	ETag    string    `json:"etag"` // of the tenant's rules
	At      time.Time `json:"at"`
	Groups  []string  `json:"groups"`
}

// ErrMessage reports a message that no version of this program has sent.
var ErrMessage = errors.New("this is no message with rule groups")

// dispatch sends work to other invocations. Messages of the same groups are in one message group
// of the queue, so that no two invocations evaluate them at once.
func (r *Runner) dispatch(ctx context.Context, at time.Time, all []work) error {
	var out []queue.Message
	// Groups stay in their order, so that those of a namespace mostly stay together.
	var parts []work
	for _, w := range all {
		n, from := 0, 0
		for i, g := range w.groups {
			if i > from && n+g.Len() > r.set.MaxRules {
				parts = append(parts, work{w.tenant, w.etag, w.groups[from:i]})
				n, from = 0, i
			}
			n += g.Len()
		}
		parts = append(parts, work{w.tenant, w.etag, w.groups[from:]})
	}
	for _, w := range parts {
		m := message{Version: messageVersion, Tenant: w.tenant, ETag: w.etag, At: at.UTC()}
		for _, g := range w.groups {
			m.Groups = append(m.Groups, g.key)
		}
		body, err := json.Marshal(m)
		if err != nil {
			return w.wrap(err)
		}
		same, one := sha256.Sum256([]byte(w.tenant+"/"+m.Groups[0])), sha256.Sum256(body)
		out = append(out, queue.Message{Body: string(body), Group: hex.EncodeToString(same[:16]), Deduplication: hex.EncodeToString(one[:])})
	}
	if err := r.Queue.Send(ctx, out...); err != nil {
		return fmt.Errorf("send %d messages with rule groups: %w", len(out), err)
	}
	return nil
}

// Work evaluates the groups of a message. What fails is due again at the next tick, so a message
// need not be delivered again. Errors: ErrMessage, of one that must not be ignored.
func (r *Runner) Work(ctx context.Context, body []byte) error {
	begin := r.Now()
	w, at, err := r.receive(ctx, body)
	var sum Report
	if len(w.groups) > 0 {
		var failed error
		sum, failed = r.all(ctx, []work{w}, at)
		err = errors.Join(err, failed)
	}
	r.note(ctx, sum, w.rules(), r.Now().Sub(begin), err)
	return err
}

// receive returns the work that a message names, and the time until which it is to be done, also if
// a part of it could not be found.
func (r *Runner) receive(ctx context.Context, body []byte) (w work, at time.Time, err error) {
	var m message
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return w, at, fmt.Errorf("%w: %w", ErrMessage, err)
	}
	if id, err := tenant.Parse(m.Tenant); m.Version != messageVersion || err != nil || id != m.Tenant || m.At.IsZero() || len(m.Groups) == 0 {
		return w, at, fmt.Errorf("%w: version %d, tenant %q, time %s, %d groups", ErrMessage, m.Version, m.Tenant, m.At, len(m.Groups))
	}
	w = work{tenant: m.Tenant, etag: m.ETag}
	t, err := r.load(ctx, m.Tenant, m.ETag)
	if err != nil {
		return w, at, w.wrap(err)
	}
	gone, err := r.removed(ctx, m.Tenant, t)
	named := map[string]bool{}
	for _, k := range m.Groups {
		named[k] = true
	}
	for _, g := range slices.Concat(gone, t.groups) {
		if named[g.key] {
			w.groups = append(w.groups, g)
		}
	}
	return w, m.At, w.wrap(err)
}

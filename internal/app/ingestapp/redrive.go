package ingestapp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/ingest/message"
	"github.com/promlake/promlake/internal/store/queue"
)

// RedriveSettings of a run.
type RedriveSettings struct {
	From    queue.Receiver // the dead-letter queue
	To      queue.Sender   // nil: only look
	Discard bool           // delete what cannot be read
	Max     int            // messages; 0 is all
}

// Redrive moves the messages of a dead-letter queue. It deletes a message from that queue only after
// the other queue has accepted it, so no message is lost. A message that is moved twice changes no
// query result. The text has a line for each message and its fate, also after an error; it is empty
// if an error came before the first message.
func Redrive(ctx context.Context, s RedriveSettings, now func() time.Time) (text string, err error) {
	r := &redrive{RedriveSettings: s, seen: map[string]bool{}}
	if err = r.run(ctx); err != nil && len(r.found) == 0 {
		return "", err // whether there are dead letters is not known
	}
	return r.text(now()), err
}

type redrive struct {
	RedriveSettings

	seen  map[string]bool  // by message
	stay  []queue.Received // hidden until the end, so that nobody sees them twice
	found []deadLetter
	empty bool // no message was left to look at
}

// deadLetter is a message and what became of it.
type deadLetter struct {
	queue.Received
	message    *message.Message // nil: unreadable
	unreadable error            // why
	fate       string
}

// Fates of messages.
const (
	fateMoved     = "moved"
	fateReadable  = "readable"
	fateStays     = "unreadable, stays"
	fateDiscarded = "unreadable, discarded"
	fateFailed    = "not moved, stays"
	fateTwice     = "moved, but stays too"
)

const (
	// emptyAfter is the time without a message after which the dead-letter queue counts as empty.
	// It is long enough for SQS to query all of its servers.
	emptyAfter = 3 * time.Second
	// hidden is the visibility timeout of a message while it is moved, or until all messages
	// have been read.
	hidden = 15 * time.Minute
	// releasing is the time that the release of one message takes, at most: requests have ten.
	releasing = 2 * time.Millisecond
)

// inTime reports whether the context's deadline leaves time for a batch, and for the release of
// what stays.
func (r *redrive) inTime(ctx context.Context) bool {
	end, ok := ctx.Deadline()
	return !ok || time.Until(end) > 2*emptyAfter+time.Duration(len(r.stay))*releasing
}

// run receives the messages and handles one after another, until shortly before the context's
// deadline. It releases those that stay in the queue, even after an error.
func (r *redrive) run(ctx context.Context) (err error) {
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		err = errors.Join(err, r.From.Release(ctx, 0, r.stay...))
	}()
	for (r.Max == 0 || len(r.found) < r.Max) && r.inTime(ctx) {
		n := queue.MaxBatch
		if r.Max > 0 {
			n = min(n, r.Max-len(r.found))
		}
		ms, err := r.From.Receive(ctx, n, emptyAfter, hidden)
		if err != nil {
			return fmt.Errorf("look for dead letters: %w", err)
		}
		if len(ms) == 0 {
			r.empty = true
			return nil
		}
		if err := r.take(ctx, ms); err != nil {
			return err
		}
	}
	return nil
}

// take decides about messages and moves those that can be.
func (r *redrive) take(ctx context.Context, ms []queue.Received) error {
	var move, drop []*deadLetter
	letters := make([]deadLetter, 0, len(ms))
	for _, m := range ms {
		if r.seen[m.ID] { // it came into sight again
			r.stay = append(r.stay, m)
			continue
		}
		r.seen[m.ID] = true
		letters = append(letters, deadLetter{Received: m})
		d := &letters[len(letters)-1]
		d.message, d.unreadable = message.Describe(m.Body)
		d.Body = "" // the letters are kept for the report
		switch {
		case d.unreadable != nil && r.Discard:
			d.fate, drop = fateDiscarded, append(drop, d)
		case d.unreadable != nil:
			d.fate, r.stay = fateStays, append(r.stay, d.Received)
		case r.To == nil:
			d.fate, r.stay = fateReadable, append(r.stay, d.Received)
		default:
			d.fate, move = fateMoved, append(move, d)
		}
	}
	err := errors.Join(r.move(ctx, ms, move), r.end(ctx, drop, fateStays))
	r.found = append(r.found, letters...)
	return err
}

// move sends messages, and then deletes them.
func (r *redrive) move(ctx context.Context, ms []queue.Received, move []*deadLetter) error {
	if len(move) == 0 {
		return nil
	}
	bodies := map[string]queue.Received{}
	for _, m := range ms {
		bodies[m.ID] = m
	}
	out := make([]queue.Message, len(move))
	var err error
	for i, d := range move {
		m := bodies[d.ID]
		body, rerr := message.Redriven(m.Body, m.Sent)
		out[i], err = queue.Message{Body: body}, errors.Join(err, rerr)
	}
	if err == nil {
		err = r.To.Send(ctx, out...)
	}
	if err != nil {
		for _, d := range move {
			d.fate, r.stay = fateFailed, append(r.stay, d.Received)
		}
		return fmt.Errorf("move dead letters: %w", err)
	}
	return r.end(ctx, move, fateTwice)
}

// end deletes messages; those that it cannot delete get the fate given.
func (r *redrive) end(ctx context.Context, letters []*deadLetter, otherwise string) error {
	if len(letters) == 0 {
		return nil
	}
	ms := make([]queue.Received, len(letters))
	for i, d := range letters {
		ms[i] = d.Received
	}
	if err := r.From.Delete(ctx, ms...); err != nil {
		for _, d := range letters {
			d.fate = otherwise
		}
		return fmt.Errorf("delete dead letters: %w", err)
	}
	return nil
}

// Fate is how many messages had the same fate.
type Fate struct {
	Fate     string `json:"fate"`
	Messages int    `json:"messages"`
	Samples  int64  `json:"samples"` // of those that can be read
}

// fates counts the messages by their fates, and leaves out those that no message had.
func (r *redrive) fates() []Fate {
	sums := []Fate{}
	for _, f := range []string{fateMoved, fateReadable, fateFailed, fateTwice, fateStays, fateDiscarded} {
		sum := Fate{Fate: f}
		for _, d := range r.found {
			if d.fate == f {
				sum.Messages++
				if d.message != nil {
					sum.Samples += int64(d.message.Holds.Samples())
				}
			}
		}
		if sum.Messages > 0 {
			sums = append(sums, sum)
		}
	}
	return sums
}

// problems are the reasons for which messages cannot be read.
func (r *redrive) problems() []string {
	all := []string{}
	for _, d := range r.found {
		if d.unreadable != nil {
			all = append(all, fmt.Sprintf("%s: %s", d.ID, d.unreadable))
		}
	}
	return all
}

// text is a line for each message, why some cannot be read, and the totals.
func (r *redrive) text(now time.Time) string {
	var b strings.Builder
	t := human.Table{Left: 3}
	t.Row("MESSAGE", "TENANT", "", "SAMPLES", "BYTES", "DELIVERIES", "AGE")
	for _, d := range r.found {
		tenant, count, bytes := "–", "–", "–"
		if d.message != nil {
			tenant, count, bytes = d.message.Tenant, strconv.Itoa(d.message.Holds.Samples()), human.Bytes(int64(d.message.Bytes))
		}
		t.Row(d.ID, tenant, d.fate, count, bytes, strconv.Itoa(d.Receives), now.Sub(d.Sent).Round(time.Second).String())
	}
	if len(r.found) > 0 {
		b.WriteString(t.String() + "\n")
	}
	for _, p := range r.problems() {
		b.WriteString(p + "\n")
	}
	sums := human.Table{Left: 1}
	for _, f := range r.fates() {
		sums.Row(f.Fate, human.Count(int64(f.Messages))+" messages", human.Count(f.Samples)+" samples")
	}
	if len(sums.Rows) == 0 {
		return "no dead letters\n"
	}
	return b.String() + sums.String()
}

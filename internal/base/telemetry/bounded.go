package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	maxText     = 8 << 10 // bytes of a text of a record
	burst       = 100     // records of one message at once
	perSecond   = 10      // records of one message that follow
	maxMessages = 1000    // whose rates are known
)

// bounded is a handler that cuts long texts and leaves out records of a message beyond a rate:
// requests, rules and lines of tenants cause records, and their names are in them. Records of level
// debug are only cut.
type bounded struct {
	next  slog.Handler
	rates *rates
}

// rates are those of all messages of a log, by their texts.
type rates struct {
	mu sync.Mutex
	of map[string]*message
}

// message is what is known of a message.
type message struct {
	records *rate.Limiter
	leftOut int // since the last record
}

// Enabled implements slog.Handler.
func (b *bounded) Enabled(ctx context.Context, l slog.Level) bool { return b.next.Enabled(ctx, l) }

// WithGroup implements slog.Handler.
func (b *bounded) WithGroup(name string) slog.Handler {
	return &bounded{b.next.WithGroup(name), b.rates}
}

// WithAttrs implements slog.Handler.
func (b *bounded) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &bounded{b.next.WithAttrs(shortened(attrs)), b.rates}
}

// Handle implements slog.Handler.
func (b *bounded) Handle(ctx context.Context, r slog.Record) error {
	ok, leftOut := true, 0
	if r.Level > slog.LevelDebug {
		ok, leftOut = b.rates.take(r.Message, r.Time)
	}
	if !ok {
		return nil
	}
	out := slog.NewRecord(r.Time, r.Level, cut(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(short(a))
		return true
	})
	if leftOut > 0 {
		out.AddAttrs(slog.Int("left_out", leftOut))
	}
	return b.next.Handle(ctx, out)
}

// take reports whether a record may be written, and how many of its message were left out before.
func (r *rates) take(text string, at time.Time) (ok bool, leftOut int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.of[text]
	if m == nil {
		if len(r.of) >= maxMessages {
			clear(r.of)
		}
		m = &message{records: rate.NewLimiter(perSecond, burst)}
		r.of[text] = m
	}
	if !m.records.AllowN(at, 1) {
		m.leftOut++
		return false, 0
	}
	leftOut, m.leftOut = m.leftOut, 0
	return true, leftOut
}

func shortened(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = short(a)
	}
	return out
}

// short returns an attribute whose texts are cut.
func short(a slog.Attr) slog.Attr {
	v := a.Value.Resolve()
	switch v.Kind() {
	case slog.KindString:
		v = slog.StringValue(cut(v.String()))
	case slog.KindGroup:
		v = slog.GroupValue(shortened(v.Group())...)
	case slog.KindAny:
		text := ""
		switch x := v.Any().(type) {
		case error:
			text = x.Error()
		case fmt.Stringer:
			text = x.String()
		case []string:
			text = strings.Join(x, ", ")
		}
		if len(text) > maxText {
			v = slog.StringValue(cut(text))
		}
	default:
	}
	return slog.Attr{Key: cut(a.Key), Value: v}
}

// cut returns a text, or its beginning with the number of its bytes.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:maxText], ""), len(text))
}

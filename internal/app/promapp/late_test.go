package promapp

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLate: a logger over late logs what the logger itself logs.
func TestLate(t *testing.T) {
	var want, got bytes.Buffer
	o := &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
	for to, l := range map[*bytes.Buffer]*slog.Logger{&want: slog.New(slog.NewTextHandler(&want, o)), &got: slog.New(&late{Handler: slog.NewTextHandler(&got, o)})} {
		l.Info("a", "x", 1)
		group := l.With("file", "f", "group", "g")
		rule := group.With("name", "r")
		other := group.With("name", "s").WithGroup("in").With("y", 2)
		rule.Warn("b", "err", "e")
		other.Info("c", "z", 3)
		rule.Debug("not logged")
		group.With().Info("d")
		require.NotEmpty(t, to.String())
	}
	require.Equal(t, want.String(), got.String())
	require.Contains(t, got.String(), "in.y=2")
}

// TestLateFormatsNothing: attributes that are not logged are not formatted.
func TestLateFormatsNothing(t *testing.T) {
	var out bytes.Buffer
	l := slog.New(&late{Handler: slog.NewTextHandler(&out, nil)})
	formatted := 0
	a := slog.Any("name", counted{&formatted})
	l.With(a)
	require.Zero(t, formatted)
	l.With(a).Info("x")
	require.Equal(t, 1, formatted)
	require.Contains(t, out.String(), "name=counted")
}

// counted counts how often it is formatted.
type counted struct{ n *int }

func (c counted) String() string {
	*c.n++
	return "counted"
}

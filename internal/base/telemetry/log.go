package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// LogSettings are the level and format of the log. The tags are those of package settings.
type LogSettings struct {
	Level  string `name:"log.level" basic:"" default:"info" enum:"debug,info,warn,error" help:"Least severe level that is logged, one of ${enum}." when:"Set debug to see why something fails."`
	Format string `name:"log.format" default:"text" enum:"text,json" help:"Format of a log line, one of ${enum}." when:"Set json if a log system parses lines. Functions have json by default."`
}

// Validate returns an error for an unknown level or format.
func (s LogSettings) Validate() error {
	_, err := NewLogger(io.Discard, s)
	return err
}

// NewLogger returns a structured logger that writes one line per record to w. Texts of more than
// 8 KiB are cut. Above level debug, a message is written 100 times, then 10 times a second; the
// attribute "left_out" of the next line counts the others.
func NewLogger(w io.Writer, s LogSettings) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.Level)); err != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error: %w", s.Level, err)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch s.Format {
	case "text":
		return slog.New(&bounded{slog.NewTextHandler(w, opts), &rates{of: map[string]*message{}}}), nil
	case "json":
		return slog.New(&bounded{slog.NewJSONHandler(w, opts), &rates{of: map[string]*message{}}}), nil
	default:
		return nil, fmt.Errorf("log format %q: want text or json", s.Format)
	}
}

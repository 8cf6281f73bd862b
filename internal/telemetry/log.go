package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// LogSettings are the level and format of the log. The tags are command-line flags.
type LogSettings struct {
	Level  string `name:"log.level" enum:"debug,info,warn,error" required:"" help:"Least severe level that is logged: ${enum}."`
	Format string `name:"log.format" enum:"text,json" required:"" help:"Format of log lines: ${enum}."`
}

// DefaultLogSettings logs text from level info on.
func DefaultLogSettings() LogSettings { return LogSettings{Level: "info", Format: "text"} }

// Validate returns an error for an unknown level or format.
func (s LogSettings) Validate() error {
	_, err := NewLogger(io.Discard, s)
	return err
}

// NewLogger returns a structured logger that writes one line per record to w.
func NewLogger(w io.Writer, s LogSettings) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s.Level)); err != nil {
		return nil, fmt.Errorf("log level %q: want debug, info, warn or error: %w", s.Level, err)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch s.Format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	default:
		return nil, fmt.Errorf("log format %q: want text or json", s.Format)
	}
}

package process

import (
	"errors"
	"fmt"
	"time"

	"github.com/promlake/promlake/internal/auth"
	"github.com/promlake/promlake/internal/lambda"
	"github.com/promlake/promlake/internal/selfwrite"
	"github.com/promlake/promlake/internal/telemetry"
)

// Settings are those of any Promlake process, whichever stages it runs. The tags are its command-line flags.
type Settings struct {
	Listen string `name:"listen" help:"Address to serve HTTP on. Port 0 lets the kernel choose one."`
	Store  string `name:"store" help:"Object store: file://./dir, file:///dir or s3://bucket/prefix?region=…&endpoint=…."`

	CheckStore bool `name:"store-check" negatable:"" help:"Check at the start that the store honours conditional writes and lists what was written, and end if it does not. It writes, lists and deletes keys below promlake-probe/. A Lambda function does not check."`

	Log  telemetry.LogSettings `embed:""`
	Auth auth.Settings         `embed:""`
	Self selfwrite.Settings    `embed:""`
	Site auth.SiteSettings     `embed:""`

	ReadHeaderTimeout time.Duration `name:"http.read-header-timeout" help:"Longest wait for a request's header."`
	ReadTimeout       time.Duration `name:"http.read-timeout" help:"Longest wait for a whole request, body included."`
	IdleTimeout       time.Duration `name:"http.idle-timeout" help:"Idle connections are closed after this time."`
	WriteStallTimeout time.Duration `name:"http.write-stall-timeout" help:"A client must read something of an answer within this time, or its connection is closed."`
	MaxHeaderBytes    int           `name:"http.max-header-bytes" type:"bytes" help:"Largest request header."`
	MaxConnections    int           `name:"web.max-connections" help:"Open connections. One more takes the place of the one that has been idle longest, or gets a 503 if none is."`
	ShutdownTimeout   time.Duration `name:"shutdown-timeout" help:"Longest time from a signal to the exit: requests are answered and buffers flushed in it."`

	Lambda lambda.Settings `kong:"-"` // of Function; the functions' programs have flags for it

	MemoryLimit int64 `name:"memory-limit" type:"bytes" placeholder:"BYTES" help:"Memory of the process, DuckDB's included. Beyond it requests are refused and the most expensive ones are ended. Default: three quarters of what the cgroup or the machine has. In a function: soft limit of the Go heap alone."`
	GCPercent   int   `name:"gc-percent" placeholder:"PERCENT" help:"Garbage collector target in percent. 0 leaves it to GOGC."`
}

// DefaultSettings serve a directory to this machine only. A function logs JSON, whose attributes CloudWatch can search.
func DefaultSettings() Settings {
	s := Settings{
		Listen:            "127.0.0.1:9009",
		Store:             "file://./data",
		CheckStore:        true,
		Log:               telemetry.DefaultLogSettings(),
		Self:              selfwrite.DefaultSettings(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       3 * time.Minute,
		WriteStallTimeout: time.Minute,
		MaxHeaderBytes:    256 << 10,
		MaxConnections:    512,
		ShutdownTimeout:   30 * time.Second,
		Lambda:            lambda.DefaultSettings(),
	}
	if lambda.Running() {
		s.Log.Format = "json"
	}
	return s
}

// SettingsOf are the defaults of a program that is one part of Promlake: its own metrics carry its name.
func SettingsOf(program string) Settings {
	s := DefaultSettings()
	s.Self.Job = program
	return s
}

// Validate reports every setting that makes no sense, by the name of its flag.
func (s Settings) Validate() error {
	var errs []error
	if s.Listen == "" {
		errs = append(errs, errors.New("listen: want host:port, got nothing"))
	}
	if s.Store == "" {
		errs = append(errs, errors.New("store: want a URL, got nothing"))
	}
	errs = append(errs, s.Log.Validate(), s.Auth.Validate(), s.Self.Validate(), s.Site.Validate())
	for _, d := range []struct {
		name string
		v    time.Duration
	}{
		{"http.read-header-timeout", s.ReadHeaderTimeout},
		{"http.read-timeout", s.ReadTimeout},
		{"http.idle-timeout", s.IdleTimeout},
		{"http.write-stall-timeout", s.WriteStallTimeout},
		{"shutdown-timeout", s.ShutdownTimeout},
	} {
		if d.v <= 0 {
			errs = append(errs, fmt.Errorf("%s: want more than 0s, got %s", d.name, d.v))
		}
	}
	if s.MaxHeaderBytes < 4096 {
		errs = append(errs, fmt.Errorf("http.max-header-bytes: want at least 4096, got %d", s.MaxHeaderBytes))
	}
	if s.MaxConnections < 1 {
		errs = append(errs, fmt.Errorf("web.max-connections: want 1 or more, got %d", s.MaxConnections))
	}
	if s.MemoryLimit < 0 {
		errs = append(errs, fmt.Errorf("memory-limit: want 0 or more bytes, got %d", s.MemoryLimit))
	}
	if s.GCPercent < 0 {
		errs = append(errs, fmt.Errorf("gc-percent: want 0 or more, got %d", s.GCPercent))
	}
	return errors.Join(errs...)
}

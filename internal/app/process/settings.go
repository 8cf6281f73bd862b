package process

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"go.yaml.in/yaml/v2"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/app/selfwrite"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/base/telemetry"
)

// Settings are those of any Promlake process, whichever stages it runs. The tags are those of
// package settings.
type Settings struct {
	Listen string `name:"listen" default:"127.0.0.1:9009" help:"Address to serve HTTP on, host:port. Port 0 lets the kernel choose one." when:"Set it to serve other machines; set --auth.tokens too."`
	Store  string `name:"store" default:"file://./data" help:"Object store: file://./dir, file:///dir, s3://bucket/prefix?region=…&endpoint=…, gs://bucket/prefix or azblob://container/prefix?account=…." when:"Always, except to try Promlake out."`

	CheckStore bool `name:"store-check" negatable:"" default:"true" help:"Check at the start that the store honours conditional writes and lists what was written, below promlake-probe/. Functions do not check." when:"Turn it off if the process may not delete objects. query-fn has it off by default."`

	WebFile string `name:"web.config.file" basic:"" placeholder:"FILE" help:"File with TLS, client certificates, users and headers of the server, in Prometheus' form. Its TLS and client certificates are Flight SQL's, too. Default: none." when:"Set it to serve other machines without a proxy."`

	Log  telemetry.LogSettings `embed:""`
	Auth auth.Settings         `embed:""`
	Self selfwrite.Settings    `embed:""`
	Site auth.SiteSettings     `embed:""`

	Timeouts `embed:""`

	MaxHeaderBytes  int           `name:"http.max-header-bytes" type:"bytes" default:"256KiB" min:"4KiB" help:"Largest request header." when:"Rarely."`
	MaxConnections  int           `name:"web.max-connections" default:"512" min:"1" help:"Open connections. One more replaces the oldest without a complete header, or else the one that has been idle longest. If all are busy, it gets a 503, except for the health endpoints." when:"Raise it if many senders get 503."`
	ShutdownTimeout time.Duration `name:"shutdown-timeout" default:"30s" above:"0" help:"Longest time from a signal to the exit. Requests are answered and buffers flushed within it." when:"Keep it below the time after which your supervisor kills."`

	Flags  flags.Values    `kong:"-"` // of the process, for its stages: which were given
	Lambda lambda.Settings `kong:"-"` // of Function; the functions' programs have flags for it

	// HeapReserve is the size up to which the heap grows without a collection, if GCPercent is set.
	HeapReserve int64 `kong:"-"`

	MemoryLimit int64 `name:"memory-limit" type:"bytes" placeholder:"BYTES" default:"0" min:"0" help:"Memory of the process, including DuckDB's. Beyond it requests are refused and the most expensive ones are ended. 0 is three quarters of what the cgroup or the machine has. In a function: the soft limit of the Go heap alone." when:"Set it if other processes share the machine."`
	GCPercent   int   `name:"gc-percent" placeholder:"PERCENT" default:"0" min:"0" help:"Garbage collector target, in percent. 0 takes GOGC or, if that is not set, a target that follows how much of the heap a collection reads, and how much is allocated." when:"Rarely."`
}

// Timeouts are those of connections. The tags are those of package settings.
type Timeouts struct {
	ReadHeaderTimeout time.Duration `name:"http.read-header-timeout" default:"10s" above:"0" help:"Longest wait for a request's header." when:"Rarely."`
	ReadTimeout       time.Duration `name:"http.read-timeout" default:"1m" above:"0" help:"Longest wait for a whole request, including its body." when:"Raise it for senders on slow links."`
	IdleTimeout       time.Duration `name:"http.idle-timeout" default:"3m" above:"0" help:"Time after which an idle connection is closed." when:"Keep it above that of a load balancer."`
	WriteStallTimeout time.Duration `name:"http.write-stall-timeout" default:"1m" above:"0" help:"Time within which a client must read some of an answer. Otherwise its connection is closed." when:"Raise it for clients on slow links."`
}

// DefaultSettings serve a directory to this machine only. A function logs JSON, whose attributes
// CloudWatch can search.
func DefaultSettings() Settings {
	s := settings.Default[Settings]()
	if lambda.Running() {
		s.Log.Format = "json"
	}
	return s
}

// SettingsOf returns the defaults of a program that runs one part of Promlake: its name is the job
// of its own metrics.
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
	errs = append(errs, settings.Check(s), s.Auth.Validate(), s.Self.Validate(), s.Site.Validate())
	return errors.Join(errs...)
}

// WebFile is the file of --web.config.file: TLS, client certificates, users and headers of a
// server, in the form of Prometheus
// (https://prometheus.io/docs/prometheus/latest/configuration/https). Certificates and users are
// read again when the files change.
type WebFile struct {
	Users bool // requests need the name and the password of a user

	path string
	tls  bool
}

// readWebFile reads a file; "" is none.
func readWebFile(path string) (WebFile, error) {
	if path == "" {
		return WebFile{}, nil
	}
	config, err := webConfig(path)
	if err != nil {
		return WebFile{}, fmt.Errorf("read --web.config.file: %w", err)
	}
	t := config.TLSConfig
	return WebFile{Users: len(config.Users) > 0, path: path, tls: t.TLSCert+t.TLSCertPath != ""}, nil
}

func webConfig(path string) (web.Config, error) {
	config := web.Config{TLSConfig: web.TLSConfig{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS13}}
	if err := web.Validate(path); err != nil {
		return config, fmt.Errorf("%s: %w", path, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return config, err
	}
	err = yaml.Unmarshal(text, &config)
	config.TLSConfig.SetDirectory(filepath.Dir(path))
	return config, err
}

// TLS returns the configuration of TLS for a listener of a protocol, such as "h2"; nil without TLS.
func (f WebFile) TLS(protocol string) *tls.Config {
	if !f.tls {
		return nil
	}
	return &tls.Config{NextProtos: []string{protocol}, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		file, err := webConfig(f.path)
		if err != nil {
			return nil, err
		}
		config, err := web.ConfigToTLSConfig(&file.TLSConfig)
		if err == nil {
			config.NextProtos = []string{protocol}
		}
		return config, err
	}}
}

// Package server runs the programs under test, each on a loopback port and in a folder of its own.
package server

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/promlake/promlake/tests/bench/wire"
)

// Names of the servers, in the order of the table.
const (
	Promlake        = "promlake"
	VictoriaMetrics = "victoria-metrics"
	Prometheus      = "prometheus"
)

// Spec describes how to start a server, and its endpoints.
type Spec struct {
	Name   string
	Binary string // path of the program
	// addr is host:port, dir an absolute folder for all of its files
	Args      func(addr, dir string) []string
	Files     map[string]string // written into dir before the start: name → content
	WritePath string            // remote_write endpoint
	Paths     map[string]string // endpoints of other protocols; empty: lines over TCP
	// Flags of the addresses that only a protocol has, with their equals sign, by protocol.
	AddrFlags map[string]string
	ReadyPath string // answers 200 when the server is ready
	addrFlag  string // of the address of WritePath; empty: the server's own
}

// Store is the directory of the store of a Promlake that has its files in dir.
func Store(dir string) string { return filepath.Join(dir, "store") }

// Specs returns all servers: Promlake at serverBin, and the peers in peersDir as fetch-peers.sh
// unpacks them.
func Specs(serverBin, peersDir string) []Spec {
	peer := func(name string) string { return filepath.Join(peersDir, "usr", "bin", name) }
	return []Spec{
		{
			Name: Promlake, Binary: serverBin, WritePath: "/api/v1/write", ReadyPath: "/-/ready",
			Paths:     paths("otlp", "/opentelemetry/v1/metrics", "datadog", "/api/v2/series"),
			AddrFlags: map[string]string{"graphite": "--graphite.listen="},
			Args: func(addr, dir string) []string {
				return []string{"serve", "--listen", addr, "--store", "file://" + Store(dir)}
			},
		},
		{
			Name: VictoriaMetrics, Binary: peer("victoria-metrics"), WritePath: "/api/v1/write", ReadyPath: "/health",
			// Versions that do not have one of the paths refuse all of it.
			Paths:     paths("otlp", "/opentelemetry/v1/metrics", "datadog", "/datadog/api/v2/series"),
			AddrFlags: map[string]string{"graphite": "-graphiteListenAddr=", "opentsdb": "-opentsdbHTTPListenAddr="},
			Args: func(addr, dir string) []string {
				return []string{"-httpListenAddr=" + addr, "-storageDataPath=" + filepath.Join(dir, "data"), "-loggerLevel=WARN"}
			},
		},
		{
			Name: Prometheus, Binary: peer("prometheus"), WritePath: "/api/v1/write", ReadyPath: "/-/ready",
			Files: map[string]string{"prometheus.yml": "global: {}\n"},
			Args: func(addr, dir string) []string {
				return []string{
					"--web.listen-address=" + addr, "--config.file=" + filepath.Join(dir, "prometheus.yml"),
					"--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.enable-remote-write-receiver", "--log.level=warn",
				}
			},
		},
	}
}

// paths returns the endpoints that Promlake and VictoriaMetrics both have, and more: pairs of
// protocol and path.
func paths(more ...string) map[string]string {
	out := map[string]string{
		"influx": "/write", "text": "/api/v1/import/prometheus", "opentsdb": "/api/put", "jsonlines": "/api/v1/import", "graphite": "",
		"csv": "/api/v1/import/csv?" + url.Values{"format": {wire.CSVFormat}}.Encode(),
	}
	for pair := range slices.Chunk(more, 2) {
		out[pair[0]] = pair[1]
	}
	return out
}

// Taking returns the server as one that takes a protocol other than remote_write at its WriteURL.
// The second result is false if the server does not have it.
func (s Spec) Taking(protocol string) (Spec, bool) {
	path, ok := s.Paths[protocol]
	s.WritePath, s.addrFlag = path, s.AddrFlags[protocol]
	return s, ok
}

// With returns the server as one that starts with further arguments.
func (s Spec) With(further ...string) Spec {
	base := s.Args
	s.Args = func(addr, dir string) []string { return append(base(addr, dir), further...) }
	return s
}

// Over returns Promlake as a server over another store than the folder's.
func (s Spec) Over(store string) Spec {
	s.Args = func(addr, _ string) []string { return []string{"serve", "--listen", addr, "--store", store} }
	return s
}

// Flags choose servers.
type Flags struct {
	ServerBin  string   `default:"bin/promlake" help:"Promlake's binary."`
	PeersDir   string   `default:".cache/peers" help:"Folder with the peers, as fetch-peers.sh leaves it."`
	PeersBin   string   `env:"PEERS_BIN" type:"existingfile" help:"VictoriaMetrics' binary, instead of the one in the folder."`
	Prometheus string   `name:"prometheus-bin" env:"PROMETHEUS_BIN" type:"existingfile" help:"Prometheus' binary, instead of the one in the folder."`
	Only       []string `enum:"promlake,victoria-metrics,prometheus" help:"Run only these servers (promlake, victoria-metrics, prometheus)."`
}

// ErrNone reports that no chosen server is installed.
var ErrNone = errors.New("no server to run; build bin/promlake or fetch the peers with make bench-peers")

// Installed returns the chosen servers among those with the names whose programs exist, or ErrNone.
// It writes to standard error which are missing.
func (f Flags) Installed(names ...string) ([]Spec, error) {
	var specs []Spec
	for _, s := range Specs(f.ServerBin, f.PeersDir) {
		if !slices.Contains(names, s.Name) || len(f.Only) > 0 && !slices.Contains(f.Only, s.Name) {
			continue
		}
		if s.Name == VictoriaMetrics && f.PeersBin != "" {
			s.Binary = f.PeersBin
		}
		if s.Name == Prometheus && f.Prometheus != "" {
			s.Binary = f.Prometheus
		}
		if err := s.Installed(); err != nil {
			fmt.Fprintf(os.Stderr, "bench: skipped: %v\n", err)
			continue
		}
		specs = append(specs, s)
	}
	if len(specs) == 0 {
		return nil, ErrNone
	}
	return specs, nil
}

// Installed returns nil if the server's program exists and is executable, else the reason.
func (s Spec) Installed() error {
	info, err := os.Stat(s.Binary)
	if err != nil {
		return fmt.Errorf("find %s: %w", s.Name, err)
	}
	if info.IsDir() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("find %s: %s is not a program", s.Name, s.Binary)
	}
	return nil
}

// Package server runs the programs under test: each on a loopback port and a folder of its own, and never as a service.
package server

import (
	"fmt"
	"os"
	"path/filepath"
)

// Names of the servers, in the order of the table.
const (
	Promlake        = "promlake"
	VictoriaMetrics = "victoria-metrics"
	Prometheus      = "prometheus"
)

// Spec says how to start a server and where it listens for what.
type Spec struct {
	Name      string
	Binary    string                          // path of the program
	Args      func(addr, dir string) []string // addr is host:port, dir an absolute folder for all of its files
	Files     map[string]string               // written into dir before the start: name → content
	WritePath string                          // remote_write endpoint
	ReadyPath string                          // answers 200 once the server takes requests
}

// Specs returns the servers that can be compared: Promlake at serverBin, and the peers in peersDir as fetch-peers.sh unpacks them.
func Specs(serverBin, peersDir string) []Spec {
	peer := func(name string) string { return filepath.Join(peersDir, "usr", "bin", name) }
	return []Spec{
		{
			Name: Promlake, Binary: serverBin, WritePath: "/api/v1/write", ReadyPath: "/-/ready",
			Args: func(addr, dir string) []string {
				return []string{"serve", "--listen", addr, "--store", "file://" + filepath.Join(dir, "store")}
			},
		},
		{
			Name: VictoriaMetrics, Binary: peer("victoria-metrics"), WritePath: "/api/v1/write", ReadyPath: "/health",
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

// Installed returns nil if the server's program is there and may be run, else why not.
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

// Package demo feeds a running Promlake with the metrics of the machine that it runs on, and with
// Promlake's own, as a real remote_write sender would. A newcomer sees live data without installing
// anything. The machine's metrics carry the names and labels of Prometheus' node_exporter, so that
// its dashboards fit.
package demo

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Settings of the feeder. The tags are its command-line flags.
type Settings struct {
	Interval time.Duration `name:"demo.interval" help:"Time between two rounds of demo samples."`
	Instance string        `name:"demo.instance" placeholder:"NAME" help:"Label instance of the machine's metrics. Default: the host's name."`
	ProcPath string        `name:"demo.proc-path" help:"Where the proc filesystem is mounted."`
}

// DefaultSettings send every 5 s.
func DefaultSettings() Settings {
	return Settings{Interval: 5 * time.Second, ProcPath: "/proc"}
}

// Validate reports what makes no sense.
func (s Settings) Validate() error {
	var errs []error
	if s.Interval < 100*time.Millisecond {
		errs = append(errs, fmt.Errorf("demo interval: want at least 100ms, got %s", s.Interval))
	}
	if s.ProcPath == "" {
		errs = append(errs, errors.New("demo proc path: want a directory, got nothing"))
	}
	return errors.Join(errs...)
}

// instance returns the instance label of the machine's metrics.
func (s Settings) instance() (string, error) {
	if s.Instance != "" {
		return s.Instance, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read host name: %w", err)
	}
	return name, nil
}

// Package demo feeds a running Promlake with the metrics of its machine, and with Promlake's own,
// through remote_write, so that a newcomer sees live data without installing anything. The
// machine's metrics have the names and labels of Prometheus' node_exporter, so that its dashboards
// work.
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
	Instance string        `name:"demo.instance" placeholder:"NAME" help:"Value of the label instance of the machine's metrics. Default: the host's name."`
	ProcPath string        `name:"demo.proc-path" help:"Mount point of the proc filesystem."`
}

// DefaultSettings returns settings that send every 5 s.
func DefaultSettings() Settings {
	return Settings{Interval: 5 * time.Second, ProcPath: "/proc"}
}

// Validate returns an error for every invalid setting.
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

// Package demo is an example of a configuration for a newcomer, who sees live data without
// installing anything: a running Promlake scrapes itself and the metrics of its machine, which it
// serves by the names and labels of Prometheus' node_exporter, so that its dashboards work.
package demo

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/promlake/promlake/internal/base/settings"
)

// Settings of the demo. The tags are those of package settings.
type Settings struct {
	Interval time.Duration `name:"demo.interval" default:"5s" min:"100ms" help:"Time between two scrapes of the demo." when:"Lower it for livelier graphs."`
	Instance string        `name:"demo.instance" placeholder:"NAME" help:"Label instance of the machine's metrics. Default: the host name." when:"Set it to hide the host name."`
	ProcPath string        `name:"demo.proc-path" default:"/proc" help:"Mount point of the proc filesystem." when:"Set it in a container that mounts the host's elsewhere."`
}

// Validate returns an error for every invalid setting, by the name of its flag.
func (s Settings) Validate() error {
	errs := []error{settings.Check(s)}
	if s.ProcPath == "" {
		errs = append(errs, errors.New("demo.proc-path: want a directory, got nothing"))
	}
	return errors.Join(errs...)
}

// hasMachine reports whether the machine's metrics can be read.
func (s Settings) hasMachine() bool {
	_, err := NewCollector(s.ProcPath, slog.New(slog.DiscardHandler), time.Now)
	return err == nil
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

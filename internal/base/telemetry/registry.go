// Package telemetry provides what a Promlake process reports about itself: its build, its metrics
// registry, its log and the metrics of its HTTP handlers. It is independent of the stages.
package telemetry

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// NewRegistry returns a registry with metrics of the Go runtime, the process and the build
// (promlake_build_info, constant 1).
func NewRegistry(b Build) (*prometheus.Registry, error) {
	reg := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		buildInfo(b),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("register runtime metrics: %w", err)
		}
	}
	return reg, nil
}

func buildInfo(b Build) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "promlake_build_info",
		Help:        "Constant 1, labelled by the version, revision and Go version that Promlake was built from.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.GoVersion},
	}, func() float64 { return 1 })
}

// version is the release's version. The linker sets it:
//
//	go build -ldflags "-X github.com/promlake/promlake/internal/base/telemetry.version=1.2.3"
var version = "dev"

// Build identifies the running program.
type Build struct {
	Version string // release version, "dev" in a plain go build
	// VCS commit, with "-modified" if the tree was not clean; "unknown" outside a checkout
	Revision  string
	GoVersion string // the toolchain's version
}

// ReadBuild returns the build of the running program.
func ReadBuild() Build {
	b := Build{Version: version, Revision: "unknown", GoVersion: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	modified := false
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			modified = s.Value == "true"
		}
	}
	if modified && b.Revision != "unknown" {
		b.Revision += "-modified"
	}
	return b
}

// String returns the line that `promlake version` prints.
func (b Build) String() string {
	return strings.Join([]string{"promlake", b.Version, "(revision " + b.Revision + ", " + b.GoVersion + ")"}, " ")
}

package telemetry

import (
	"runtime"
	"runtime/debug"
	"strings"
)

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

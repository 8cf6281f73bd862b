package main

import (
	"fmt"

	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/base/telemetry"
)

type versionCmd struct{}

// Run prints one line.
func (versionCmd) Run(io flags.Streams) error {
	_, err := fmt.Fprintln(io.Out, telemetry.ReadBuild())
	return err
}

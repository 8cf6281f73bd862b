package proc

import (
	"os/exec"
	"time"
)

// poll is how often a running process is looked at.
const poll = 5 * time.Millisecond

// Run runs a command and returns the peak of its resident set in bytes, short of what it reached in
// its last milliseconds. The resources that the system returns with its end are no use: they include
// the memory of this process, which the command was forked from.
func Run(cmd *exec.Cmd) (peak int64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	looks := time.NewTicker(poll)
	defer looks.Stop()
	for {
		select {
		case err := <-over:
			return peak, err
		case <-looks.C:
			if now, err := Read(cmd.Process.Pid); err == nil {
				peak = max(peak, int64(now.PeakRSS))
			}
		}
	}
}

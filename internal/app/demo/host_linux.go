package demo

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sys/unix"
)

var unameInfo = desc("node_uname_info", "Labeled system information as provided by the uname system call.",
	"sysname", "release", "version", "machine", "nodename", "domainname")

func statFilesystem(path string) (filesystemStat, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return filesystemStat{}, fmt.Errorf("read statistics of %s: %w", path, err)
	}
	block := float64(s.Bsize)
	return filesystemStat{
		size:      float64(s.Blocks) * block,
		free:      float64(s.Bfree) * block,
		avail:     float64(s.Bavail) * block,
		files:     float64(s.Files),
		filesFree: float64(s.Ffree),
	}, nil
}

func collectUname(e emit) error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("read uname: %w", err)
	}
	text := unix.ByteSliceToString
	e(unameInfo, prometheus.GaugeValue, 1,
		text(u.Sysname[:]), text(u.Release[:]), text(u.Version[:]), text(u.Machine[:]), text(u.Nodename[:]), text(u.Domainname[:]))
	return nil
}

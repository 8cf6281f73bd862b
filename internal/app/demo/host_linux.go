package demo

import (
	"fmt"

	"golang.org/x/sys/unix"
)

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
	e.gauge("node_uname_info", "Labeled system information as provided by the uname system call.", 1,
		"sysname", text(u.Sysname[:]), "release", text(u.Release[:]), "version", text(u.Version[:]),
		"machine", text(u.Machine[:]), "nodename", text(u.Nodename[:]), "domainname", text(u.Domainname[:]))
	return nil
}

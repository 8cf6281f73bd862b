package demo

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/procfs"
)

var (
	// ignoredTypes matches filesystems without storage, and remote ones, whose statistics block
	// while their server is unavailable.
	ignoredTypes = regexp.MustCompile(`^(autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|fusectl|hugetlbfs|iso9660|mqueue|nsfs|overlay|proc|procfs|pstore|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs|nfs4?|cifs|smb3|ceph|glusterfs|9p|fuse\..*)$`)
	// ignoredMounts matches mounts without data of their own, or of containers.
	ignoredMounts = regexp.MustCompile(`^/(dev|proc|run/credentials/.+|sys|var/lib/(docker|containers)/.+)($|/)`)

	fsSize      = filesystemDesc("size_bytes", "Filesystem size in bytes.")
	fsFree      = filesystemDesc("free_bytes", "Filesystem free space in bytes.")
	fsAvail     = filesystemDesc("avail_bytes", "Filesystem space available to non-root users in bytes.")
	fsFiles     = filesystemDesc("files", "Filesystem total file nodes.")
	fsFilesFree = filesystemDesc("files_free", "Filesystem total free file nodes.")
	fsReadonly  = filesystemDesc("readonly", "Filesystem read-only status.")
	fsError     = filesystemDesc("device_error", "Whether an error occurred while getting statistics for the given device.")
)

func filesystemDesc(name, help string) *prometheus.Desc {
	return desc("node_filesystem_"+name, help, "device", "mountpoint", "fstype")
}

// filesystemStat is the state of a mounted filesystem; space is in bytes.
type filesystemStat struct {
	size, free, avail float64
	files, filesFree  float64
}

func collectFilesystems(fs procfs.FS, stat func(path string) (filesystemStat, error), e emit) error {
	self, err := fs.Self()
	if err != nil {
		return fmt.Errorf("find own process: %w", err)
	}
	mounts, err := self.MountInfo()
	if err != nil {
		return fmt.Errorf("read mounts: %w", err)
	}
	// Of filesystems mounted at the same place only one is reported: programs see the upper one.
	seen := map[[3]string]bool{}
	for _, m := range mounts {
		key := [3]string{m.Source, m.MountPoint, m.FSType}
		if seen[key] || ignoredTypes.MatchString(m.FSType) || ignoredMounts.MatchString(m.MountPoint) {
			continue
		}
		seen[key] = true
		emitFilesystem(m, stat, e)
	}
	return nil
}

func emitFilesystem(m *procfs.MountInfo, stat func(string) (filesystemStat, error), e emit) {
	gauge := func(d *prometheus.Desc, v float64) { e(d, prometheus.GaugeValue, v, m.Source, m.MountPoint, m.FSType) }
	s, err := stat(m.MountPoint)
	gauge(fsError, truth(err != nil && !errors.Is(err, errUnsupported)))
	if err != nil {
		return
	}
	_, readonly := m.Options["ro"]
	gauge(fsSize, s.size)
	gauge(fsFree, s.free)
	gauge(fsAvail, s.avail)
	gauge(fsFiles, s.files)
	gauge(fsFilesFree, s.filesFree)
	gauge(fsReadonly, truth(readonly))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

// packages writes the packages for Debian and RPM.
func (r release) packages(p program) error {
	notices := filepath.Join("dist", p.machine, "LICENSES.txt")
	if err := os.WriteFile(notices, p.notices, 0o644); err != nil {
		return err
	}
	file := func(source, destination, kind string, mode os.FileMode) *files.Content {
		return &files.Content{Source: source, Destination: destination, Type: kind, FileInfo: &files.ContentFileInfo{Mode: mode, MTime: r.time}}
	}
	for _, kind := range []struct {
		name     string
		packager nfpm.Packager
		user     string // has useradd, for systems without systemd-sysusers
	}{{"deb", deb.Default, "passwd"}, {"rpm", rpm.DefaultRPM, "/usr/sbin/useradd"}} {
		info := nfpm.WithDefaults(&nfpm.Info{
			Name: "promlake", Arch: p.goarch, Platform: "linux", Version: r.version, MTime: r.time,
			Section: "database", Priority: "optional", License: "Apache-2.0", Vendor: "Promlake", Homepage: source,
			Maintainer:  "Promlake <" + source + "/issues>",
			Description: "Time-series database for Prometheus metrics on object storage\nOne program receives, scrapes, compacts and queries metrics. Its only state is\na directory or a bucket of Parquet files.",
			Overridables: nfpm.Overridables{
				Depends: []string{kind.user}, Recommends: []string{"ca-certificates", "tzdata"},
				Contents: files.Contents{
					file(p.path, "/usr/bin/promlake", files.TypeFile, 0o755),
					file("deploy/packages/promlake.yaml", "/etc/promlake/promlake.yaml", files.TypeConfigNoReplace, 0o644),
					file("deploy/systemd/promlake.service", "/usr/lib/systemd/system/promlake.service", files.TypeFile, 0o644),
					file("deploy/packages/sysusers.conf", "/usr/lib/sysusers.d/promlake.conf", files.TypeFile, 0o644),
					file("LICENSE", "/usr/share/doc/promlake/copyright", files.TypeFile, 0o644),
					file(notices, "/usr/share/doc/promlake/LICENSES.txt", files.TypeFile, 0o644),
					file("CHANGELOG.md", "/usr/share/doc/promlake/CHANGELOG.md", files.TypeFile, 0o644),
					file("dist/completion/bash", "/usr/share/bash-completion/completions/promlake", files.TypeFile, 0o644),
					file("dist/completion/zsh", "/usr/share/zsh/site-functions/_promlake", files.TypeFile, 0o644),
					file("dist/completion/fish", "/usr/share/fish/vendor_completions.d/promlake.fish", files.TypeFile, 0o644),
				},
				Scripts: nfpm.Scripts{
					PostInstall: "deploy/packages/postinstall.sh", PreRemove: "deploy/packages/preremove.sh", PostRemove: "deploy/packages/postremove.sh",
				},
				RPM: nfpm.RPM{BuildHost: "promlake", Group: "Applications/Databases"},
			},
		})
		if err := nfpm.PrepareForPackager(info, kind.name); err != nil {
			return err
		}
		// The names of both conventions, such as promlake_0.1.0_amd64.deb.
		f, err := os.Create(filepath.Join(out, kind.packager.ConventionalFileName(info)))
		if err != nil {
			return err
		}
		if err := cmp.Or(kind.packager.Package(info, f), f.Close()); err != nil {
			return errors.Join(err, os.Remove(f.Name()))
		}
	}
	return nil
}

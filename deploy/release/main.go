// Command release makes of built programs what people install: archives, packages for Debian and
// RPM, images, a bill of materials and licences, in dist/release. Equal programs give equal bytes.
// make release and make release-push run it in the root of the repository.
//
// usage: release pack VERSION UNIX-SECONDS | push REGISTRY/NAME VERSION
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	out    = "dist/release" // what is published
	images = "dist/images"  // an OCI layout with the images of all architectures, which push reads
)

// release is what all files have in common.
type release struct {
	version string
	time    time.Time // of the commit, in UTC
}

// program is promlake for one architecture.
type program struct {
	goarch   string // as Go, Debian and OCI name it
	machine  string // as uname and dist/ name it
	path     string
	notices  []byte // licences of all that is linked
	revision string // of the commit
}

// file returns the path of a file in dist/release that is for one architecture.
func (r release) file(p program, suffix string) string {
	return filepath.Join(out, fmt.Sprintf("promlake-%s-linux-%s%s", r.version, p.goarch, suffix))
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "pack":
		seconds, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return fmt.Errorf("parse the time of the commit: %w", err)
		}
		return pack(release{args[1], time.Unix(seconds, 0).UTC()})
	case len(args) == 3 && args[0] == "push":
		return push(args[1], args[2])
	default:
		return errors.New("usage: release pack VERSION UNIX-SECONDS | push REGISTRY/NAME VERSION")
	}
}

// pack fills dist/release, where the wheels are already.
func pack(r release) error {
	programs := []program{{goarch: "amd64", machine: "x86_64"}, {goarch: "arm64", machine: "arm64"}}
	for i := range programs {
		p := &programs[i]
		p.path = filepath.Join("dist", p.machine, "wheel/promlake")
		if err := r.describe(p); err != nil {
			return err
		}
		if err := r.archive(*p); err != nil {
			return fmt.Errorf("pack the archive for %s: %w", p.goarch, err)
		}
		if err := r.packages(*p); err != nil {
			return fmt.Errorf("pack the packages for %s: %w", p.goarch, err)
		}
		for _, fn := range []string{"ingest-fn", "compact-fn", "query-fn"} {
			zip, err := os.ReadFile(filepath.Join("dist", p.machine, fn+".zip"))
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(out, fmt.Sprintf("%s-%s-%s.zip", fn, r.version, p.goarch)), zip, 0o644); err != nil {
				return err
			}
		}
	}
	if err := r.images(programs); err != nil {
		return err
	}
	return sums()
}

// entry is a file or, if its name ends in a slash, a directory of an archive. It belongs to root
// unless it has an owner.
type entry struct {
	name  string
	mode  int64
	owner int
	body  []byte
}

// writeTar writes entries, all as old as the commit.
func (r release) writeTar(w io.Writer, entries []entry) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Uid: e.owner, Gid: e.owner, Size: int64(len(e.body)), ModTime: r.time, Typeflag: tar.TypeReg}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(e.body); err != nil {
			return err
		}
	}
	return t.Close()
}

// archive writes the tar.gz with the program and what belongs to it.
func (r release) archive(p program) error {
	dir := fmt.Sprintf("promlake-%s-linux-%s/", r.version, p.goarch)
	entries := []entry{{name: dir, mode: 0o755}, {name: dir + "LICENSES.txt", mode: 0o644, body: p.notices}}
	for name, source := range map[string]string{
		"promlake": p.path, "LICENSE": "LICENSE", "README.md": "README.md", "CHANGELOG.md": "CHANGELOG.md",
		"promlake.service": "deploy/systemd/promlake.service",
	} {
		body, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		mode := int64(0o644)
		if name == "promlake" {
			mode = 0o755
		}
		entries = append(entries, entry{name: dir + name, mode: mode, body: body})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := r.writeTar(z, entries); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(r.file(p, ".tar.gz"), b.Bytes(), 0o644)
}

// sums writes SHA256SUMS over all files of dist/release.
func sums() error {
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var b strings.Builder
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(body), e.Name())
		fmt.Printf("  %-52s %6.1f MiB\n", e.Name(), float64(len(body))/(1<<20))
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(b.String()), 0o644)
}

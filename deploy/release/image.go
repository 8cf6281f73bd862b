package main

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const (
	source = "https://github.com/promlake/promlake"
	user   = 65532 // by convention that of images without a shell
)

// tag is the version as a tag, which has no plus sign.
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// images writes the image of each program as a tar that `docker load`, `podman load` and skopeo
// read, and all into one OCI layout.
func (r release) images(programs []program) error {
	if err := os.RemoveAll(images); err != nil {
		return err
	}
	all, err := layout.Write(images, empty.Index)
	if err != nil {
		return err
	}
	base, err := r.base()
	if err != nil {
		return err
	}
	for _, p := range programs {
		img, err := r.image(p, base)
		if err != nil {
			return fmt.Errorf("make the image for %s: %w", p.goarch, err)
		}
		if err := all.AppendImage(img, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: p.goarch})); err != nil {
			return err
		}
		if err := r.imageTar(p, img); err != nil {
			return fmt.Errorf("write the image for %s: %w", p.goarch, err)
		}
	}
	return nil
}

// base returns the layer below the program: the user, certificates, time zones, and the directories
// that are volumes.
func (r release) base() (v1.Layer, error) {
	var certificates bytes.Buffer
	for root := range bundle.Roots() {
		// A root with a constraint that PEM cannot express would be trusted without it.
		if root.Constraint == nil {
			if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
				return nil, err
			}
		}
	}
	root, err := goroot()
	if err != nil {
		return nil, err
	}
	zones, err := os.ReadFile(filepath.Join(root, "lib/time/zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	return r.layer([]entry{
		{name: "data/", mode: 0o750, owner: user},
		{name: "etc/", mode: 0o755},
		{name: "etc/group", mode: 0o644, body: fmt.Appendf(nil, "root:x:0:\npromlake:x:%d:\n", user)},
		{name: "etc/passwd", mode: 0o644, body: fmt.Appendf(nil, "root:x:0:0:root:/:/sbin/nologin\npromlake:x:%d:%d:Promlake:/data:/sbin/nologin\n", user, user)},
		{name: "etc/ssl/", mode: 0o755},
		{name: "etc/ssl/certs/", mode: 0o755},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, body: certificates.Bytes()},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/", mode: 0o755},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/zoneinfo.zip", mode: 0o644, body: zones},
	})
}

// layer returns a layer. Zstandard makes it a fifth smaller than gzip; Docker reads it since 23.0,
// containerd since 1.5, podman since 3. The program zstd has a tenth fewer bytes than Go's packages.
func (r release) layer(entries []entry) (v1.Layer, error) {
	var b bytes.Buffer
	if err := r.writeTar(&b, entries); err != nil {
		return nil, err
	}
	zstd := exec.Command("zstd", "-19", "-T0", "--quiet", "--stdout")
	zstd.Stdin, zstd.Stderr = &b, os.Stderr
	compressed, err := zstd.Output()
	if err != nil {
		return nil, fmt.Errorf("compress a layer: %w", err)
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(compressed)), nil },
		tarball.WithMediaType(types.OCILayerZStd))
}

// image returns the image of a program.
func (r release) image(p program, base v1.Layer) (v1.Image, error) {
	body, err := os.ReadFile(p.path)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return nil, err
	}
	top, err := r.layer([]entry{
		{name: "usr/", mode: 0o755},
		{name: "usr/bin/", mode: 0o755},
		{name: "usr/bin/promlake", mode: 0o755, body: body},
		{name: "usr/share/", mode: 0o755},
		{name: "usr/share/doc/", mode: 0o755},
		{name: "usr/share/doc/promlake/", mode: 0o755},
		{name: "usr/share/doc/promlake/LICENSE", mode: 0o644, body: licence},
		{name: "usr/share/doc/promlake/LICENSES.txt", mode: 0o644, body: p.notices},
	})
	if err != nil {
		return nil, err
	}
	img, err := mutate.Append(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON),
		mutate.Addendum{Layer: base, MediaType: types.OCILayerZStd, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "certificates and time zones"}},
		mutate.Addendum{Layer: top, MediaType: types.OCILayerZStd, History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "promlake " + r.version}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.Architecture, config.OS, config.Created = p.goarch, "linux", v1.Time{Time: r.time}
	config.Config = v1.Config{
		User: fmt.Sprintf("%d:%d", user, user), WorkingDir: "/data", StopSignal: "SIGTERM",
		Entrypoint: []string{"/usr/bin/promlake"}, Cmd: []string{"serve"},
		Env: []string{
			"PATH=/usr/bin", "HOME=/data", "ZONEINFO=/usr/share/zoneinfo.zip",
			"PROMLAKE_STORE=file:///data/store", "PROMLAKE_LISTEN=:9009",
		},
		ExposedPorts: map[string]struct{}{"9009/tcp": {}},
		// Both stay writable where the root is not.
		Volumes: map[string]struct{}{"/data": {}, "/tmp": {}},
		Healthcheck: &v1.HealthConfig{
			Test:     []string{"CMD", "/usr/bin/promlake", "check", "ready"},
			Interval: 30 * time.Second, Timeout: 10 * time.Second, StartPeriod: time.Minute, Retries: 3,
		},
		Labels: map[string]string{
			"org.opencontainers.image.title":         "Promlake",
			"org.opencontainers.image.description":   "Time-series database for Prometheus metrics on object storage",
			"org.opencontainers.image.version":       r.version,
			"org.opencontainers.image.revision":      p.revision,
			"org.opencontainers.image.created":       r.time.Format(time.RFC3339),
			"org.opencontainers.image.source":        source,
			"org.opencontainers.image.url":           source,
			"org.opencontainers.image.documentation": source + "/blob/main/docs/index.md",
			"org.opencontainers.image.licenses":      "Apache-2.0",
		},
	}
	return mutate.ConfigFile(img, config)
}

// imageTar writes an image as an OCI layout in a tar, with the manifest.json of older Dockers.
func (r release) imageTar(p program, img v1.Image) error {
	dir, err := os.MkdirTemp("", "promlake-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	one, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	ref := "promlake:" + tag(r.version)
	if err := one.AppendImage(img, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: p.goarch}), layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag(r.version), "io.containerd.image.name": "docker.io/library/" + ref,
	})); err != nil {
		return err
	}
	manifest, err := img.Manifest()
	if err != nil {
		return err
	}
	old := struct {
		Config   string
		RepoTags []string
		Layers   []string
	}{Config: "blobs/sha256/" + manifest.Config.Digest.Hex, RepoTags: []string{ref}}
	for _, l := range manifest.Layers {
		old.Layers = append(old.Layers, "blobs/sha256/"+l.Digest.Hex)
	}
	text, err := json.Marshal([]any{old})
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), text, 0o644); err != nil {
		return err
	}
	var entries []entry
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case d.IsDir():
			entries = append(entries, entry{name: name + "/", mode: 0o755})
			return nil
		}
		body, err := os.ReadFile(path)
		entries = append(entries, entry{name: name, mode: 0o644, body: body})
		return err
	})
	if err != nil {
		return err
	}
	f, err := os.Create(r.file(p, ".image.tar"))
	if err != nil {
		return err
	}
	return errors.Join(r.writeTar(f, entries), f.Close())
}

// push sends the images of the last pack to a registry, under the tag of the version and, if that
// is a release, under latest. Credentials are those of docker login.
func push(repository, version string) error {
	index, err := layout.ImageIndexFromPath(images)
	if err != nil {
		return fmt.Errorf("read the images of make release: %w", err)
	}
	tags := []string{tag(version)}
	if !strings.Contains(version, "-") {
		tags = append(tags, "latest")
	}
	for _, t := range tags {
		ref, err := name.ParseReference(repository + ":" + t)
		if err != nil {
			return err
		}
		if err := remote.WriteIndex(ref, index, remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
			return fmt.Errorf("push %s: %w", ref, err)
		}
		digest, err := index.Digest()
		if err != nil {
			return err
		}
		fmt.Printf("  %s@%s\n", ref, digest)
	}
	return nil
}

// goroot returns the directory of the toolchain that runs this program.
func goroot() (string, error) {
	text, err := exec.Command("go", "env", "GOROOT").Output()
	return strings.TrimSpace(string(text)), err
}

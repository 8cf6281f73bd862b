package main

import (
	"archive/tar"
	"bytes"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// inRoot changes into a directory that looks like the repository after make functions and make
// wheel, with small programs.
func inRoot(t *testing.T) {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	t.Chdir(t.TempDir())
	for _, n := range []string{"go.mod", "go.sum", "LICENSE", "README.md", "CHANGELOG.md", "deploy", "third_party"} {
		must(t, os.Symlink(filepath.Join(root, n), n))
	}
	must(t, os.MkdirAll("web/dist/assets", 0o755))
	must(t, os.WriteFile(pageLicences, []byte("uplot 1.6.32 (MIT)\n\nPermission is hereby granted\n"), 0o644))
	must(t, os.MkdirAll("dist/completion", 0o755))
	for _, shell := range []string{"bash", "zsh", "fish"} {
		must(t, os.WriteFile("dist/completion/"+shell, []byte(shell), 0o644))
	}
	must(t, os.WriteFile("main.go", []byte("package main\n\nfunc main() { println(\"hello\") }\n"), 0o644))
	for goarch, machine := range map[string]string{"amd64": "x86_64", "arm64": "arm64"} {
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", "dist/"+machine+"/wheel/promlake", "main.go")
		build.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOARCH="+goarch, "GOFLAGS=")
		if text, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, fn := range []string{"ingest-fn", "compact-fn", "query-fn"} {
			must(t, os.WriteFile("dist/"+machine+"/"+fn+".zip", []byte(fn), 0o644))
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// packed packs and returns all files of dist/release by name.
func packed(t *testing.T) map[string]string {
	t.Helper()
	must(t, os.RemoveAll(out))
	must(t, os.MkdirAll(out, 0o755))
	must(t, run([]string{"pack", "0.1.0-dev+abc", "1790000000"}))
	entries, err := os.ReadDir(out)
	must(t, err)
	files := map[string]string{}
	for _, e := range entries {
		body, err := os.ReadFile(filepath.Join(out, e.Name()))
		must(t, err)
		files[e.Name()] = string(body)
	}
	return files
}

// TestPack: equal programs give equal files, and the images survive a registry.
func TestPack(t *testing.T) {
	inRoot(t)
	first, second := packed(t), packed(t)
	for _, want := range []string{
		"promlake-0.1.0-dev+abc-linux-amd64.tar.gz", "promlake-0.1.0-dev+abc-linux-arm64.tar.gz",
		"promlake-0.1.0-dev+abc-linux-amd64.image.tar", "promlake-0.1.0-dev+abc-linux-arm64.image.tar",
		"promlake-0.1.0-dev+abc-linux-amd64.cdx.json", "promlake-0.1.0-dev+abc-linux-arm64.cdx.json",
		"promlake_0.1.0~dev+abc_amd64.deb", "promlake_0.1.0~dev+abc_arm64.deb",
		"promlake-0.1.0~dev+abc-1.x86_64.rpm", "promlake-0.1.0~dev+abc-1.aarch64.rpm",
		"ingest-fn-0.1.0-dev+abc-amd64.zip", "query-fn-0.1.0-dev+abc-arm64.zip", "SHA256SUMS",
	} {
		if first[want] == "" {
			t.Errorf("no file %s", want)
		}
	}
	for n := range first {
		if first[n] != second[n] {
			t.Errorf("two builds of %s differ", n)
		}
	}
	for _, want := range []string{`"pkg:npm/uplot@1.6.32"`, `"duckdb"`, `"glibc"`, `LGPL-2.1-or-later`} {
		if !strings.Contains(first["promlake-0.1.0-dev+abc-linux-arm64.cdx.json"], want) {
			t.Errorf("the bill of materials lacks %s", want)
		}
	}

	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	repository := strings.TrimPrefix(server.URL, "http://") + "/promlake"
	must(t, run([]string{"push", repository, "0.1.0-dev+abc"}))
	for _, arch := range []string{"amd64", "arm64"} {
		ref, err := name.ParseReference(repository + ":0.1.0-dev-abc")
		must(t, err)
		img, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		must(t, err)
		config, err := img.ConfigFile()
		must(t, err)
		if config.Architecture != arch || config.Config.User != "65532:65532" || config.Config.Healthcheck == nil {
			t.Errorf("the image for %s has %+v", arch, config)
		}
		program, err := os.ReadFile(filepath.Join("dist", map[string]string{"amd64": "x86_64", "arm64": "arm64"}[arch], "wheel/promlake"))
		must(t, err)
		files := map[string][]byte{}
		for r := tar.NewReader(mutate.Extract(img)); ; {
			h, err := r.Next()
			if err == io.EOF {
				break
			}
			must(t, err)
			files[h.Name], err = io.ReadAll(r)
			must(t, err)
		}
		if !bytes.Equal(files["usr/bin/promlake"], program) {
			t.Errorf("the image for %s has another program", arch)
		}
		if n := bytes.Count(files["etc/ssl/certs/ca-certificates.crt"], []byte("BEGIN CERTIFICATE")); n < 100 {
			t.Errorf("the image for %s has %d certificates", arch, n)
		}
	}
}

// TestIdentify: each licence by a sentence of it, in any form of its lines.
func TestIdentify(t *testing.T) {
	for text, want := range map[string]string{
		"Apache License\n   Version 2.0, January 2004":                                                         "Apache-2.0",
		"Redistribution and use in source and binary forms …\n3. Neither the name of the copyright holder nor": "BSD-3-Clause",
		"Redistribution and use in source and binary forms, with or without modification":                      "BSD-2-Clause",
		"Permission is hereby granted, free of charge, to any person\nobtaining a copy":                        "MIT",
		"All rights reserved.": "",
	} {
		if got := strings.Join(identify(text), " "); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

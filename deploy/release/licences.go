package main

import (
	"bytes"
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// component is something that is linked into a program, with the texts of its licences.
type component struct {
	name, version, purl string
	texts               []string
}

// licences know a licence by a sentence of its text, in lower case and with single spaces.
var licences = []struct {
	id   string
	text *regexp.Regexp
}{
	{"Apache-2.0", regexp.MustCompile(`apache license,? version 2\.0|www\.apache\.org/licenses/license-2\.0`)},
	{"MPL-2.0", regexp.MustCompile(`mozilla public license,? (version|v\.) ?2\.0`)},
	{"BSD-3-Clause", regexp.MustCompile(`redistribution and use in source and binary forms.*(neither the name|names? of .{0,80}contributors may)`)},
	{"BSD-2-Clause", regexp.MustCompile(`redistribution and use in source and binary forms`)},
	{"MIT", regexp.MustCompile(`permission is hereby granted, free of charge, to any person obtaining`)},
	{"ISC", regexp.MustCompile(`permission to use, copy, modify,? and(/or)? distribute this software for any purpose`)},
	{"CC0-1.0", regexp.MustCompile(`cc0 1\.0 universal`)},
	{"Unlicense", regexp.MustCompile(`this is free and unencumbered software released into the public domain`)},
	{"LGPL-2.1-or-later", regexp.MustCompile(`gnu lesser general public license`)},
	{"GPL-3.0-or-later WITH GCC-exception-3.1", regexp.MustCompile(`gcc runtime library exception`)},
}

// identify returns the identifiers of the licences in a text.
func identify(text string) []string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	var ids []string
	for _, l := range licences {
		if l.text.MatchString(text) && !(l.id == "BSD-2-Clause" && slices.Contains(ids, "BSD-3-Clause")) {
			ids = append(ids, l.id)
		}
	}
	return ids
}

// describe writes the bill of materials of a program and sets its notices.
func (r release) describe(p *program) error {
	info, err := buildinfo.ReadFile(p.path)
	if err != nil {
		return err
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			p.revision = s.Value
		}
	}
	components, err := modules(info)
	if err != nil {
		return err
	}
	system, err := libraries(info.GoVersion, p.machine)
	if err != nil {
		return err
	}
	components = append(components, system...)
	page, err := packagesOfPage()
	if err != nil {
		return err
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.time.Format("2006-01-02T15:04:05Z"),
		Component: &cdx.Component{
			Type: cdx.ComponentTypeApplication, Name: "promlake", Version: r.version, BOMRef: "promlake",
			PackageURL: "pkg:golang/github.com/promlake/promlake@" + r.version, Licenses: choices([]string{"Apache-2.0"}),
		},
	}
	list := []cdx.Component{}
	users := map[string][]string{} // of each text
	for _, c := range components {
		ids := map[string]bool{}
		for _, text := range c.texts {
			for _, id := range identify(text) {
				ids[id] = true
			}
			users[text] = append(users[text], c.name+" "+c.version)
		}
		if len(ids) == 0 {
			return fmt.Errorf("%s %s has no licence that package release knows", c.name, c.version)
		}
		list = append(list, cdx.Component{
			Type: cdx.ComponentTypeLibrary, Name: c.name, Version: c.version, BOMRef: c.purl, PackageURL: c.purl,
			Licenses: choices(slices.Sorted(maps.Keys(ids))),
		})
	}
	for _, c := range page {
		list = append(list, c)
	}
	bom.Components = &list
	var b, text bytes.Buffer
	if err := cdx.NewBOMEncoder(&b, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	fmt.Fprintf(&text, "Licences of what is linked into promlake %s for %s.\n\n", r.version, p.goarch)
	for _, licence := range slices.SortedFunc(maps.Keys(users), func(a, b string) int { return cmp.Compare(users[a][0], users[b][0]) }) {
		fmt.Fprintf(&text, "%s\n%s\n\n%s\n\n", strings.Repeat("=", 80), strings.Join(users[licence], "\n"), licence)
	}
	embedded, err := os.ReadFile(pageLicences)
	if err != nil {
		return err
	}
	fmt.Fprintf(&text, "%s\nThe page for browsers contains:\n\n%s", strings.Repeat("=", 80), embedded)
	p.notices = text.Bytes()
	return os.WriteFile(r.file(*p, ".cdx.json"), b.Bytes(), 0o644)
}

func choices(ids []string) *cdx.Licenses {
	if len(ids) == 1 && !strings.Contains(ids[0], " ") {
		return &cdx.Licenses{{License: &cdx.License{ID: ids[0]}}}
	}
	return &cdx.Licenses{{Expression: strings.Join(ids, " AND ")}}
}

// modules returns the Go modules of a program.
func modules(info *buildinfo.BuildInfo) ([]component, error) {
	list := exec.Command("go", "list", "-m", "-json", "all")
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list modules: %w", err)
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("read the list of modules: %w", err)
		}
		dirs[m.Path] = m.Dir
	}
	var out []component
	for _, m := range info.Deps {
		if m.Replace != nil && strings.HasPrefix(m.Replace.Path, ".") {
			continue // a folder of third_party, under Promlake's own licence
		}
		texts, err := texts(dirs[m.Path])
		if err != nil {
			return nil, fmt.Errorf("licences of %s: %w", m.Path, err)
		}
		if m.Replace != nil {
			m = m.Replace
		}
		out = append(out, component{m.Path, m.Version, "pkg:golang/" + m.Path + "@" + m.Version, texts})
	}
	return out, nil
}

var licenceFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|unlicense)([.-].*)?$`)

// texts returns the licences in a directory and below, sorted by path, each once.
func texts(dir string) (out []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || !licenceFile.MatchString(d.Name()) || strings.HasSuffix(d.Name(), ".go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if t := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")); !slices.Contains(out, t) {
			out = append(out, t)
		}
		return err
	})
	return out, err
}

// libraries returns what is linked besides Go modules: Go's library, DuckDB, and the libraries of C
// and C++, which Debian's packages for development contain.
func libraries(goVersion, machine string) ([]component, error) {
	texts := func(names ...string) (out []string, err error) {
		for _, n := range names {
			text, e := os.ReadFile(n)
			out, err = append(out, strings.TrimSpace(string(text))), errors.Join(err, e)
		}
		return out, err
	}
	root, err := goroot()
	if err != nil {
		return nil, err
	}
	standard, err := texts(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	duckdb, err := texts("third_party/duckdb/NOTICES.txt")
	if err != nil {
		return nil, err
	}
	version := regexp.MustCompile(`^Licences of DuckDB (\S+) `).FindStringSubmatch(duckdb[0])[1]
	out := []component{
		{"go", strings.TrimPrefix(goVersion, "go"), "pkg:golang/std@" + strings.TrimPrefix(goVersion, "go"), standard},
		{"duckdb", version, "pkg:github/duckdb/duckdb@v" + version, duckdb},
	}
	compiler, err := exec.Command("gcc", "-dumpversion").Output()
	if err != nil {
		return nil, err
	}
	suffix := ""
	if host, err := exec.Command("uname", "-m").Output(); err != nil {
		return nil, err
	} else if native := strings.Replace(strings.TrimSpace(string(host)), "aarch64", "arm64", 1); native != machine {
		suffix = map[string]string{"arm64": "-arm64-cross", "x86_64": "-amd64-cross"}[machine]
	}
	for _, c := range []struct{ name, dev string }{{"glibc", "libc6-dev"}, {"gcc", "libstdc++-" + strings.TrimSpace(string(compiler)) + "-dev"}} {
		version, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", c.dev+suffix).Output()
		if err != nil {
			return nil, fmt.Errorf("find the version of %s: %w", c.dev+suffix, err)
		}
		copyright, err := texts("/usr/share/doc/" + c.dev + suffix + "/copyright")
		if err != nil {
			return nil, err
		}
		out = append(out, component{c.name, string(version), "pkg:deb/debian/" + c.name + "@" + string(version), copyright})
	}
	return out, nil
}

const pageLicences = "web/dist/assets/licenses.txt"

// packagesOfPage returns the npm packages in the page, from the file that its build writes.
func packagesOfPage() (out []cdx.Component, err error) {
	text, err := os.ReadFile(pageLicences)
	for _, m := range regexp.MustCompile(`(?m)^(@?[a-z0-9./-]+) (\d\S*) \(([A-Za-z0-9.-]+)\)$`).FindAllStringSubmatch(string(text), -1) {
		purl := "pkg:npm/" + strings.Replace(m[1], "@", "%40", 1) + "@" + m[2]
		out = append(out, cdx.Component{
			Type: cdx.ComponentTypeLibrary, Name: m[1], Version: m[2], BOMRef: purl, PackageURL: purl, Licenses: choices([]string{m[3]}),
		})
	}
	return out, err
}

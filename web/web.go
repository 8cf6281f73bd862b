// Package web holds the page that a browser gets at /: a client of the Prometheus API, bundled from
// src by build.mjs into dist, which the binary embeds.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"github.com/prometheus/prometheus/util/httputil"
)

// all: dist has only a hidden file until make has built the page.
//
//go:embed all:dist
var embedded embed.FS

// policy lets the page run its own script and ask its own server, and nothing else. uPlot and
// CodeMirror need no inline styles: they set styles from the script. Sources of frame-ancestors
// follow.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors "

const missing = "This binary was built without its page, because web/dist was empty. `make build` builds both.\nThe HTTP API is at api/v1/.\n"

// Handler serves the page: index.html at /, and what it loads below /assets/. Pages of the
// ancestors, sources of the Content-Security-Policy, may embed /?embed, which shows one panel and
// nothing that changes data. No page may embed another address.
func Handler(ancestors ...string) http.Handler {
	dist, err := fs.Sub(embedded, "dist")
	if err != nil {
		panic(err) // dist is a constant of this package
	}
	return serve(dist, ancestors...)
}

func serve(dist fs.FS, ancestors ...string) http.Handler {
	return httputil.CompressionHandler{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		frames := "'none'"
		if len(ancestors) > 0 && r.URL.Query().Has("embed") {
			frames = strings.Join(ancestors, " ")
		}
		h.Set("Content-Security-Policy", policy+frames)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		name := path.Clean("/" + r.URL.Path)[1:]
		if name == "" {
			name = "index.html"
		}
		body, err := fs.ReadFile(dist, name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && name == "index.html":
			http.Error(w, missing, http.StatusNotFound)
			return
		case err != nil:
			http.NotFound(w, r)
			return
		}
		// A browser keeps its copy and asks whether it is still the same.
		sum := sha256.Sum256(body)
		h.Set("ETag", `"`+hex.EncodeToString(sum[:12])+`"`)
		h.Set("Cache-Control", "no-cache")
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	})}
}

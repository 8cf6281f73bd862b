package app

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"

	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/demo"
	"github.com/promlake/promlake/internal/telemetry"
)

//go:embed landing.html
var landingHTML string

// page is the landing page as bytes. It implements process.Stage.
type page []byte

// landing builds the page that a browser meets at /.
func landing(context.Context, process.Parts) (process.Stage, error) {
	t, err := template.New("landing").Parse(landingHTML)
	if err != nil {
		return nil, fmt.Errorf("parse landing page: %w", err)
	}
	var b bytes.Buffer
	data := struct {
		Build    telemetry.Build
		Examples []demo.Example
	}{telemetry.ReadBuild(), demo.Examples()}
	if err := t.Execute(&b, data); err != nil {
		return nil, fmt.Errorf("write landing page: %w", err)
	}
	return page(b.Bytes()), nil
}

// Routes implements process.Stage.
func (p page) Routes() []process.Route {
	return []process.Route{{Pattern: "GET /{$}", Name: "/", Handler: p}}
}

func (p page) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'")
	// A client that went away needs no answer.
	_, _ = w.Write(p)
}

// Drain implements process.Stage.
func (page) Drain(context.Context) error { return nil }

// Close implements process.Stage.
func (page) Close() error { return nil }

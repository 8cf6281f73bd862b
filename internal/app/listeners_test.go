package app_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app"
	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/senders/lineprotocol"
)

// protocols are the listeners with an expression and its value for each sample of the lines that
// the documentation has.
var protocols = map[string]map[string]string{
	app.Graphite: {`{"servers.web01.load"}`: "0.7", `{"disk.used",host="web01",path="/"}`: "12.5"},
	app.Influx:   {`climate_temp{room="kitchen"}`: "20.5", `climate_open{room="kitchen"}`: "1"},
	app.OpenTSDB: {`{"sys.cpu.nice",host="web01",dc="lga"}`: "18"},
}

// documented returns the lines that the documentation has for a protocol: the first text in fences
// of its section.
func documented(t *testing.T, heading string) string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/listeners.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(doc), "\n## "+heading+"\n")
	require.True(t, ok)
	_, rest, _ := strings.Cut(section, "```\n")
	lines, _, _ := strings.Cut(rest, "```")
	return lines
}

// TestLines sends the lines of the documentation over TCP and UDP and reads them by PromQL, also
// after a restart.
func TestLines(t *testing.T) {
	s := settings.Default[app.ListenerSettings]()
	for _, l := range []*app.Lines{&s.Graphite.Lines, &s.Influx, &s.OpenTSDB} {
		l.Listen, l.Tenant, l.Interval = "127.0.0.1:0", "lines", time.Millisecond
		require.True(t, s.Enabled())
	}
	require.NoError(t, s.Validate())
	p := process.DefaultSettings()
	p.Store = "file://" + t.TempDir()
	in := ingest.DefaultSettings()
	open := func() (h http.Handler, l *app.Listeners, end func() error) {
		l = app.NewListeners(s, in.Lines)
		h, end, err := process.Open(t.Context(), p, slog.New(slog.DiscardHandler),
			ingestapp.New(nil, in, func(in *ingest.Stage) { l.WriteTo(in) }), queryapp.New(settings.Default[queryapp.Settings]()), l.Build)
		require.NoError(t, err)
		return h, l, end
	}
	has := func(h http.Handler, expr, value string) bool {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/query?time=1700000000&query="+url.QueryEscape(expr), http.NoBody)
		r.Header.Set("X-Scope-OrgID", "lines")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		return strings.Contains(w.Body.String(), `"value":[1700000000,"`+value+`"]`)
	}
	datagrams := map[string]string{
		app.Graphite: "over.udp 3 1700000000", app.Influx: "over udp=3 1700000000000000000", app.OpenTSDB: "put over:udp 1700000000 3",
	}
	received := map[string]string{app.Graphite: `{"over.udp"}`, app.Influx: "over_udp", app.OpenTSDB: `over:udp`}
	headings := map[string]string{app.Graphite: "Graphite", app.Influx: "InfluxDB", app.OpenTSDB: "OpenTSDB"}
	h, l, end := open()
	for name, samples := range protocols {
		tcp, err := net.Dial("tcp", l.Addr(name))
		require.NoError(t, err)
		_, err = io.WriteString(tcp, documented(t, headings[name]))
		require.NoError(t, err)
		udp, err := net.Dial("udp", l.Addr(name))
		require.NoError(t, err)
		require.Eventually(t, func() bool { // a datagram may be lost
			_, err = io.WriteString(udp, datagrams[name])
			require.NoError(t, err)
			for expr, value := range samples {
				if !has(h, expr, value) {
					return false
				}
			}
			return has(h, received[name], "3")
		}, 2*time.Minute, 10*time.Millisecond, name)
		require.NoError(t, tcp.Close())
		require.NoError(t, udp.Close())
	}
	require.NoError(t, end())
	h, _, end = open()
	for _, samples := range protocols {
		for expr, value := range samples {
			require.True(t, has(h, expr, value), expr)
		}
	}
	require.NoError(t, end())
}

func TestBadSettings(t *testing.T) {
	s := settings.Default[app.ListenerSettings]()
	require.False(t, s.Enabled())
	s.Influx.Tenant, s.OpenTSDB.Tenant = "a|b", "a|b"
	require.NoError(t, s.Validate(), "they are not listened for")
	s.Influx.Listen = "127.0.0.1:0"
	require.ErrorContains(t, s.Validate(), "influx.tenant: ")
	require.NotContains(t, s.Validate().Error(), "opentsdb")
	_, err := app.NewListeners(s, lineprotocol.Naming{}).Build(t.Context(), process.Parts{})
	require.ErrorContains(t, err, "it needs an ingest stage")
}

// TestAddressInUse: if one of the addresses cannot be had, the others are free again.
func TestAddressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	s := settings.Default[app.ListenerSettings]()
	s.Graphite.Listen, s.Influx.Listen = "127.0.0.1:0", taken.Addr().String()
	p := process.DefaultSettings()
	p.Store = "file://" + t.TempDir()
	l := app.NewListeners(s, lineprotocol.Naming{})
	_, _, err = process.Open(t.Context(), p, slog.New(slog.DiscardHandler),
		ingestapp.New(nil, ingest.DefaultSettings(), func(in *ingest.Stage) { l.WriteTo(in) }), l.Build)
	require.ErrorContains(t, err, "listen for influx: ")
	_, err = net.Dial("tcp", l.Addr(app.Graphite))
	require.Error(t, err)
}

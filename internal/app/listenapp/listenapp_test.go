package listenapp_test

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

	"github.com/promlake/promlake/internal/app/ingestapp"
	"github.com/promlake/promlake/internal/app/listenapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/queryapp"
	"github.com/promlake/promlake/internal/ingest"
	"github.com/promlake/promlake/internal/settings"
)

// TestGraphite sends the lines of the documentation over TCP and UDP and reads them by PromQL, also
// after a restart.
func TestGraphite(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/graphite.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(doc), "```\n")
	lines, _, _ := strings.Cut(rest, "```")
	require.Equal(t, 2, strings.Count(lines, "\n"))

	s := settings.Default[listenapp.Settings]()
	s.Listen, s.Tenant, s.Interval = "127.0.0.1:0", "graphite", time.Millisecond
	require.True(t, s.Enabled())
	require.NoError(t, s.Validate())
	p := process.DefaultSettings()
	p.Store = "file://" + t.TempDir()
	open := func() (h http.Handler, l *listenapp.Listeners, end func() error) {
		l = listenapp.New(s)
		h, end, err := process.Open(t.Context(), p, slog.New(slog.DiscardHandler),
			ingestapp.New(ingest.DefaultSettings(), func(in *ingest.Stage) { l.WriteTo(in) }), queryapp.New(queryapp.DefaultSettings()), l.Build)
		require.NoError(t, err)
		return h, l, end
	}
	has := func(h http.Handler, expr, value string) bool {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/query?time=1700000000&query="+url.QueryEscape(expr), http.NoBody)
		r.Header.Set("X-Scope-OrgID", "graphite")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		return strings.Contains(w.Body.String(), `"value":[1700000000,"`+value+`"]`)
	}
	h, l, end := open()
	tcp, err := net.Dial("tcp", l.GraphiteAddr())
	require.NoError(t, err)
	_, err = io.WriteString(tcp, lines)
	require.NoError(t, err)
	udp, err := net.Dial("udp", l.GraphiteAddr())
	require.NoError(t, err)
	require.Eventually(t, func() bool { // a datagram may be lost
		_, err = io.WriteString(udp, "over.udp 3 1700000000")
		require.NoError(t, err)
		return has(h, `{"servers.web01.load"}`, "0.7") && has(h, `{"disk.used",host="web01",path="/"}`, "12.5") && has(h, `{"over.udp"}`, "3")
	}, 2*time.Minute, 10*time.Millisecond)
	require.NoError(t, tcp.Close())
	require.NoError(t, udp.Close())
	require.NoError(t, end())
	h, _, end = open()
	require.True(t, has(h, `{"servers.web01.load"}`, "0.7"))
	require.NoError(t, end())
}

func TestBadSettings(t *testing.T) {
	s := settings.Default[listenapp.Settings]()
	require.False(t, s.Enabled())
	s.Tenant = "a|b"
	require.ErrorContains(t, s.Validate(), "graphite.tenant: ")
	_, err := listenapp.New(s).Build(t.Context(), process.Parts{})
	require.ErrorContains(t, err, "it needs an ingest stage")
}

package app_test

import (
	"encoding/binary"
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
)

// listenFor opens a process with listeners and returns them, and what evaluates an expression: the
// answer's body.
func listenFor(t *testing.T, s app.ListenerSettings) (l *app.Listeners, ask func(expr string) string, end func() error) {
	t.Helper()
	require.True(t, s.Enabled())
	require.NoError(t, s.Validate())
	p := process.DefaultSettings()
	p.Store = "file://" + t.TempDir()
	in := ingest.DefaultSettings()
	l = app.NewListeners(s, in.Lines)
	h, end, err := process.Open(t.Context(), p, slog.New(slog.DiscardHandler),
		ingestapp.New(nil, in, func(in *ingest.Stage) { l.WriteTo(in) }), queryapp.New(settings.Default[queryapp.Settings]()), l.Build)
	require.NoError(t, err)
	return l, func(expr string) string {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/query?query="+url.QueryEscape(expr), http.NoBody)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, http.StatusOK, w.Code, w.Body)
		return w.Body.String()
	}, end
}

// TestStatsD sends the lines of the documentation over TCP, and others over UDP.
func TestStatsD(t *testing.T) {
	s := settings.Default[app.ListenerSettings]()
	s.StatsD.Listen, s.StatsD.Interval = "127.0.0.1:0", 20*time.Millisecond
	l, ask, end := listenFor(t, s)
	tcp, err := net.Dial("tcp", l.Addr(app.StatsD))
	require.NoError(t, err)
	_, err = io.WriteString(tcp, documented(t, "StatsD"))
	require.NoError(t, err)
	udp, err := net.Dial("udp", l.Addr(app.StatsD))
	require.NoError(t, err)
	wanted := map[string]string{
		`jobs_done{queue="mail"}`:                    `"3"]`,
		`temperature`:                                `"20.5"]`,
		`request_duration_count{path="/"}`:           `"2"]`,
		`request_duration_sum{path="/"}`:             `"0.36"]`,
		`request_duration{path="/",quantile="0.99"}`: `"0.24"]`,
		`max_over_time(users[1h])`:                   `"2"]`,
		`increase(jobs_done{queue="mail"}[1h]) > 0`:  `"value":[`,
		`over_udp`: `"7"]`,
		`count({__name__=~"jobs.*|temperature|request.*"})`: `"7"]`,
	}
	require.Eventually(t, func() bool {
		_, err = io.WriteString(udp, "over.udp:7|g") // a datagram may be lost
		require.NoError(t, err)
		for expr, value := range wanted {
			if !strings.Contains(ask(expr), value) {
				return false
			}
		}
		return true
	}, 2*time.Minute, 10*time.Millisecond)
	require.NoError(t, tcp.Close())
	require.NoError(t, udp.Close())
	require.NoError(t, end())
}

// TestPickle sends what Python's pickle.dumps writes, as the documentation's program does, and a
// message that is no pickle before it.
func TestPickle(t *testing.T) {
	dump, err := os.ReadFile("testdata/points.pickle")
	require.NoError(t, err)
	s := settings.Default[app.ListenerSettings]()
	s.Graphite.Pickle, s.Graphite.Interval = "127.0.0.1:0", time.Millisecond
	l, ask, end := listenFor(t, s)
	tcp, err := net.Dial("tcp", l.Addr(app.Pickle))
	require.NoError(t, err)
	for _, message := range []string{"cos\nsystem\n(S'true'\ntR.", string(dump)} {
		head := binary.BigEndian.AppendUint32(nil, uint32(len(message)))
		for _, part := range []string{string(head[:3]), string(head[3:]) + message[:5], message[5:]} {
			_, err = io.WriteString(tcp, part)
			require.NoError(t, err)
		}
	}
	require.Eventually(t, func() bool {
		return strings.Contains(ask(`{"servers.web01.load"} @ 1700000000`), `"0.7"]`) &&
			strings.Contains(ask(`count({__name__=~"many.*"} @ 1700000000)`), `"100"]`)
	}, 2*time.Minute, 10*time.Millisecond)
	_, err = tcp.Write([]byte{0, 16, 0, 1}) // longer than a message may be
	require.NoError(t, err)
	require.NoError(t, tcp.SetReadDeadline(time.Now().Add(2*time.Minute)))
	_, err = tcp.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	require.NoError(t, end())
}

package process_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/auth"
	"github.com/promlake/promlake/internal/app/process"
)

// echo is a stage with a handler of every kind of access.
type echo struct{ process.Idle }

func (echo) Routes() []process.Route {
	var routes []process.Route
	for path, access := range map[string]auth.Access{"/read": auth.Read, "/write": auth.Write, "/delete": auth.Admin, "/compact": auth.Operate} {
		routes = append(routes, process.Route{Pattern: path, Access: access, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "done")
		})})
	}
	return append(routes, process.Route{Pattern: "/body", Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	})})
}

// large answers with more than sockets hold.
type large struct{ process.Idle }

func (large) Routes() []process.Route {
	return []process.Route{{Pattern: "/large", Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(make([]byte, 64<<20))
	})}}
}

// serveStage runs a process with a stage, and returns its address.
func serveStage(t *testing.T, s process.Settings, stage process.Stage) string {
	t.Helper()
	f := newFakeStage()
	ctx, cancel := context.WithCancel(context.Background())
	built, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- process.Run(ctx, s, slog.New(slog.DiscardHandler), func(ctx context.Context, p process.Parts) (process.Stage, error) {
			defer close(built)
			f.parts = p
			return stage, nil
		})
	}()
	<-built
	<-f.parts.Ready
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return strings.TrimPrefix(f.parts.URL, "http://")
}

// TestPagesOfOthersChangeNothing sends what a browser sends for a page of another site.
func TestPagesOfOthersChangeNothing(t *testing.T) {
	s := settings(t)
	s.Site = auth.SiteSettings{ExternalURL: "https://lake.example/prom", AllowedHosts: []string{"lake.internal"}}
	addr := serveStage(t, s, echo{})
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	for _, tc := range []struct {
		name, host string
		header     []string
		reads      int
		changes    int
	}{
		{"a program", addr, nil, 200, 200},
		{"a program by name", "localhost:" + port, nil, 200, 200},
		{"a program, IPv6", "[::1]:" + port, nil, 200, 200},
		{"a program at another loopback address", "127.1.2.3:" + port, nil, 200, 200},
		{"a program, allowed name", "lake.internal:" + port, nil, 200, 200},
		{"a proxy", "LAKE.example", nil, 200, 200},
		{"rebound name", "evil.example:" + port, nil, 403, 403},
		{"rebound name, its own page", "evil.example:" + port, []string{"Origin", "http://evil.example:" + port, "Sec-Fetch-Site", "same-origin"}, 403, 403},
		{"name that begins well", "localhost.evil.example", nil, 403, 403},
		{"another address", "10.0.0.1:" + port, nil, 403, 403},
		{"page of another site", addr, []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"}, 200, 403},
		{"page of another port", addr, []string{"Origin", "http://127.0.0.1:1", "Sec-Fetch-Site", "same-site"}, 200, 403},
		{"page of another site, old browser", addr, []string{"Origin", "https://evil.example"}, 200, 403},
		{"page of a file", addr, []string{"Origin", "null"}, 200, 403},
		{"page without origin", addr, []string{"Sec-Fetch-Site", "cross-site"}, 200, 403},
		{"own page", addr, []string{"Origin", "http://" + addr, "Sec-Fetch-Site", "same-origin"}, 200, 200},
		{"own page behind a proxy", addr, []string{"Origin", "https://lake.example", "Sec-Fetch-Site", "same-origin"}, 200, 200},
		{"page like the proxy's, without TLS", addr, []string{"Origin", "http://lake.example"}, 200, 403},
		{"typed address", addr, []string{"Sec-Fetch-Site", "none"}, 200, 200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ask := func(method, path string, want int) string {
				t.Helper()
				r, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, nil)
				require.NoError(t, err)
				r.Host = tc.host
				for i := 0; i < len(tc.header); i += 2 {
					r.Header.Set(tc.header[i], tc.header[i+1])
				}
				resp, err := http.DefaultClient.Do(r)
				require.NoError(t, err)
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, want, resp.StatusCode, "%s %s: %s", method, path, body)
				return string(body)
			}
			ask(http.MethodGet, "/read", tc.reads)
			ask(http.MethodPost, "/read", tc.reads)
			ask(http.MethodGet, "/metrics", tc.reads)
			for _, path := range []string{"/write", "/delete", "/compact"} {
				body := ask(http.MethodPost, path, tc.changes)
				if tc.changes == http.StatusForbidden && path != "/write" {
					require.Contains(t, body, `"errorType":"forbidden"`)
				}
			}
			code, _ := get(t, "http://"+addr+"/-/healthy")
			require.Equal(t, 200, code)
		})
	}
	_, text := get(t, "http://"+addr+"/metrics")
	require.Contains(t, text, `promlake_http_cross_site_requests_total{reason="origin"} 18`)
}

// TestOtherMachinesNeedNoName holds that a server for other machines answers under any name, unless
// it knows its names.
func TestOtherMachinesNeedNoName(t *testing.T) {
	for allowed, want := range map[string]int{"": 200, "lake.internal": 403} {
		s := settings(t)
		s.Listen = "0.0.0.0:0"
		if allowed != "" {
			s.Site.AllowedHosts = []string{allowed}
		}
		addr := serveStage(t, s, echo{})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/read", nil)
		require.NoError(t, err)
		r.Host = "prometheus.example"
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode)
	}
}

func TestConnectionLimit(t *testing.T) {
	s := settings(t)
	s.MaxConnections = 3
	addr := serveStage(t, s, echo{})
	open := func() (net.Conn, *bufio.Reader) {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		return conn, bufio.NewReader(conn)
	}
	ask := func(conn net.Conn, r *bufio.Reader) string {
		_, err := fmt.Fprintf(conn, "GET /read HTTP/1.1\r\nHost: localhost\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(r, nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return fmt.Sprint(resp.StatusCode, " ", string(body))
	}
	var conns []net.Conn
	for range 3 {
		conn, r := open()
		require.Equal(t, "200 done", ask(conn, r))
		conns = append(conns, conn)
	}
	// All are idle, or will be at once: one more takes the place of one.
	eventually(t, func() bool {
		conn, r := open()
		_, err := fmt.Fprintf(conn, "GET /read HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if err != nil {
			return false
		}
		resp, err := http.ReadResponse(r, nil)
		return err == nil && resp.StatusCode == http.StatusOK && resp.Body.Close() == nil
	})
	eventually(t, func() bool { // which one was idle longest, a busy machine decides
		return slices.ContainsFunc(conns, func(c net.Conn) bool {
			require.NoError(t, c.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
			_, err := c.Read(make([]byte, 1))
			return errors.Is(err, io.EOF)
		})
	})
	// Those without a complete header give way, too.
	for range 20 {
		conn, _ := open()
		_, err := fmt.Fprintf(conn, "GET /read HTTP/1.1\r\nHost: localhost\r\n")
		require.NoError(t, err)
	}
	conn, r := open()
	require.Equal(t, "200 done", ask(conn, r))
	// Those whose bodies arrive are busy: one more is refused, unless it asks for the health.
	for range 3 {
		eventually(t, func() bool {
			conn, r := open()
			_, err := fmt.Fprintf(conn, "POST /body HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n")
			require.NoError(t, err)
			line, _ := r.ReadString('\n')
			taken := strings.Contains(line, "100 Continue")
			if !taken { // net/http waits for the body of a refused request until the client leaves
				require.NoError(t, conn.Close())
				time.Sleep(time.Second)
			}
			return taken
		})
	}
	for range 50 {
		conn, r := open()
		require.Equal(t, "503 too many connections: the limit is 3 (--web.max-connections)\n", ask(conn, r))
	}
	for _, path := range []string{"/-/healthy", "/-/ready"} {
		for range 16 {
			_, _ = open()
		}
		resp, err := (&http.Client{Transport: &http.Transport{}}).Get("http://" + addr + path)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode)
	}
}

// TestClientsThatDoNotReadAreCutOff asks for more than sockets hold and reads nothing of it.
func TestClientsThatDoNotReadAreCutOff(t *testing.T) {
	s := settings(t)
	s.WriteStallTimeout = 50 * time.Millisecond
	addr := serveStage(t, s, large{})
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
	require.NoError(t, err)
	eventually(t, func() bool {
		_, text := get(t, "http://"+addr+"/metrics")
		return strings.Contains(text, "promlake_http_connections_stalled_total 1")
	})
	n, err := io.Copy(io.Discard, conn)
	require.Less(t, n, int64(64<<20), err)
}

// eventually waits for a state that must come.
func eventually(t *testing.T, state func() bool) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); !state(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), "the state did not come")
	}
}

package resource

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise int64) int64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// client sends random requests. It is not safe for concurrent use.
type client struct {
	*server
	rng *rand.Rand
}

// TestRandomRequests sends random requests, valid and invalid, until the time is over.
func TestRandomRequests(t *testing.T) {
	const clients, round = 8, 15 * time.Second
	seed := setting(t, "PROMLAKE_RESOURCE_SEED", 1)
	length := time.Duration(setting(t, "PROMLAKE_RESOURCE_SECONDS", 30)) * time.Second
	t.Logf("seed %d, %s", seed, length)
	s := start(t)
	s.populate()
	var mu sync.Mutex
	codes, slow := map[int]int{}, []string{}
	for end := time.Now().Add(length); time.Now().Before(end); {
		ctx, cancel := context.WithTimeout(t.Context(), min(round, time.Until(end)))
		var all sync.WaitGroup
		for i := range clients {
			c := &client{server: s, rng: rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
			seed++
			all.Go(func() {
				for ctx.Err() == nil && !s.dead() {
					what, a := c.act(ctx)
					mu.Lock()
					codes[a.code]++
					if a.took > 2*queryTimeout {
						slow = append(slow, fmt.Sprintf("%s: %s", a.took, what))
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		cancel()
		s.idle()
		s.holds()
		require.Empty(t, slow, "queries over twice their time limit")
	}
	s.serves()
	t.Logf("answers by code (0: the client left) %v, at most %d MiB", codes, s.most.Load()>>20)
	require.Zero(t, codes[http.StatusInternalServerError], "the server failed by itself:\n%s", s.log)
}

// act sends one request, and returns its description.
func (c *client) act(ctx context.Context) (what string, a answer) {
	if c.rng.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.rng.IntN(200))*time.Millisecond)
		defer cancel()
	}
	switch n := c.rng.IntN(100); {
	case n < 50:
		return c.ask(ctx)
	case n < 75:
		return c.write(ctx)
	case n < 80:
		return "remote read", c.post(ctx, "/api/v1/read", writeType, c.spoilt(remoteRead(c.rng.IntN(2) == 0)))
	case n < 85:
		path := []string{"/api/v1/admin/tsdb/delete_series", "/api/v1/admin/tsdb/clean_tombstones"}[c.rng.IntN(2)]
		return path, c.post(ctx, path+"?match[]="+url.QueryEscape(fmt.Sprintf(`alive{number="%d"}`, c.rng.IntN(1000))), "", nil)
	case n < 95:
		path := plain[c.rng.IntN(len(plain))]
		return path, c.get(ctx, path)
	default:
		return "slow client", c.dawdle(ctx)
	}
}

// plain are the endpoints without parameters.
var plain = []string{
	"/", "/metrics", "/-/healthy", "/-/ready", "/api/v1/status/flags", "/api/v1/status/config", "/api/v1/status/tsdb", "/api/v1/status/buildinfo",
	"/api/v1/status/runtimeinfo", "/api/v1/metadata", "/api/v1/labels", "/api/v1/label/__name__/values", "/api/v1/label/%ff/values", "/api/v1/targets",
	"/api/v1/rules", "/api/v1/alerts", "/nothing", "/api/v1/query", "/federate",
}

func (c *client) ask(ctx context.Context) (string, answer) {
	expr := c.expression(4)
	now := time.Now().Unix()
	span := int64(1) << c.rng.IntN(32)
	form := url.Values{
		"query": {expr}, "match[]": {expr}, "time": {fmt.Sprint(now - int64(c.rng.IntN(1000)))},
		"start": {fmt.Sprint(now - span)}, "end": {fmt.Sprint(now)}, "step": {fmt.Sprint(max(1, span>>c.rng.IntN(16)))},
		"limit": {fmt.Sprint(c.rng.IntN(1000))},
	}
	if c.rng.IntN(10) == 0 {
		form.Set([]string{"time", "start", "end", "step", "timeout"}[c.rng.IntN(5)], []string{"NaN", "-1", "1e300", "0.0000001", "x"}[c.rng.IntN(5)])
	}
	paths := []string{"query", "query_range", "query_range", "query", "explain", "series", "labels", "label/instance/values", "query_exemplars", "format_query", "parse_query"}
	path := "/api/v1/" + paths[c.rng.IntN(len(paths))]
	what := path + "?" + form.Encode()
	if c.rng.IntN(2) == 0 || strings.Contains(path, "/label/") {
		return what, c.get(ctx, what)
	}
	return what, c.post(ctx, path, formType, []byte(form.Encode()))
}

func (c *client) write(ctx context.Context) (string, answer) {
	name := fmt.Sprintf("random_%d", c.rng.IntN(50))
	samples := 1 << c.rng.IntN(8)
	body, kind := writeV1(series(name, 1<<c.rng.IntN(12), min(samples, 16))), writeType
	if c.rng.IntN(3) == 0 {
		body, kind = writeV2(name, samples*100), typeV2
	}
	if c.rng.IntN(10) == 0 {
		body, kind = windows(c.rng.IntN(200)), writeType
	}
	path := []string{"/api/v1/write", "/api/v1/push"}[c.rng.IntN(2)]
	tenant := "anonymous"
	if c.rng.IntN(2) == 0 {
		tenant = fmt.Sprintf("tenant-%d", c.rng.IntN(300))
	}
	return path, c.do(ctx, http.MethodPost, path, kind, bytes.NewReader(c.spoilt(body)), "X-Scope-OrgID", tenant)
}

// spoilt damages some bodies.
func (c *client) spoilt(body []byte) []byte {
	if c.rng.IntN(2) == 0 {
		return body
	}
	body = bytes.Clone(body)
	switch c.rng.IntN(3) {
	case 0:
		return body[:c.rng.IntN(len(body)+1)]
	case 1:
		// another length after decompression
		copy(body, []byte{0xff, 0xff, 0xff, byte(c.rng.IntN(32))})
	default:
		for range 1 + c.rng.IntN(10) {
			body[c.rng.IntN(len(body))] ^= 1 << c.rng.IntN(8)
		}
	}
	return body
}

// dawdle sends a request slowly, or requests much data without reading it, and disconnects.
func (c *client) dawdle(ctx context.Context) answer {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", c.addr)
	if err != nil {
		return answer{}
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	texts := []string{
		"GET /api/v1/query?query=up HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /api/v1/series?match[]=up HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /api/v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n\x80\x80\x80\x10" + strings.Repeat("x", c.rng.IntN(100_000)),
		"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\nquery=1",
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", c.rng.IntN(300_000)),
	}
	// The server may close the connection at any time.
	_, _ = io.WriteString(conn, texts[c.rng.IntN(len(texts))])
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(c.rng.IntN(2000)) * time.Millisecond):
	}
	return answer{}
}

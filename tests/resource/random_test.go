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
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang/snappy"
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
	rng  *rand.Rand
	what string // the last request, for errors
}

// sends notes the request that the client sends next.
func (c *client) sends(what string) {
	c.what = what
	c.flying.Store(c, what)
}

// TestRandomRequests sends random requests, valid and invalid, to every entrance once and then to
// random ones until the time is over.
func TestRandomRequests(t *testing.T) {
	const clients, round = 8, 15 * time.Second
	seed := setting(t, "PROMLAKE_RESOURCE_SEED", 1)
	length := time.Duration(setting(t, "PROMLAKE_RESOURCE_SECONDS", 10)) * time.Second
	t.Logf("seed %d, %s", seed, length)
	tokens := filepath.Join(t.TempDir(), "tokens.json")
	token, err := exec.Command(program, "token", "--tenant", "*", "--access", "write,read,admin", "--tokens", tokens).Output()
	require.NoError(t, err)
	flags := []string{"--auth.tokens", "file:" + tokens, "--compactor.block-upload-enabled"}
	for _, flag := range listening() {
		flags = append(flags, "--"+flag, "127.0.0.1:0")
	}
	s := start(t, flags...)
	s.token = strings.TrimSpace(string(token))
	s.populate()
	var mu sync.Mutex
	codes, slow, failed := map[string]map[int]int{}, []string{}, []string{}
	total := 0
	for _, e := range entrances {
		codes[e.name], total = map[int]int{}, total+e.weight
	}
	newClient := func(stream int) *client {
		seed++
		return &client{server: s, rng: rand.New(rand.NewPCG(uint64(seed), uint64(stream)))}
	}
	send := func(ctx context.Context, c *client, e entrance) {
		a := c.enter(ctx, e)
		s.flying.Delete(c)
		mu.Lock()
		defer mu.Unlock()
		codes[e.name][a.code]++
		if a.code == http.StatusInternalServerError {
			failed = append(failed, fmt.Sprintf("%s: %s: %.1000s", e.name, c.what, a.body))
		}
		if a.took > 2*queryTimeout {
			slow = append(slow, fmt.Sprintf("%s: %s: %s", a.took, e.name, c.what))
		}
	}
	end := time.Now().Add(length)
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for i, e := range entrances {
		c := newClient(i)
		all.Go(func() { send(ctx, c, e) })
	}
	all.Wait()
	for time.Now().Before(end) {
		t.Logf("round seed %d most %d", seed, s.most.Load()>>20)
		ctx, cancel := context.WithTimeout(t.Context(), min(round, time.Until(end)))
		for i := range clients {
			c := newClient(i)
			all.Go(func() {
				for ctx.Err() == nil && !s.dead() {
					n, e := c.rng.IntN(total), 0
					for ; n >= entrances[e].weight; e++ {
						n -= entrances[e].weight
					}
					send(ctx, c, entrances[e])
				}
			})
		}
		all.Wait()
		cancel()
		s.removeRules()
		s.idle()
		s.holds()
		require.Empty(t, slow, "queries over twice their time limit")
	}
	s.holds()
	s.serves()
	t.Logf("at most %d MiB; answers by code (0: the client left)", s.most.Load()>>20)
	for _, e := range entrances {
		t.Logf("%s: %v", e.name, codes[e.name])
		require.NotEmpty(t, codes[e.name], "nothing was sent to %s", e.name)
	}
	require.Empty(t, failed, "the server failed by itself:\n%s", s.log)
}

// removeRules removes the rules that clients wrote, since they are evaluated without clients, too.
func (s *server) removeRules() {
	for _, tenant := range ruled {
		for _, namespace := range namespaces {
			s.await("the rules are removed", func() bool {
				code := s.do(s.t.Context(), http.MethodDelete, "/config/v1/rules/"+namespace, "", nil, "X-Scope-OrgID", tenant).code
				return code == http.StatusAccepted || code == http.StatusNotFound
			})
		}
	}
}

// enter sends something to an entrance; some clients leave soon.
func (c *client) enter(ctx context.Context, e entrance) answer {
	if c.rng.IntN(3) == 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.rng.IntN(200))*time.Millisecond)
		defer cancel()
	}
	route := e.name
	if len(e.routes) > 0 {
		route = e.routes[c.rng.IntN(len(e.routes))]
	}
	return e.send(c, ctx, route)
}

// ask sends a query: a random expression, statement and pattern, of which the route takes its own.
func (c *client) ask(ctx context.Context, route string) answer {
	expr := c.expression(4)
	now := time.Now().Unix()
	span := int64(1) << c.rng.IntN(32)
	form := url.Values{
		"query": {expr}, "match[]": {expr}, "time": {fmt.Sprint(now - int64(c.rng.IntN(1000)))},
		"start": {fmt.Sprint(now - span)}, "end": {fmt.Sprint(now)}, "step": {fmt.Sprint(max(1, span>>c.rng.IntN(16)))},
		"limit": {fmt.Sprint(c.rng.IntN(1000))},
	}
	if c.rng.IntN(10) == 0 {
		form.Set([]string{"time", "start", "end", "step", "timeout", "as_of"}[c.rng.IntN(6)], []string{"NaN", "-1", "1e300", "0.0000001", "x"}[c.rng.IntN(5)])
	}
	switch {
	case strings.HasSuffix(route, "/sql"):
		form = url.Values{"query": {c.sql(4)}, "format": {c.pick("json", "csv", "arrow", "parquet", "")}}
		if c.rng.IntN(4) == 0 {
			form.Set("params", c.pick("[1]", `["a", null]`, "{", strings.Repeat("[", 100_000), `[{"a": 1}]`))
		}
	case strings.Contains(route, "cardinality"):
		form = url.Values{"selector": {c.selector()}, "label_names[]": {c.pick("job", "instance", "number", c.word())}, "limit": {c.number()}, "count_method": {c.pick("", "active", "x")}}
	case strings.Contains(route, "names_stats"):
		form = url.Values{"match_pattern": {c.pick("", "^a", "(a|b)*", strings.Repeat(".*", c.rng.IntN(5000)), "(x{1000}){1000}", `\pL{500}`, "(")}, "le": {c.number()}, "limit": {c.number()}}
	case strings.Contains(route, "/csv"):
		form.Set("format", c.pick("__name__,__value__,__timestamp__", "job,number,__timestamp__:rfc3339", c.word()))
	}
	return c.request(ctx, route, form, "", nil)
}

// write sends a request of remote_write, which may be damaged before or after its compression.
func (c *client) write(ctx context.Context, route string) answer {
	name := fmt.Sprintf("random_%d", c.rng.IntN(50))
	samples := 1 << c.rng.IntN(8)
	body, kind := writeV1(series(name, 1<<c.rng.IntN(12), min(samples, 16))), writeType
	if c.rng.IntN(3) == 0 {
		body, kind = writeV2(name, samples*100), typeV2
	}
	switch c.rng.IntN(10) {
	case 0:
		body, kind = windows(c.rng.IntN(200)), writeType
	case 1, 2, 3:
		plain, _ := snappy.Decode(nil, body) // it was just encoded
		body = snappy.Encode(nil, c.spoilt(plain))
	case 4:
		body = snappy.Encode(nil, c.message(6))
	}
	return c.request(ctx, route, nil, kind, c.spoilt(body))
}

// spoilt damages some bodies.
func (c *client) spoilt(body []byte) []byte {
	if c.rng.IntN(2) == 0 || len(body) == 0 {
		return body
	}
	body = bytes.Clone(body)
	switch c.rng.IntN(4) {
	case 0:
		return body[:c.rng.IntN(len(body)+1)]
	case 1:
		// another length after decompression
		copy(body, []byte{0xff, 0xff, 0xff, byte(c.rng.IntN(32))})
	case 2:
		// a part is there many times
		from := c.rng.IntN(len(body))
		part := body[from:min(len(body), from+1+c.rng.IntN(100))]
		body = slices.Insert(body, from, bytes.Repeat(part, c.rng.IntN(1<<20)/len(part))...)
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
	c.sends("a slow client")
	texts := []string{
		"GET /api/v1/query?query=up HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /api/v1/series?match[]=up HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"POST /api/v1/write HTTP/1.1\r\nHost: localhost\r\nContent-Length: 16000000\r\n\r\n\x80\x80\x80\x10" + strings.Repeat("x", c.rng.IntN(100_000)),
		"POST /api/v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\nContent-Type: application/x-www-form-urlencoded\r\n\r\nquery=1",
		"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + strings.Repeat("x", c.rng.IntN(300_000)),
	}
	// The server may close the connection at any time.
	_, _ = io.WriteString(conn, strings.ReplaceAll(c.pick(texts...), "Host: localhost\r\n", "Host: localhost\r\nAuthorization: Bearer "+c.token+"\r\n"))
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(c.rng.IntN(2000)) * time.Millisecond):
	}
	return answer{}
}

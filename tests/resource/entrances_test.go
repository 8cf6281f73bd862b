package resource

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// entrance is a way into the process, with a generator of what is sent there.
type entrance struct {
	name   string // of a listener: its flag
	weight int
	// routes are the methods and paths of its requests; they begin with /prometheus sometimes. A
	// name in braces stands for random text. A listener has none.
	routes []string
	// send sends something to a random one of the routes.
	send func(c *client, ctx context.Context, route string) answer
}

// under returns routes with a prefix, which has a space at its end of the method.
func under(prefix string, names ...string) (routes []string) {
	for _, name := range names {
		routes = append(routes, prefix+name)
	}
	return routes
}

var entrances = []entrance{
	{"queries", 22, under("POST /api/v1/", "query", "query_range", "query_range", "explain", "slices", "format_query", "parse_query", "query_exemplars"), (*client).ask},
	{"series", 8, append(under("GET /api/v1/", "series", "labels", "label/job/values", "label/{name}/values", "export", "export/csv", "metadata",
		"status/metric_names_stats", "status/label_names_stats", "status/tsdb", "cardinality/label_names", "cardinality/label_values", "cardinality/active_series"), "GET /federate"), (*client).ask},
	{"pieces", 2, under("POST /api/v1/", "piece"), document(`{"version":1,"tenant":"anonymous","query":"random","start":%m,"end":%m,"step":60000,"from":%m,"upto":%m,"lookback":300000,"options":{},"snapshot":{},"timeout":1000,"max_bytes":1000,"estimated":1,"requests":1}`,
		`{"version":1,"tenant":%q,"query":%q,"start":0,"end":600000,"step":60000,"from":0,"upto":60000,"lookback":300000,"options":{},"snapshot":{"wide":true,"segments":[]},"timeout":1000,"max_bytes":1000,"estimated":1,"requests":1}`, `[[{}]]`)},
	{"sql", 8, under("POST /api/v1/", "sql"), (*client).ask},
	{"remote read", 4, under("POST /api/v1/", "read"), func(c *client, ctx context.Context, route string) answer {
		return c.request(ctx, route, nil, writeType, c.spoilt(remoteRead(c.rng.IntN(2) == 0)))
	}},
	{"deletion", 4, under("POST /api/v1/admin/tsdb/", "delete_series", "clean_tombstones", "snapshot"), func(c *client, ctx context.Context, route string) answer {
		return c.request(ctx, route, url.Values{"match[]": {c.pick(fmt.Sprintf(`alive{number="%d"}`, c.rng.IntN(1000)), `random_1{job=~"(a|b)*"}`, "up", "{")}, "start": {"1"}, "end": {"2"}}, "", nil)
	}},
	{"answers without parameters", 6, append(under("GET /api/v1/", "status/flags", "status/config", "status/buildinfo", "status/runtimeinfo", "status/lake", "status/doctor",
		"status/tenants", "status/refused", "status/active_queries", "status/spending", "status/spending/tenants", "label/%ff/values", "targets", "rules", "alerts", "demo", "dashboards", "dashboards/{name}", "validate", "upload/block/{block}/check", "query", "nothing"),
		"GET /", "GET /metrics", "GET /metrics/node", "GET /graph", "GET /dashboards", "GET /assets/{file}", "GET /-/healthy", "GET /-/ready", "GET /ping", "GET /influx/ping",
		"GET /datadog/api/v1/validate", "GET /nothing", "POST /-/compact", "POST /-/reload", "PUT /-/reload", "POST /api/v1/demo", "DELETE /api/v1/status/active_queries?id=1"), func(c *client, ctx context.Context, route string) answer {
		return c.request(ctx, route, nil, "", nil)
	}},
	{"slow client", 4, nil, func(c *client, ctx context.Context, _ string) answer { return c.dawdle(ctx) }},
	{"rules", 8, append(slices.Repeat(under("POST /config/v1/rules/", "{namespace}"), 6), "GET /config/v1/rules", "GET /config/v1/rules/{namespace}",
		"GET /config/v1/rules/{namespace}/{name}", "DELETE /config/v1/rules/{namespace}/{name}", "DELETE /config/v1/rules/{namespace}"), (*client).rules},

	{"dashboards", 1, under("", "PUT /api/v1/dashboards/{name}", "DELETE /api/v1/dashboards/{name}"), document(`{"title":%q,"panels":[{"targets":[{"expr":%q}]}]}`, `[[{}]]`)},
	{"silences", 1, under("", "GET /alertmanager/api/v2/silences", "POST /alertmanager/api/v2/silences", "DELETE /alertmanager/api/v2/silence/{name}"), document(`{"matchers":[{"name":%q,"value":%q}]}`, `[[{}]]`)},

	{"remote write", 14, under("POST /api/v1/", "write", "push"), (*client).write},
	{"otlp", 3, under("POST ", "/api/v1/otlp/v1/metrics", "/otlp/v1/metrics", "/opentelemetry/v1/metrics", "/v1/metrics"), (*client).otlp},
	{"text", 2, under("POST /api/v1/", "import/prometheus"), body("text/plain", exposition...)},
	{"pushgateway", 4, under("", "PUT /metrics/job/{name}", "POST /metrics/job/{name}/{name}/{name}", "DELETE /metrics/job/{name}", "PUT /api/v1/import/prometheus/metrics/job/{name}",
		"POST /api/v1/import/prometheus/metrics/job@base64/{name}", "DELETE /api/v1/import/prometheus/metrics/{name}"), body("text/plain", exposition...)},
	{"json lines", 2, under("POST /api/v1/", "import"), body("", `{"metric":{"__name__":%q,%q:%q},"values":[%n,null],"timestamps":[%m,%m]}`+"\n", `{"metric":{"__name__":%q},"values":[%n],"x":[[[{}]]]}`+"\n")},
	{"csv", 2, under("POST /api/v1/", "import/csv?format=1:metric:a,2:label:b,3:time:unix_s", "import/csv?format=3:metric:{name},1:label:{name},2:time:custom:{name}"), body("text/csv", "%n,%w,%t\n", "%q,%q\n")},
	{"datadog", 4, under("POST ", "/datadog/api/v1/series", "/datadog/api/v2/series", "/api/v2/series", "/datadog/api/beta/sketches", "/datadog/api/v1/check_run", "/datadog/api/v1/metadata", "/datadog/intake/"), (*client).datadog},
	{"opentsdb", 2, under("POST ", "/api/put?details", "/opentsdb/api/put?summary"), document(`[{"metric":%q,"timestamp":%t,"value":%n,"tags":{%q:%q}},{"metric":"random","timestamp":%t,"value":1,"tags":{"a":%q}}]`, `{"metric":%q,"timestamp":%m,"value":%q}`, `[[{}]]`)},
	{"influx", 4, under("POST ", "/write", "/influx/write", "/api/v2/write", "/influx/api/v2/write", "/api/v3/write_lp", "/influx/api/v3/write_lp", "/api/v3/write_lp?accept_partial=false", "/write?precision={name}&db={name}"), body("", influxLines...)},
	{"influx queries", 1, under("", "GET /query?q={name}", "POST /query?q=SHOW+DATABASES", "GET /influx/query", "POST /influx/query"), body("", "%w")},
	{"uploads of blocks", 3, under("POST /api/v1/upload/block/{block}/", "start", "start", "files?path=index", "files?path=chunks/000001", "finish"), (*client).upload},

	{"flight.listen-address", 8, nil, (*client).flight},
	{"graphite.listen", 2, nil, lines("%w.%w;%w=%w %n %t\n", "%w %n\n", "random;a=%w;a=%w %n -1\n")},
	{"graphite.pickle-listen", 2, nil, (*client).pickles},
	{"influx.listen", 2, nil, lines(influxLines...)},
	{"opentsdb.listen", 2, nil, lines("put %w %t %n %w=%w a=%w\n", "put random %m %n a=%w\n", "version\n")},
	{"statsd.listen", 2, nil, lines("%w:%n|c|@%n|#%w:%w\n", "%w:%n|ms|#a:%w\n", "random:%n:%n:%n|h\n", "%w,%w=%w:%n|g\n", "set:%w|s\n", "%w[%w=%w]:+%n|g:%n|c\n", "_e{%n,%n}:%w|%w\n")},
}

var (
	exposition  = []string{"# TYPE %w histogram\n", "# HELP %w %w\n", "%w{%w=%q,a=%q} %n\n", "random{a=%q} %n %m\n", "random{a=%q} 1\n", "random %n # {a=%q} %n %t\n"}
	influxLines = []string{"%w,%w=%w,a=%w %w=%n,b=%ni,c=t,d=%q %N\n", "random,a=%w b=%n\n", "%w a=%n %N\n"}
)

// body returns a sender of random lines, which may be damaged and compressed.
func body(kind string, templates ...string) func(*client, context.Context, string) answer {
	return func(c *client, ctx context.Context, route string) answer {
		return c.request(ctx, route, nil, kind, c.spoilt(c.lines(templates...)))
	}
}

// document returns a sender of one of the documents.
func document(templates ...string) func(*client, context.Context, string) answer {
	return func(c *client, ctx context.Context, route string) answer {
		return c.request(ctx, route, nil, "application/json", c.spoilt([]byte(c.expand(c.pick(templates...)))))
	}
}

// wildcard is a name in braces.
var wildcard = regexp.MustCompile(`\{(\w+)\}`)

// request sends a request to a route, sometimes without a valid token or for another tenant. The
// parameters of a POST without a body are its form sometimes.
func (c *client) request(ctx context.Context, route string, form url.Values, kind string, body []byte) answer {
	route = wildcard.ReplaceAllStringFunc(route, func(name string) string {
		switch name {
		case "{namespace}":
			return c.pick(namespaces...)
		case "{block}":
			return c.pick(block, block, block, "01JDQRSTVWXYZ0123456789AB1")
		default:
			return url.PathEscape(c.word())
		}
	})
	method, target, _ := strings.Cut(route, " ")
	if c.rng.IntN(8) == 0 {
		target = "/prometheus" + target
	}
	var header []string
	switch {
	case form == nil:
		switch c.rng.IntN(16) {
		case 0, 1:
			body = compressed(body)
			header = append(header, "Content-Encoding", "gzip")
		case 2:
			body = bomb()
			header = append(header, "Content-Encoding", "gzip")
		case 3:
			header = append(header, "Content-Encoding", c.pick("gzip", "zstd", "deflate", "snappy", "x", "gzip, gzip"))
		}
	case method == http.MethodPost && c.rng.IntN(2) == 0:
		kind, body = formType, []byte(form.Encode())
	default:
		method, target = c.pick(method, http.MethodGet), target+"?"+form.Encode()
	}
	if c.rng.IntN(4) == 0 {
		tenant := fmt.Sprintf("tenant-%d", c.rng.IntN(300))
		header = append(header, "X-Scope-OrgID", c.pick("tenant-0", "tenant-1", tenant, tenant, tenant, tenant, c.pick("a|b", "../a", strings.Repeat("x", 200))))
	}
	if c.rng.IntN(20) == 0 {
		header = append(header, "Authorization", c.pick("", "Bearer x", "Basic x", "Bearer "+strings.Repeat("x", 10_000)))
	}
	c.sends(fmt.Sprintf("%s %s %q %.4000q", method, target, header, body))
	return c.do(ctx, method, target, kind, bytes.NewReader(body), header...)
}

// bomb is a small body that is large when it is decompressed.
var bomb = sync.OnceValue(func() []byte { return compressed(make([]byte, 128<<20)) })

func compressed(body []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(body) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// word returns a name or a value, often an odd one.
func (c *client) word() string {
	return c.pick("up", "cpu", "a", "__name__", "host-1.example:9100", fmt.Sprintf("w%d", c.rng.IntN(1000)), fmt.Sprintf("w%d", c.rng.Uint32()),
		"", "ä", "\xff", "é\x00", "{}", `"`, `\`, "a,b=c d", "$1", strings.Repeat("x", c.rng.IntN(20_000)))
}

func (c *client) number() string {
	return c.pick("0", "1", "-1", fmt.Sprint(c.rng.NormFloat64()), "1e308", "1e999", "NaN", "-Inf", "0x1p-2", "9223372036854775808", "1_000", "", "x", "0."+strings.Repeat("1", c.rng.IntN(1000)))
}

var verb = regexp.MustCompile(`%[wqntmN]`)

// lines returns up to 1 MiB of lines from one or all of the templates.
func (c *client) lines(templates ...string) (out []byte) {
	if c.rng.IntN(2) == 0 {
		templates = []string{c.pick(templates...)}
	}
	for n := 1 << c.rng.IntN(12); n > 0 && len(out) < 1<<20; n-- {
		out = append(out, c.expand(c.pick(templates...))...)
	}
	return out
}

// expand expands a template: %w is a word, %q one in quotes, %n a number, and %t, %m and %N are
// times in seconds, ms and ns.
func (c *client) expand(template string) string {
	return verb.ReplaceAllStringFunc(template, func(v string) string {
		at := time.Now().Add(-time.Duration(c.rng.IntN(1000)) * time.Second)
		switch v {
		case "%w":
			return c.word()
		case "%q":
			return quoted(c.word())
		case "%n":
			return c.number()
		case "%t":
			return c.pick(fmt.Sprint(at.Unix()), fmt.Sprint(at.Unix()), c.number())
		case "%m":
			return c.pick(fmt.Sprint(at.UnixMilli()), fmt.Sprint(at.UnixMilli()), c.number())
		default:
			return c.pick(fmt.Sprint(at.UnixNano()), fmt.Sprint(at.UnixNano()), c.number())
		}
	})
}

// lines returns a sender of random lines to a listener.
func lines(templates ...string) func(*client, context.Context, string) answer {
	return func(c *client, ctx context.Context, flag string) answer {
		return c.deliver(ctx, c.pick("tcp", "udp"), flag, c.spoilt(c.lines(templates...)))
	}
}

// deliver sends what nobody answers: 202 stands for a body that the kernel has taken.
func (c *client) deliver(ctx context.Context, network, flag string, body []byte) answer {
	c.sends(network + " to --" + flag)
	conn, err := new(net.Dialer).DialContext(ctx, network, c.address(flag))
	if err != nil {
		return answer{}
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	for len(body) > 0 && err == nil {
		n := min(len(body), 1+c.rng.IntN(60_000)) // fits into a datagram
		_, err = conn.Write(body[:n])
		body = body[n:]
	}
	if err != nil {
		return answer{}
	}
	return answer{code: http.StatusAccepted}
}

// listening are the flags of the listeners in the table.
func listening() (flags []string) {
	for _, e := range entrances {
		if strings.Contains(e.name, "listen") {
			flags = append(flags, e.name)
		}
	}
	return flags
}

// address is where the listener of a flag listens.
func (s *server) address(flag string) string {
	if flag == "flight.listen-address" {
		return s.rpc
	}
	return s.listeners[strings.Trim(strings.ReplaceAll(strings.TrimSuffix(flag, "listen"), ".", "-"), "-")]
}

// TestTableHasEveryEntrance: the table uses every route of the program, and every listener.
func TestTableHasEveryEntrance(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(b)
	}
	found := func(text, pattern string) (all []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		require.NotEmpty(t, all, pattern)
		return all
	}
	require.ElementsMatch(t, found(read("../../docs/configuration.md"), "(?m)^\\| `([a-z.]+\\.[a-z-]*listen[a-z-]*)` \\|"), listening())

	routes := read("../../internal/app/routes_test.go")
	patterns, mux := found(routes, `(?m)^\t"([^"]*/[^"]*)": +auth\.`), http.NewServeMux()
	for _, pattern := range patterns {
		mux.Handle(pattern, http.NotFoundHandler())
	}
	used, below := map[string]bool{}, map[string]bool{}
	for _, e := range entrances {
		for _, route := range e.routes {
			method, path, _ := strings.Cut(route, " ")
			path, _, _ = strings.Cut(path, "?")
			below[strings.TrimPrefix(path, "/api/v1/")] = true
			for _, prefix := range []string{"", "/prometheus"} {
				_, pattern := mux.Handler(httptest.NewRequest(method, prefix+path, http.NoBody))
				used[pattern] = true
			}
		}
	}
	for _, pattern := range patterns {
		require.True(t, used[pattern], "no entrance uses %s", pattern)
	}
	_, list, _ := strings.Cut(routes, "var below = []string{")
	list, _, _ = strings.Cut(list, "}")
	for _, path := range found(list, `"([^"]+)"`) {
		require.True(t, below[path], "no entrance uses /api/v1/%s", path)
	}
}

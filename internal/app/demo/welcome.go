package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	promcommon "github.com/prometheus/common/config"

	"github.com/promlake/promlake/internal/base/ask"
)

// Example is a PromQL query whose result over the demo's data is instructive.
type Example struct {
	Title string
	Query string
}

// Examples returns the queries of the welcome.
func Examples() []Example {
	return []Example{
		{"Who reports", `up`},
		{"CPUs in use, by mode", `sum by (mode) (rate(node_cpu_seconds_total{mode!="idle"}[1m]))`},
		{"Memory in use, as a fraction", `1 - node_memory_MemAvailable_bytes / node_memory_MemTotal_bytes`},
	}
}

// dashboard is the part of a URL that opens the page's dashboard of this machine: the last minutes,
// live.
const dashboard = "#/dashboards?range=15m&refresh=5s&dash=machine"

// askEvery is the time between two attempts of Welcome.
const askEvery = 200 * time.Millisecond

// Welcome waits until the process at base answers the examples, or ctx ends. Then it prints to out
// the URL of the dashboard and commands that can be pasted into a shell. Requests have the token if
// it is not "".
func Welcome(ctx context.Context, s Settings, base, token string, out io.Writer, logger *slog.Logger) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for !answered(ctx, s, base, token) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	var b strings.Builder
	with := ""
	if token != "" {
		with = ` -H "Authorization: Bearer $PROMLAKE_TOKEN"`
	}
	fmt.Fprintf(&b, "\nPromlake is running at %s and scrapes this machine's metrics every %s.\n", base, s.Interval)
	fmt.Fprintf(&b, "\n  Dashboard of this machine: %s/%s\n\nQuery it:\n", base, dashboard)
	for _, e := range Examples() {
		fmt.Fprintf(&b, "\n  # %s\n  curl -sG%s %s/api/v1/query --data-urlencode 'query=%s'\n", e.Title, with, base, e.Query)
	}
	fmt.Fprintf(&b, "\nAs a Prometheus data source: %s    As a remote_write target: %s/api/v1/write\n\n", base, base)
	if _, err := fmt.Fprint(out, b.String()); err != nil {
		logger.Warn("the demo could not print its welcome", "err", err)
	}
}

// answered reports whether the queries of the examples have results. Without metrics of the
// machine, the first is enough. Requests have the token if it is not "".
func answered(ctx context.Context, s Settings, base, token string) bool {
	examples := Examples()
	if _, err := NewCollector(s.ProcPath, slog.New(slog.DiscardHandler), time.Now); err != nil {
		examples = examples[:1]
	}
	client := &http.Client{}
	if token != "" {
		client.Transport = promcommon.NewAuthorizationCredentialsRoundTripper("Bearer", promcommon.NewInlineSecret(token), http.DefaultTransport)
	}
	return !slices.ContainsFunc(examples, func(e Example) bool {
		var answer struct {
			Data struct{ Result []json.RawMessage }
		}
		err := ask.PostJSON(ctx, client, base+"/api/v1/query", url.Values{"query": {e.Query}}, maxAnswer, &answer)
		return err != nil || len(answer.Data.Result) == 0
	})
}

// maxAnswer bounds the answer to an example, in bytes.
const maxAnswer = 1 << 20

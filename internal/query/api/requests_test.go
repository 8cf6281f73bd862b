package api_test

import "net/http"

// The requests of the differential test. Timestamps are in the two hours after the epoch for which
// the fixture has samples.

func instant(query string, more ...string) httpRequest {
	return params("/query", append([]string{"query", query, "time", "5400"}, more...)...)
}

func instantRequests() []httpRequest {
	res := []httpRequest{
		params("/query"),
		params("/query", "query", ""),
		params("/query", "query", "up{", "time", "5400"),
		params("/query", "query", "1", "time", "yesterday"),
		params("/query", "query", "1", "time", "1970-01-01T01:30:00Z"),
		params("/query", "query", "1", "time", "5400.123"),
		params("/query", "query", "1", "time", "5400", "timeout", "soon"),
		params("/query", "query", "1", "time", "NaN"),
	}
	for _, query := range []string{
		`up`, `up{instance="b"}`, `up{instance=~"a|b",job!="x"}`, `{job="node"}`, `nothing`, `gone`, `gone offset 45m`,
		`odd`, `odd * 0`, `sum(odd)`, `1/0`, `0/0`, `-1/0`, `"text"`, `time()`, `vector(0.1+0.2)`, `scalar(up{instance="a"})`,
		`requests_total[5m]`, `odd[2m]`, `latency`, `latency_custom`, `latency[2m]`, `histogram_quantile(0.9, latency)`,
		`rate(requests_total[10m])`, `rate(up[10m])`, `increase(requests_total[30m:1m])`, `sum by (code) (rate(requests_total[5m]))`,
		`topk(1, requests_total)`, `sort_desc(requests_total)`, `up + on() requests_total`, `up * on(job) group_left up`,
		`label_replace(up, "x", "$1", "instance", "(.*)")`, `label_replace(up, "instance", "", "", "")`,
		`info_metric`, `{"utf8.metric"}`, `absent(nothing{a="b"})`, `count_values("v", up)`,
		`foo(up)`, `up[5m`, `sum(up) by`, `{}`, `up{x=~"("}`, `up @ end()`, `up offset -5m`, `max_over_time(up[1h:1m])`,
		`histogram_quantile(2, latency)`, `histogram_quantile(0.5, requests_total)`, `quantile(-1, up)`, `sum(latency) + sum(up)`, `rate(latency[5m])`,
		`sum_over_time({job="node"}[2h])`, `count_over_time({__name__=~".+"}[2h:1s])`,
	} {
		res = append(res, instant(query))
	}
	return append(res,
		instant("up", "limit", "1"),
		instant("up", "limit", "0"),
		instant("up", "limit", "100"),
		instant("up", "limit", "-1"),
		instant("up", "limit", "many"),
		instant("requests_total[10m]", "limit", "1"),
		instant("1", "limit", "1"),
		instant("up", "lookback_delta", "1s"),
		instant("up", "lookback_delta", "30m"),
		instant("up", "lookback_delta", "x"),
		instant("gone", "lookback_delta", "1h"),
		instant("up", "timeout", "30s"),
		instant("up", "timeout", "30"),
		instant("up", "timeout", "0"),
		instant("up", "timeout", "-1s"),
		instant("up", "stats", "all"),
		instant("sum(rate(requests_total[5m]))", "stats", "true"),
		instant("up", "stats", "perhaps"),
		instant("up", "unknown_parameter", "1"),
		instant("rate(up[10m])", "limit", "1"),
	)
}

func ranged(query string, more ...string) httpRequest {
	return params("/query_range", append([]string{"query", query, "start", "3600", "end", "5400", "step", "60"}, more...)...)
}

func rangeRequests() []httpRequest {
	res := []httpRequest{
		params("/query_range"),
		params("/query_range", "query", "up"),
		params("/query_range", "query", "up", "start", "3600", "end", "5400"),
		params("/query_range", "query", "up", "start", "x", "end", "5400", "step", "60"),
		params("/query_range", "query", "up", "start", "3600", "end", "x", "step", "60"),
		params("/query_range", "query", "up", "start", "5400", "end", "3600", "step", "60"),
		params("/query_range", "query", "up", "start", "3600", "end", "5400", "step", "0"),
		params("/query_range", "query", "up", "start", "3600", "end", "5400", "step", "-1"),
		params("/query_range", "query", "up", "start", "3600", "end", "5400", "step", "1h30m"),
		params("/query_range", "query", "up", "start", "3600", "end", "5400", "step", "fast"),
		params("/query_range", "query", "up", "start", "0", "end", "11001", "step", "1"),
		params("/query_range", "query", "up", "start", "0", "end", "11000", "step", "1"),
		params("/query_range", "query", "1", "start", "-9223372036854775808", "end", "9223372036854775807", "step", "1"),
		params("/query_range", "query", "1", "start", "1970-01-01T01:00:00Z", "end", "1970-01-01T02:00:00+00:30", "step", "5m"),
	}
	for _, query := range []string{
		`up`, `odd`, `gone`, `latency`, `latency_custom`, `1`, `"text"`, `up[5m]`, `rate(requests_total[5m])`, `nothing`,
		`sum by (job) (rate(requests_total[5m]))`, `histogram_quantile(0.5, sum(rate(latency[5m])))`, `up > 0`, `up == bool 0`,
		`rate(up[10m])`, `bottomk(1, requests_total)`, `up + on() requests_total`, `sum(`, `absent(up)`, `time()`,
		`count_over_time({__name__=~".+"}[2h:1s])`, `up @ 3600`, `quantile_over_time(0.5, odd[5m])`, `{"utf8.metric"}`,
	} {
		res = append(res, ranged(query))
	}
	return append(res,
		ranged("up", "limit", "1"),
		ranged("up", "limit", "x"),
		ranged("up", "limit", "2"),
		ranged("requests_total", "lookback_delta", "30s"),
		ranged("requests_total", "lookback_delta", "1h"),
		ranged("requests_total", "lookback_delta", "?"),
		ranged("up", "timeout", "1m"),
		ranged("up", "timeout", "?"),
		ranged("up", "stats", "all"),
		ranged("rate(requests_total[5m])", "stats", "yes"),
	)
}

func postedRequests() []httpRequest {
	return []httpRequest{
		post("/query", "query", "up", "time", "5400"),
		post("/query", "query", "up", "time", "5400", "limit", "1"),
		post("/query", "query", "up{", "time", "5400"),
		post("/query"),
		post("/query_range", "query", "rate(requests_total[5m])", "start", "3600", "end", "5400", "step", "60"),
		post("/query_range", "query", "up"),
		post("/query?query=1", "time", "5400"),
		post("/labels", "match[]", "up"),
		post("/series", "match[]", "up", "match[]", "odd"),
		post("/series"),
		post("/format_query", "query", "sum(up)by(job)"),
		post("/parse_query", "query", "sum(up)by(job)"),
		post("/query_exemplars", "query", "requests_total", "start", "0", "end", "7200"),
		post("/label/job/values", "match[]", "up"), // not allowed
		post("/metadata"), // not allowed
		{method: http.MethodPost, path: "/series", form: "match[]=up&bad=%zz"},
		{method: http.MethodPost, path: "/query", form: "query=up&time=5400&bad=%zz"},
		{method: http.MethodPost, path: "/query", form: `{"query":"up"}`, header: http.Header{"Content-Type": {"application/json"}}},
		{
			method: http.MethodPost, path: "/query",
			form:   "--b\r\nContent-Disposition: form-data; name=\"query\"\r\n\r\nup\r\n--b\r\nContent-Disposition: form-data; name=\"time\"\r\n\r\n5400\r\n--b--\r\n",
			header: http.Header{"Content-Type": {"multipart/form-data; boundary=b"}},
		},
	}
}

func seriesRequests() []httpRequest {
	return []httpRequest{
		params("/series"),
		params("/series", "match[]", "up"),
		params("/series", "match[]", "up", "match[]", "requests_total", "start", "0", "end", "7200"),
		params("/series", "match[]", "up", "match[]", `{instance="a"}`),
		params("/series", "match[]", "up{"),
		params("/series", "match[]", "{}"),
		params("/series", "match[]", `{job=~".*"}`),
		params("/series", "match[]", "nothing"),
		params("/series", "match[]", "up", "limit", "1"),
		params("/series", "match[]", "up", "match[]", "odd", "limit", "3"),
		params("/series", "match[]", "up", "limit", "-3"),
		params("/series", "match[]", "up", "start", "x"),
		params("/series", "match[]", "up", "end", "x"),
		params("/series", "match[]", "up", "start", "72000", "end", "3600"),
		params("/series", "match[]", "rate(up[5m])"),
		{path: "/series?match[]=up;x=1"},
		params("/labels"),
		params("/labels", "match[]", "up"),
		params("/labels", "match[]", "up", "match[]", "odd"),
		params("/labels", "match[]", "nothing"),
		params("/labels", "match[]", "{}"),
		params("/labels", "match[]", "up{"),
		params("/labels", "limit", "2"),
		params("/labels", "limit", "x"),
		params("/labels", "start", "0", "end", "7200"),
		params("/labels", "start", "x"),
		params("/labels", "end", "x"),
		params("/labels", "start", "900000", "end", "1000000"),
		params("/label/job/values"),
		params("/label/__name__/values"),
		params("/label/__name__/values", "match[]", `{job="node"}`),
		params("/label/instance/values", "match[]", "up", "match[]", "odd"),
		params("/label/instance/values", "limit", "1"),
		params("/label/instance/values", "limit", "x"),
		params("/label/instance/values", "start", "x"),
		params("/label/instance/values", "end", "x"),
		params("/label/instance/values", "match[]", "{"),
		params("/label/nothing/values"),
		params("/label/U__dotted_2e_label/values"),
		params("/label/dotted.label/values"),
		params("/label/%FF/values"),
		params("/label/a%2Fb/values"),
		params("/label//values"),
		params("/label/job/"),
	}
}

func exemplarRequests() []httpRequest {
	return []httpRequest{
		params("/query_exemplars"),
		params("/query_exemplars", "query", "requests_total"),
		params("/query_exemplars", "query", "rate(requests_total[5m]) + up", "start", "0", "end", "7200"),
		params("/query_exemplars", "query", "requests_total", "start", "6060", "end", "6060"),
		params("/query_exemplars", "query", "requests_total", "start", "7200", "end", "0"),
		params("/query_exemplars", "query", "requests_total", "start", "x"),
		params("/query_exemplars", "query", "requests_total", "end", "x"),
		params("/query_exemplars", "query", "requests_total{"),
		params("/query_exemplars", "query", "1"),
		params("/query_exemplars", "query", "nothing"),
	}
}

func serverRequests() []httpRequest {
	return []httpRequest{
		params("/format_query"),
		params("/format_query", "query", "sum by(job)(rate(requests_total{code=~'5..'}[5m]))>0"),
		params("/format_query", "query", "sum("),
		params("/parse_query"),
		params("/parse_query", "query", "sum by(job)(rate(requests_total{code=~'5..'}[5m] offset 1h))>bool 0"),
		params("/parse_query", "query", "sum("),
		params("/scrape_pools"),
		params("/targets"),
		params("/targets", "state", "active"),
		params("/targets", "state", "dropped"),
		params("/targets", "scrapePool", "x"),
		params("/targets/metadata"),
		params("/targets/metadata", "limit", "x"),
		params("/targets/metadata", "match_target", "{"),
		params("/scrape_pools/config"),
		params("/scrape_pools/config", "scrapePool", "x"),
		params("/targets/relabel_steps", "scrapePool", "x", "labels", "{}"),
		params("/targets/relabel_steps", "scrapePool", "x", "labels", "{"),
		params("/alertmanagers"),
		params("/alerts"),
		params("/rules"),
		params("/rules", "type", "alert"),
		params("/rules", "type", "other"),
		params("/rules", "group_limit", "0"),
		params("/rules", "match[]", "{"),
		params("/metadata", "limit", "x"),
		params("/metadata", "limit_per_metric", "x"),
		params("/metadata", "metric", "nothing"),
		params("/status/flags"),
		params("/status/walreplay"),
		params("/status/tsdb/blocks"),
		params("/status/tsdb", "limit", "0"),
		params("/status/tsdb", "limit", "x"),
		params("/status/tsdb", "limit", "10001"),
		params("/nothing"),
		params("/"),
		params("/query/"),
		{method: http.MethodDelete, path: "/query"},
		{method: http.MethodHead, path: "/query?query=1"},
		{method: http.MethodPut, path: "/labels"},
		{method: http.MethodPost, path: "/status/flags"},
	}
}

func headerRequests() []httpRequest {
	withHeader := func(q httpRequest, name, value string) httpRequest {
		q.header = http.Header{name: {value}}
		return q
	}
	up, bad, flags := instant("up"), params("/query"), params("/status/walreplay")
	return []httpRequest{
		withHeader(up, "Accept-Encoding", "gzip"),
		withHeader(up, "Accept-Encoding", "deflate"),
		withHeader(up, "Accept-Encoding", "br, gzip"),
		withHeader(up, "Accept-Encoding", "identity"),
		withHeader(bad, "Accept-Encoding", "gzip"),
		withHeader(flags, "Accept-Encoding", "gzip"),
		withHeader(up, "Origin", "https://example.org"),
		withHeader(bad, "Origin", "https://example.org"),
		withHeader(flags, "Origin", "https://example.org"),
		withHeader(params("/metadata", "limit", "x"), "Origin", "https://example.org"),
		withHeader(params("/metadata", "limit", "x"), "Accept-Encoding", "gzip"),
		withHeader(params("/metadata", "metric", "nothing"), "Accept-Encoding", "deflate"),
		withHeader(httpRequest{method: http.MethodOptions, path: "/query"}, "Origin", "https://example.org"),
		withHeader(httpRequest{method: http.MethodOptions, path: "/metadata"}, "Origin", "https://example.org"),
		{method: http.MethodOptions, path: "/query_range"},
		withHeader(up, "Accept", "application/xml"),
		withHeader(up, "Accept", "text/*;q=0.5, */*;q=0.1"),
	}
}

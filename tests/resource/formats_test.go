package resource

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"
	"google.golang.org/protobuf/encoding/protowire"
)

// message returns a random message of protobuf: small numbers of fields, nested messages, texts.
func (c *client) message(depth int) (b []byte) {
	for range c.rng.IntN(8) {
		number := protowire.Number(1 + c.rng.IntN(11))
		switch c.rng.IntN(5) {
		case 0:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), c.rng.Uint64()>>c.rng.IntN(64))
		case 1:
			b = protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), math.Float64bits(c.rng.NormFloat64()))
		case 2:
			b = protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), c.word())
		default:
			if depth > 0 {
				b = protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), c.message(depth-1))
			}
		}
	}
	return b
}

const otlpMetrics = `{"resourceMetrics":[{"resource":{"attributes":[{"key":%q,"value":{"stringValue":%q}}]},"scopeMetrics":[{"scope":{"name":%q},"metrics":[
{"name":%q,"unit":%q,"gauge":{"dataPoints":[{"timeUnixNano":"@","asDouble":1.5,"attributes":[{"key":%q,"value":{"arrayValue":{"values":[{"stringValue":%q}]}}}]}]}},
{"name":%q,"sum":{"aggregationTemporality":1,"isMonotonic":true,"dataPoints":[{"startTimeUnixNano":"1","timeUnixNano":"@","asInt":"7"}]}},
{"name":%q,"histogram":{"aggregationTemporality":2,"dataPoints":[{"timeUnixNano":"@","count":"3","sum":1,"bucketCounts":["1","2"],"explicitBounds":[1]}]}},
{"name":%q,"exponentialHistogram":{"aggregationTemporality":2,"dataPoints":[{"timeUnixNano":"@","count":"3","scale":20,"positive":{"offset":-1000000,"bucketCounts":["1","2"]}}]}},
{"name":%q,"summary":{"dataPoints":[{"timeUnixNano":"@","count":"3","quantileValues":[{"quantile":0.5,"value":2}]}]}}]}]}]}`

// otlp sends metrics as JSON or protobuf.
func (c *client) otlp(ctx context.Context, route string) answer {
	text := []byte(strings.ReplaceAll(c.expand(otlpMetrics), "@", c.pick("1", "18446744073709551615", fmt.Sprint(time.Now().UnixNano()))))
	if c.rng.IntN(3) == 0 {
		return c.request(ctx, route, nil, "application/json", c.spoilt(text))
	}
	m, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(text)
	b := c.message(7)
	if err == nil && c.rng.IntN(3) > 0 {
		b, _ = (&pmetric.ProtoMarshaler{}).MarshalMetrics(m) // it never fails
	}
	return c.request(ctx, route, nil, writeType, c.spoilt(b))
}

// datadog sends series as JSON or protobuf.
func (c *client) datadog(ctx context.Context, route string) answer {
	if c.rng.IntN(3) == 0 || strings.Contains(route, "sketches") {
		return c.request(ctx, route, nil, writeType, c.spoilt(c.message(6)))
	}
	series := c.lines(`{"metric":%q,"points":[[%t,%n]],"type":"rate","interval":%n,"host":%q,"tags":["a:b",%q]},`,
		`{"metric":%q,"type":1,"points":[{"timestamp":%t,"value":%n}],"resources":[{"type":"host","name":%q}]},`)
	return c.request(ctx, route, nil, "application/json", c.spoilt(append(append([]byte(`{"series":[`), series...), "{}]}"...)))
}

// block is the id of a block that clients upload.
const block = "01JDQRSTVWXYZ0123456789AB0"

// upload sends the parts of a block, which is refused at the end.
func (c *client) upload(ctx context.Context, route string) answer {
	part := map[string]string{
		"start":  `{"ulid":"` + block + `","minTime":` + c.pick("1000", "0", c.number()) + `,"maxTime":2000,"version":1,"thanos":{"labels":{"a":%q},"files":[{"rel_path":"index","size_bytes":5},{"rel_path":"chunks/000001","size_bytes":8},{"rel_path":"meta.json"}]}}`,
		"index":  "\xba\xaa\xd7\x00\x02",
		"000001": "\x85\x6f\x4a\x83\x01\x00\x00\x00",
	}[route[strings.LastIndexAny(route, "/=")+1:]]
	return c.request(ctx, route, nil, "application/json", c.spoilt([]byte(c.expand(part))))
}

// pickles sends points as carbon's relays do, or random operations of pickle.
func (c *client) pickles(ctx context.Context, flag string) answer {
	var body []byte
	for range 1 + c.rng.IntN(20) {
		message := "(lp0\n" + strings.Repeat("(S'random;a=b'\n(F"+fmt.Sprint(time.Now().Unix())+"\nF1.5\ntta", 1+c.rng.IntN(1000)) + "."
		if c.rng.IntN(2) == 0 {
			message = "\x80\x02"
			for range c.rng.IntN(2000) {
				message += c.pick("]", "(", "}", ")", "t", "l", "a", "e", "0", "1", "2", "2", "\x85", "\x86", "\x87", "K\x01", "J\x01\x02\x03\x04", "q\x00", "h\x00", "r\x00\x00\x00\x10", "\x94",
					"X\x05\x00\x00\x00a.b.c", "X\xff\xff\xff\x7f", "\x8c\x01a", "\x8a\x08\x01\x02\x03\x04\x05\x06\x07\x08", "G\x3f\xf0\x00\x00\x00\x00\x00\x00", "cos\nsystem\n", "R", "I1\n", "L1L\n", "N", "u", "d", "\x90", ".")
			}
			message += "."
		}
		length := uint32(len(message))
		if c.rng.IntN(20) == 0 {
			length = c.rng.Uint32()
		}
		body = append(binary.BigEndian.AppendUint32(body, length), c.spoilt([]byte(message))...)
	}
	return c.deliver(ctx, "tcp", flag, body)
}

// The rules that clients write are of these tenants and namespaces.
var (
	ruled      = []string{"anonymous", "tenant-0", "tenant-1"}
	namespaces = []string{"a", "b", "a%2Fb", "%C3%BC"}
)

// rules changes or reads rule groups, which are evaluated every second.
func (c *client) rules(ctx context.Context, route string) answer {
	method, _, _ := strings.Cut(route, " ")
	target := strings.NewReplacer("{namespace}", c.pick(namespaces...), "{name}", c.pick("g0", "g1", "g2", url.PathEscape(c.word()))).Replace(strings.TrimPrefix(route, method+" "))
	var body []byte
	if method == http.MethodPost {
		group := map[string]any{"name": c.pick("g0", "g1", "g2", c.word()), "interval": c.pick("1s", "1s", "1s", "1s", "1s", "1s", "2s", "100y", "1s", "1s", "1s", "1ms"), "limit": c.rng.IntN(2) * c.rng.IntN(100)}
		var all []any
		for range 1 + c.rng.IntN(3) {
			r := map[string]any{"record": "random_rule", "expr": c.pick("sum by (job) (up)", "rate(up[5m])", c.expression(3)), "labels": map[string]any{"a": c.pick("b", c.word())}}
			if c.rng.IntN(3) > 0 {
				r = map[string]any{
					"alert": "Random", "expr": c.pick(c.expression(2), "up", "up > 1", "vector(1)", "count by (instance) (up)"), "for": c.pick("0s", "1s", "1h"), "keep_firing_for": c.pick("0s", "1s"),
					"labels": map[string]any{"l": c.template(2)}, "annotations": map[string]any{"a": c.pick("", c.definition()) + c.template(4), "b": c.template(2)},
				}
			}
			all = append(all, r)
		}
		group["rules"] = all
		body, _ = json.Marshal(group) // which YAML includes; texts and numbers always have JSON
		if c.rng.IntN(4) == 0 {
			body = c.spoilt(body)
		}
	}
	if c.rng.IntN(3) == 0 {
		target = "/prometheus" + target
	}
	c.sends(method + " " + target)
	return c.do(ctx, method, target, "application/yaml", strings.NewReader(string(body)), "X-Scope-OrgID", c.pick(ruled...))
}

// template generates a random template of an alert, usually valid.
func (c *client) template(depth int) string {
	if depth <= 0 || c.rng.IntN(6) == 0 {
		return c.pick("x", "{{ $value }}", "{{ $labels.instance }}", "{{ $labels }}", "{{ . }}", "{{ externalURL }}", strings.Repeat("y", c.rng.IntN(5000)))
	}
	sub := func() string { return c.template(depth - 1) }
	value := c.pick("$value", "$labels.instance", "1e300", "nil", `"x"`, `(query "up" | first | value)`, `(printf "%1000d" 1)`, "(len $labels)")
	switch c.rng.IntN(9) {
	case 0:
		return `{{ range query ` + quoted(c.pick("up", "vector(1)", "random_1", c.expression(2))) + ` }}` + sub() + `{{ else }}` + sub() + `{{ end }}`
	case 1:
		return `{{ range $i, $e := ` + c.pick("$labels", `query "up"`, `args 1 2 3`, "1000000000", `reReplaceAll "a" "b" "c"`) + ` }}` + sub() + c.pick("", "{{ break }}", "{{ $i }}{{ $e }}") + `{{ end }}`
	case 2:
		return strings.Repeat(`{{ template "a" . }}`, c.rng.IntN(2)*c.rng.IntN(100)) + sub()
	case 3:
		return `{{ ` + c.pick("humanize", "humanize1024", "humanizeDuration", "humanizePercentage", "humanizeTimestamp", "toTime", "title", "toUpper", "stripPort", "parseDuration", "urlQueryEscape", "html", "js", "len", "not") + ` ` + value + ` }}` + sub()
	case 4:
		return `{{ printf "` + c.pick("%v", "%q", "%1000000d", "%[1]*d", "%.1000000f", "%s", "%x", "%#v", "%T%T%T") + `" ` + value + c.pick("", " 1000000") + ` }}` + sub()
	case 5:
		return `{{ reReplaceAll ` + quoted(c.pick("(a|b)*", "", ".", "(x{1000}){1000}", "(")) + ` "` + c.pick("", "$0$0$0", strings.Repeat("z", 1000)) + `" ` + value + ` }}` + sub()
	case 6:
		return `{{ $x := ` + quoted(strings.Repeat("v", c.rng.IntN(1000))) + ` }}` + strings.Repeat(`{{ $x = printf "%s%s" $x $x }}`, c.rng.IntN(40)) + sub()
	case 7:
		return `{{ if ` + c.pick("and", "or", "eq", "lt", "match") + ` ` + value + ` ` + value + ` }}` + sub() + `{{ else if $value }}` + sub() + `{{ end }}`
	default:
		n := c.rng.IntN(40)
		return `{{ with ` + strings.Repeat("(", n) + value + strings.Repeat(")", n) + ` }}` + sub() + `{{ end }}` + `{{ query "up" | sortByLabel "instance" | first | ` + c.pick("value", "label \"job\"", "strvalue", "printf \"%v\"") + ` }}`
	}
}

// definition defines templates that call each other. They do not have the variables of an alert.
func (c *client) definition() string {
	return strings.NewReplacer("$labels.instance", ".", "$labels", ".", "$value", "1").Replace(
		`{{ define "a" }}` + c.template(2) + c.pick("", strings.Repeat(`{{ template "b" . }}`, 100)) + `{{ end }}{{ define "b" }}` + c.template(2) + c.pick("", strings.Repeat(`{{ template "a" . }}`, 2)) + `{{ end }}`)
}

func quoted(text string) string {
	b, _ := json.Marshal(text) // a text always has JSON
	return string(b)
}

// sql generates a random statement, usually valid.
func (c *client) sql(depth int) string {
	if depth <= 0 || c.rng.IntN(8) == 0 {
		return c.pick("SELECT 1 AS x", "SELECT metric AS x, value FROM samples", "SELECT value AS x FROM samples WHERE metric = 'up'", "SELECT labels['instance'] AS x, count(*) FROM series GROUP BY ALL",
			"SELECT value AS x FROM promql("+literal(c.expression(2))+", now() - INTERVAL 1 HOUR, now(), INTERVAL 15 SECOND)", "SELECT * FROM range("+c.pick("10", "100000", "1000000000000")+") t(x)",
			"SELECT unnest(range(1000000)) AS x", "SELECT count AS x FROM rollup_5m", "SELECT help AS x FROM metadata", "SELECT id AS x FROM blocks", "VALUES (1), (2)",
			"SELECT * FROM promlake_metric('up', NULL, NULL)", "SELECT x FROM "+literal(c.word()), "SELECT "+literal(c.word())+" AS x")
	}
	sub := func() string { return "(" + c.sql(depth-1) + ")" }
	if c.rng.IntN(30) == 0 {
		return c.pick("EXPLAIN ", "EXPLAIN ANALYZE ") + c.sql(depth-1) // within others a syntax error
	}
	switch c.rng.IntN(11) {
	case 0:
		return "WITH a AS " + c.pick("", "MATERIALIZED ", "NOT MATERIALIZED ") + sub() + ", b AS (SELECT * FROM a, a AS c) SELECT * FROM " + c.pick("b", "a, b", "a UNION ALL FROM a", "b, b AS d, b AS e")
	case 1:
		return sub() + c.pick(" UNION ALL ", " UNION ", " INTERSECT ", " EXCEPT ", " UNION ALL BY NAME ") + sub()
	case 2:
		return "SELECT " + c.scalar(depth+2) + " AS x FROM " + sub() + " t"
	case 3:
		return "SELECT *, " + c.pick("row_number()", "sum(1)", "lag(t)", "list(t)", "count(DISTINCT t)") + " OVER (" + c.pick("", "ORDER BY t ", "PARTITION BY t ") + c.pick("", "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING") + ") FROM " + sub() + " t"
	case 4:
		return "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT " + c.pick("x + 1", "x", "x * 2") + " FROM r" + c.pick("", ", r AS s", " WHERE x < 1000") + ") SELECT * FROM r" + c.pick("", " LIMIT 10")
	case 5:
		return "SELECT * FROM " + sub() + " a " + c.pick("CROSS JOIN ", "JOIN ", "LEFT JOIN ", "ASOF JOIN ", "POSITIONAL JOIN ", "SEMI JOIN ") + sub() + " b" + c.pick("", " USING (x)", " ON a.x = b.x", " ON a.x >= b.x")
	case 6:
		return "SELECT " + c.pick("list(t)", "string_agg(t::VARCHAR, ',')", "histogram(t)", "max(t)", "count(*)", "approx_quantile(1, 0.5)", "map_from_entries(list((t, t)))", "first(repeat(t::VARCHAR, 1000))") + " AS x FROM " + sub() + " t"
	case 7:
		return "SELECT * FROM " + sub() + " ORDER BY " + c.pick("ALL", "1", "x", "random()") + c.pick("", " LIMIT 10", " LIMIT 1000000 OFFSET 1000000")
	case 8:
		return c.pick("DESCRIBE ", "SUMMARIZE ", "SELECT DISTINCT * FROM ", "SELECT COLUMNS(*), * FROM ") + sub()
	case 9:
		columns := "1 AS x"
		for i := range c.rng.IntN(2000) {
			columns += fmt.Sprintf(", %s AS c%d", c.pick("1", "'a'", "x", "{'a': 1}"), i)
		}
		return "SELECT " + columns + " FROM " + sub() + " t"
	default:
		return "SELECT * FROM " + sub() + " t WHERE " + c.scalar(depth) + c.pick("", " IS NULL", " IN "+sub(), " LIKE '%a%'", " SIMILAR TO '(a|b)*'")
	}
}

// literal is a text in SQL.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// scalar generates a random expression of SQL.
func (c *client) scalar(depth int) string {
	if depth <= 0 {
		return c.pick("1", "NULL", "t", "x", "'a'", "now()", "$1", "1e300", "labels", "value")
	}
	sub := func() string { return c.scalar(depth - 1) }
	switch c.rng.IntN(8) {
	case 0:
		return "{'a': " + sub() + ", 'b': " + sub() + "}"
	case 1:
		return "[" + sub() + ", " + sub() + "]"
	case 2:
		return "struct_pack(a := " + sub() + ").a"
	case 3:
		return c.pick("repeat(", "repeat(", "concat(", "lpad(") + sub() + "::VARCHAR, " + c.pick("10", "1000000", "1000000000") + ")"
	case 4:
		return "CASE WHEN " + sub() + " IS NULL THEN " + sub() + " ELSE " + sub() + " END"
	case 5:
		return "(SELECT " + sub() + ")"
	case 6:
		return c.pick("list_transform([1, 2], lambda y: ", "coalesce(", "to_json(", "list_value(1, ", "regexp_replace('aaaa', '(a|b)*', ") + sub() + ")"
	default:
		return "(" + sub() + c.pick(" + ", " || ", " = ", " AND ", "::DECIMAL(38, 10) * ", " ^ ") + sub() + ")"
	}
}

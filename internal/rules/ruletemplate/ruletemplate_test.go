package ruletemplate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"text/template/parse"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/prometheus/prometheus/template"
	"github.com/stretchr/testify/require"
)

func TestCheck(t *testing.T) {
	repeat := strings.Repeat
	l := Limits{MaxBytes: 4000, MaxDepth: 10}
	for name, tc := range map[string]struct {
		text string
		ok   bool
	}{
		"empty":                        {"", true},
		"no template":                  {repeat("if (", 100), true},
		"blocks at the limit":          {repeat("{{if .}}", 10) + repeat("{{end}}", 10), true},
		"blocks":                       {repeat("{{if .}}", 11) + repeat("{{end}}", 11), false},
		"blocks without blanks":        {repeat("{{if.}}", 11), false},
		"trimmed blocks":               {repeat("{{- range $x -}}", 11), false},
		"other blocks":                 {repeat(`{{with .}}{{block "x" .}}`, 6), false},
		"siblings":                     {repeat("{{if .}}{{else}}{{end}}", 100), true},
		"chain of else if at limit":    {"{{if .}}" + repeat("{{else if .}}", 9) + "{{end}}{{if .}}{{end}}", true},
		"chain of else if":             {"{{if .}}" + repeat("{{ else  if .}}", 10), false},
		"chains one after another":     {repeat("{{if .}}"+repeat("{{else if .}}", 9)+"{{end}}", 5), true},
		"chain of else with":           {"{{with .}}" + repeat("{{else with .}}", 10), false},
		"parentheses":                  {"{{" + repeat("(", 11) + "1" + repeat(")", 11) + "}}", false},
		"parentheses in blocks":        {repeat("{{if (.)}}", 10), false},
		"closed parentheses":           {"{{" + repeat("(1) ", 100) + "}}", true},
		"end in a text":                {repeat("{{if .}}end", 11), false},
		"end in a string":              {repeat(`{{if "{{end}}"}}`, 11), false},
		"end in a raw string":          {repeat("{{if `\\{{end}}`}}", 11), false},
		"end in an escaped string":     {repeat(`{{if "\"}}{{end}}"}}`, 11), false},
		"end in a character":           {repeat(`{{if '"'}}`, 11), false},
		"end in a comment":             {repeat("{{if .}}{{/* {{end}} */}}", 11), false},
		"end in a trimmed comment":     {repeat("{{if .}}{{- /* {{end}} */ -}}", 11), false},
		"blocks in a comment":          {"{{/*" + repeat("{{if .}}", 100) + "*/}}", true},
		"fields like keywords":         {repeat("{{.if}}{{$x.range}}{{$if}}{{x.with}}", 20), true},
		"end as a field":               {repeat("{{if .}}{{.end}}", 11), false},
		"a comment that does not end":  {"{{/* " + repeat("{{if .}}", 100), true},
		"an action that does not end":  {repeat("{{if .}}", 10) + "{{ x", true},
		"a string that does not end":   {"{{ \"" + repeat("(", 100), true},
		"too long":                     {repeat("x", 4001), false},
		"parentheses that do not open": {"{{" + repeat(")", 100), true},
	} {
		t.Run(name, func(t *testing.T) {
			err := l.Check(tc.text)
			if tc.ok {
				require.NoError(t, err)
				return
			}
			var typed *Error
			require.ErrorAs(t, err, &typed)
			require.Contains(t, err.Error(), typed.Flag)
			require.Greater(t, typed.Needed, typed.Value)
		})
	}
	require.EqualError(t, Limits{}.Check(repeat("x", 70_000)), "template exceeds the limit of 65536 bytes, it has at least 70000; simplify it, or raise --ruler.max-template-bytes")
}

// height is that of a tree, in blocks and parentheses.
func height(n parse.Node) int {
	most := func(nodes ...parse.Node) (h int) {
		for _, n := range nodes {
			h = max(h, height(n))
		}
		return h
	}
	pipe := func(p *parse.PipeNode) (h int) {
		if p == nil {
			return 0
		}
		for _, c := range p.Cmds {
			h = max(h, most(c.Args...))
		}
		return h
	}
	list := func(l *parse.ListNode) int {
		if l == nil {
			return 0
		}
		return most(l.Nodes...)
	}
	switch n := n.(type) {
	case *parse.ActionNode:
		return pipe(n.Pipe)
	case *parse.TemplateNode:
		return pipe(n.Pipe)
	case *parse.PipeNode:
		return 1 + pipe(n)
	case *parse.ChainNode:
		return height(n.Node)
	case *parse.IfNode:
		return 1 + max(pipe(n.Pipe), list(n.List), list(n.ElseList))
	case *parse.WithNode:
		return 1 + max(pipe(n.Pipe), list(n.List), list(n.ElseList))
	case *parse.RangeNode:
		return 1 + max(pipe(n.Pipe), list(n.List), list(n.ElseList))
	}
	return 0
}

// FuzzDepth: the trees of a text that passes the limit are not higher than the limit.
func FuzzDepth(f *testing.F) {
	for _, s := range []string{
		"{{if .}}a{{else if (not .)}}b{{end}}", "{{/* ( */}}{{- (((1))) -}}", "{{range $x := `(`}}{{.end}}{{end}}", `{{"\"(" | printf ("%s" | print)}}`,
		"{{define \"x\"}}{{with .}}{{end}}{{end}}{{block \"y\" .}}{{if.}}{{end}}{{end}}", "{{'\\''}}{{(.)}}", "{{(print \"}}\").x}}",
	} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, text string, depth int) {
		l := Limits{MaxDepth: 1 + depth&15}
		if l.Check(text) != nil {
			return
		}
		root := parse.New("x")
		root.Mode = parse.SkipFuncCheck
		trees := map[string]*parse.Tree{}
		if _, err := root.Parse(text, "", "", trees); err != nil {
			return
		}
		for _, tree := range trees {
			for _, n := range tree.Root.Nodes {
				require.LessOrEqual(t, height(n), l.MaxDepth, text)
			}
		}
	})
}

// series are what queries of templates answer.
func series(n int) (out promql.Vector) {
	for i := range n {
		out = append(out, promql.Sample{Metric: labels.FromStrings("__name__", "m", "i", fmt.Sprint(i)), F: float64(i) * 1.5})
	}
	return out
}

func answers(_ context.Context, expr string, _ time.Time) (promql.Vector, error) {
	switch expr {
	case "m":
		return series(1000), nil
	case "h":
		return promql.Vector{{Metric: labels.FromStrings("i", "0"), H: wide()}}, nil
	case "one", "vector(1)":
		return promql.Vector{{Metric: labels.FromStrings("__name__", "m", "instance", "a.example:90", "i", "0"), F: 1234.5}}, nil
	case "none":
		return nil, nil
	}
	return nil, errors.New("no such metric")
}

func wide() *histogram.FloatHistogram {
	return &histogram.FloatHistogram{Count: 4, Sum: 3, PositiveSpans: []histogram.Span{{Length: 2}}, PositiveBuckets: []float64{1, 3}}
}

// evaluate evaluates an alert over vector(1) as upstream does, with a guard.
func evaluate(t *testing.T, ctx context.Context, l Limits, query rules.QueryFunc, text string) (*rules.Alert, error) {
	t.Helper()
	expr, err := parser.NewParser(parser.Options{}).ParseExpr("vector(1)")
	require.NoError(t, err)
	link := &url.URL{Scheme: "http", Host: "example.com"}
	external := labels.FromStrings("region", "x")
	rule := rules.NewAlertingRule("A", expr, 0, 0, labels.EmptyLabels(), labels.FromStrings("a", text), external, link.String(), true, slog.New(slog.DiscardHandler))
	at := time.Unix(1000, 0)
	ctx = Begin(ctx, &Evaluation{Rules: []rules.Rule{rule}, At: at, ExternalLabels: external, Link: link.String(), URL: link})
	_, err = rule.Eval(ctx, 0, at, NewGuard(l, nil).Around(query), link, 0)
	if err != nil {
		return nil, err
	}
	all := rule.ActiveAlerts()
	require.Len(t, all, 1)
	return all[0], nil
}

// faithful are templates that are within all limits.
var faithful = []string{
	"", "plain", "{{ $labels.instance }} is {{ $value | humanize }}", "{{ .Value }}{{ .Labels.nosuch }}{{ .ExternalLabels.region }}{{ $externalURL }}{{ externalURL }}{{ pathPrefix }}",
	`{{ range query "m" | sortByLabel "i" }}{{ .Labels.i }}={{ .Value }}{{ if gt .Value 12.0 }}{{ break }}{{ else }}{{ continue }}{{ end }}{{ end }}`,
	`{{ with query "one" }}{{ . | first | value | humanize1024 }}{{ . | first | label "instance" | stripPort | stripDomain | title | toUpper }}{{ end }}`,
	`{{ with query "none" }}x{{ else with query "one" }}y{{ (index . 0).Labels.instance }}{{ end }}{{ query "none" | first }}`,
	`{{ query "nosuch" }}`, `{{ range query "nosuch" }}{{ end }}`, `{{ nosuch }}`, `{{ if }}`, `{{ $x }}`, `{{ $value | nosuch }}`, `{{ first 1 }}`,
	`{{ define "x" }}{{ . }}-{{ end }}{{ template "x" 1 }}{{ template "x" $value }}{{ block "y" .Labels }}{{ range $k, $v := . }}{{ $k }}:{{ $v }},{{ end }}{{ end }}`,
	`{{ define "x" }}{{ if gt . 0 }}{{ . }}{{ template "x" (len (slice "abcdefgh" 1 .)) }}{{ end }}{{ end }}{{ template "x" 8 }}`,
	`{{ $x := "a" }}{{ range $i := 5 }}{{ $x = printf "%s%d" $x $i }}{{ end }}{{ $x }}{{ if eq $x "a01234" }}{{ query "one" }}{{ end }}`,
	`{{ reReplaceAll "(.*)\\.(.*)" "$2-$1" $labels.instance }}{{ if match "a.*" $labels.instance }}m{{ end }}{{ reReplaceAll "(" "" "x" }}`,
	`{{ printf "%5.2f|%-8s|%q|%v|%*d|%[1]v|%t|%!|%d" $value "x" "y" $labels 4 5 true }}{{ print 1 "a" nil }}{{ println $labels }}{{ html "<" }}{{ js "'" }}{{ urlquery "a b" }}`,
	`{{ toTime 1700000000 }}{{ (toTime 1700000000).Format "2006-01-02" }}{{ printf "%v" (toTime 5).Local }}{{ printf "%s %v" (toDuration 90) (toDuration 1.5) }}{{ now }}{{ humanizeTimestamp now }}`,
	`{{ with query "h" | first }}{{ .Value }}{{ .Value.Sum }}{{ .Value.Mul 2.0 }}{{ printf "%s" .Value }}{{ end }}{{ (query "h" | first).Value }}`,
	`{{ args 1 "a" $value }}{{ (args "x" 2).arg0 }}{{ with args 1 }}{{ .arg0 }}{{ .arg7 }}{{ end }}`, `{{ and 1 0 }}{{ or "" "b" }}{{ not true }}{{ len $labels }}{{ index $labels "i" }}`,
	"{{- /* c */ -}} { {{- \"{{\" -}} } {{ `raw` }}{{ 'c' }}{{ 1e3 }}{{ nil }}", `{{ if false }}{{ template "nosuch" }}{{ end }}{{ parseDuration "1h" | humanizeDuration }}{{ graphLink "up" }}{{ tableLink "a b" }}`,
	`{{ range $i, $e := args "b" "a" }}{{ $i }}{{ $e }}{{ end }}{{ "x" | safeHtml }}{{ humanizePercentage 0.5 }}{{ strvalue (query "one" | first) }}{{ $ | printf "%v" }}`,
	`{{ range 3 }}{{ . }}{{ else }}e{{ end }}{{ range "abc" }}{{ end }}`, `{{ call 1 }}`,
	`{{ printf "" $labels $labels $labels $labels $labels $labels $labels $labels $labels $labels $labels $labels $labels $labels }}`, `{{ .Labels | printf "%q%9v" . }}{{ humanize "x" }}`, `{{ $labels.instance.x }}`, `{{ len 3 }}`, `{{ eq 1 "a" }}`, `{{ .Labels.instance | len | printf "%03d" }}`,
}

// TestTrialsDoWhatExpansionsDo: templates within the limits have upstream's result, and their trial
// asks for the same, ends in the same way, and counts at least the text that they make.
func TestTrialsDoWhatExpansionsDo(t *testing.T) {
	for _, text := range faithful {
		t.Run(text, func(t *testing.T) {
			ctx, at, link := context.Background(), time.Unix(1000, 0), &url.URL{Scheme: "http", Host: "example.com"}
			expand := func(text string, funcs func(*template.Expander), query template.QueryFunc) (string, error) {
				sample, _ := answers(ctx, "vector(1)", at)
				data := template.AlertTemplateData(sample[0].Metric.Map(), map[string]string{"region": "x"}, link.String(), sample[0])
				x := template.NewTemplateExpander(ctx, text, "__alert_A", data, model.TimeFromUnix(1000), query, link, nil)
				funcs(x)
				return x.Expand()
			}
			var asked, tried []string
			noting := func(to *[]string, query rules.QueryFunc) template.QueryFunc {
				return func(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
					*to = append(*to, expr)
					return query(ctx, expr, at)
				}
			}
			want, wantErr := expand(definitions+text, func(*template.Expander) {}, noting(&asked, answers))
			b := &budget{Limits: Limits{}.filled(), ctx: ctx, query: answers, answers: map[string]*answer{}}
			with, err := instrumented("__alert_A", definitions+text)
			if err != nil {
				require.Error(t, wantErr)
			} else {
				got, err := expand(with, func(x *template.Expander) { x.Funcs(b.funcs()) }, noting(&tried, b.ask))
				require.NoError(t, b.err)
				require.Equal(t, wantErr == nil, err == nil, "%v; %v\n%s", wantErr, err, with)
				require.Equal(t, asked, tried)
				require.GreaterOrEqual(t, b.text, len(want))
				require.NotContains(t, got, "plain")
			}
			alert, err := evaluate(t, ctx, Limits{}, answers, text)
			require.NoError(t, err)
			if wantErr != nil {
				want = fmt.Sprintf("<error expanding template: %s>", wantErr)
			}
			if !strings.Contains(want, "[0x") { // an address, which differs each time
				require.Equal(t, want, alert.Annotations.Get("a"))
			}
		})
	}
}

// TestTemplatesAreBounded: each of these took gigabytes, or a core for hours.
func TestTemplatesAreBounded(t *testing.T) {
	for name, tc := range map[string]struct{ text, limit string }{
		"doubled":                  {`{{ $x := "aaaaaaaaaaaaaaaa" }}` + strings.Repeat(`{{ $x = printf "%s%s" $x $x }}`, 28), limitText},
		"nested loops":             {`{{ $s := query "m" }}{{ range $s }}{{ range $s }}{{ range $s }}{{ range $s }}{{ end }}{{ end }}{{ end }}{{ end }}`, limitSteps},
		"wide numbers":             {`{{ range query "m" }}{{ range query "m" }}{{ printf "%1000000d" 1 }}{{ end }}{{ end }}`, limitText},
		"wide texts":               {strings.Repeat(`{{ printf "%1000000s" "x" }}`, 20), limitText},
		"wide in one format":       {`{{ printf "` + strings.Repeat("%1000000d", 1000) + `" 1 }}`, limitText},
		"width as an argument":     {`{{ printf "` + strings.Repeat("%[1]*d", 1000) + `" 1000000 }}`, limitText},
		"wide elements":            {`{{ printf "%1000000v" $labels }}{{ printf "%1000000v" (args 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20) }}`, limitText},
		"numbers":                  {`{{ range 1000000000 }}{{ end }}`, limitSteps},
		"queries in loops":         {`{{ range query "m" }}{{ $x := query "m" }}{{ end }}`, limitSteps},
		"text":                     {`{{ range 1000000 }}` + strings.Repeat("x", 1000) + `{{ end }}`, limitText},
		"recursion":                {`{{ define "x" }}{{ template "x" }}{{ end }}{{ template "x" }}`, limitDepth},
		"recursion of itself":      {`{{ template "__alert_A" . }}`, limitDepth},
		"calls of calls":           {calls(40), limitSteps},
		"replacement":              {`{{ $x := printf "%30000d" 1 }}{{ reReplaceAll "" $x $x }}`, limitText},
		"replacement by groups":    {`{{ $x := printf "%30000d" 1 }}{{ reReplaceAll "(.*)" "` + strings.Repeat("$1", 1000) + `" $x }}`, limitText},
		"patterns":                 {`{{ match "((x{100}){100}){100}" "x" }}`, limitText},
		"matches":                  {`{{ $x := printf "%500000d" 1 }}{{ range 1000 }}{{ $y := match "(a|b|c)*d" $x }}{{ end }}`, limitSteps},
		"escapes":                  {`{{ $x := "%" }}{{ range 1000000 }}{{ $x = urlQueryEscape $x }}{{ end }}`, limitText},
		"formats of times":         {`{{ $t := toTime 1671667200 }}{{ $x := "1" }}{{ range 1000 }}{{ $x = $t.Format $x }}{{ end }}`, limitText},
		"a long pipeline":          {`{{ $t := toTime 1670000000 }}{{ "1" ` + strings.Repeat("| printf `%[1]s%[1]s` ", 60) + `}}`, limitText},
		"compared texts":           {`{{ $x := printf "%400000d" 1 }}{{ $y := printf "%400000d" 1 }}{{ range 1000000 }}{{ if eq $x $y }}{{ end }}{{ end }}`, limitSteps},
		"compared in a pipeline":   {`{{ $x := printf "%400000d" 1 }}{{ range 1000000 }}{{ if $x | eq $x }}{{ end }}{{ end }}`, limitText},
		"maps of maps":             {`{{ $a := args 1 }}` + strings.Repeat(`{{ $a = args $a $a }}`, 28) + `{{ $a }}`, limitText},
		"maps of maps in a format": {`{{ $a := args 1 }}` + strings.Repeat(`{{ $a = args $a $a }}`, 28) + `{{ $b := printf "%v" $a }}`, limitText},
		"kept maps":                {`{{ $a := args 1 }}{{ range 100000 }}{{ $a = args $a }}{{ end }}`, limitText},
		"many variables":           {strings.Repeat(`{{ $x := 1 }}`, 4500) + `{{ range 1000000 }}{{ if $labels.i }}{{ end }}{{ end }}`, limitSteps},
		"too long":                 {strings.Repeat("x", 1<<17), limitBytes},
		"too deep":                 {strings.Repeat("{{if.}}", 5000), limitDepth},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := evaluate(t, t.Context(), Limits{MaxSteps: 250_000}, answers, tc.text)
			var typed *Error
			require.ErrorAs(t, err, &typed)
			require.Equal(t, tc.limit, typed.Limit, "%v", err)
			require.ErrorContains(t, err, `alert "A"`)
		})
	}
}

// calls are defined templates that call one another, twice each.
func calls(n int) string {
	out := `{{ define "x0" }}{{ end }}`
	for i := range n {
		out += fmt.Sprintf(`{{ define "x%d" }}{{ template "x%d" }}{{ template "x%d" }}{{ end }}`, i+1, i, i)
	}
	return out + fmt.Sprintf(`{{ template "x%d" }}`, n)
}

// TestAddressesAreRefused: with them, a template could do another thing when it is expanded than
// when it was tried.
func TestAddressesAreRefused(t *testing.T) {
	for _, text := range []string{
		`{{ if match "0.$" (printf "%v" (query "m")) }}{{ end }}`, `{{ $x := printf "%p" (query "m" | first) }}`, `{{ $x := printf "%d" (toDuration 1) }}`, `{{ $x := printf "%#v" (toDuration 1) }}`,
		`{{ $x := print (query "m") }}`, `{{ $x := html (query "m") }}`, `{{ $x := printf "%p" $labels }}`, `{{ $x := printf "%v" (args (query "one")) }}`,
	} {
		_, err := evaluate(t, t.Context(), Limits{}, answers, text)
		require.ErrorIs(t, err, errAddress, text)
	}
}

func TestCancelledExpansionsEnd(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the group is gone")
	query := func(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
		if expr == "one" {
			cancel(gone)
		}
		return answers(ctx, expr, at)
	}
	_, err := evaluate(t, ctx, Limits{MaxSteps: 1 << 40}, query, `{{ $x := query "one" }}{{ range 1000000000000 }}{{ end }}`)
	require.ErrorIs(t, err, gone)
}

// TestQueriesOfTemplates: each is asked once for all alerts, deep ones never.
func TestQueriesOfTemplates(t *testing.T) {
	var asked []string
	query := func(ctx context.Context, expr string, at time.Time) (promql.Vector, error) {
		asked = append(asked, expr)
		return answers(ctx, expr, at)
	}
	alert, err := evaluate(t, t.Context(), Limits{}, query, `{{ query "one" | first | value }}{{ range query "one" }}{{ .Value }}{{ end }}`)
	require.NoError(t, err)
	require.Equal(t, "1234.51234.5", alert.Annotations.Get("a"))
	require.Equal(t, []string{"vector(1)", "one"}, asked)
	alert, err = evaluate(t, t.Context(), Limits{}, query, `{{ query "`+strings.Repeat("(", 5000)+`" }}`)
	require.NoError(t, err)
	require.Contains(t, alert.Annotations.Get("a"), "--query.max-expression-depth")
	require.Len(t, asked, 3)
}

func TestParse(t *testing.T) {
	for name, text := range map[string]string{
		"annotation": `{groups: [{name: g, rules: [{alert: A, expr: up, annotations: {a: "%s"}}]}]}`,
		"label":      `{groups: [{name: g, rules: [{alert: A, expr: up, labels: {a: "%s"}}]}]}`,
		"group":      `{groups: [{name: g, labels: {a: "%s"}, rules: [{alert: A, expr: up}]}]}`,
		"unknown":    `{groups: [{name: g, x: y, rules: [{alert: A, expr: up, annotations: {a: "%s"}}]}]}`,
	} {
		parse := func(template string) []error {
			_, errs := Limits{}.Parse(fmt.Appendf(nil, text, template), true, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
			return errs
		}
		require.Empty(t, parse("{{ $value }}"), name)
		errs := parse(strings.Repeat("{{if.}}", 5000))
		require.Len(t, errs, 1, name)
		var typed *Error
		require.ErrorAs(t, errs[0], &typed)
		require.ErrorContains(t, errs[0], `group "g"`)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr("vector(1)")
	require.NoError(b, err)
	link := &url.URL{Scheme: "http", Host: "example.com"}
	vector := series(1000)
	query := func(context.Context, string, time.Time) (promql.Vector, error) { return vector, nil }
	for _, guarded := range []bool{false, true} {
		b.Run(fmt.Sprintf("alerts=1000/guarded=%t", guarded), func(b *testing.B) {
			rule := rules.NewAlertingRule("A", expr, 0, 0, labels.FromStrings("severity", "page"), labels.FromStrings("summary", "{{ $labels.i }} is at {{ $value | humanize }}"), labels.EmptyLabels(), link.String(), true, slog.New(slog.DiscardHandler))
			at, ask := time.Unix(1000, 0), rules.QueryFunc(query)
			if guarded {
				ask = NewGuard(Limits{}, nil).Around(query)
			}
			b.ReportAllocs()
			for b.Loop() {
				ctx := Begin(b.Context(), &Evaluation{Rules: []rules.Rule{rule}, At: at, Link: link.String(), URL: link})
				if _, err := rule.Eval(ctx, 0, at, ask, link, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

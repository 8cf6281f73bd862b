package lineprotocol_test

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/influxdata/line-protocol/v2/lineprotocol"
	"github.com/stretchr/testify/require"

	ours "github.com/promlake/promlake/internal/senders/lineprotocol"
)

// read prints all lines of a body, and the errors of those that cannot be read.
func read(body string) []string {
	var out []string
	p := ours.NewParser([]byte(body))
	for {
		l, err := p.Next()
		switch {
		case err != nil:
			out = append(out, err.Error())
		case l == nil:
			return out
		default:
			out = append(out, text(l))
		}
	}
}

func text(l *ours.Line) string {
	measurement, tags, err := ours.Split(l.Series, nil)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q", measurement)
	for _, t := range tags {
		fmt.Fprintf(&b, " %q=%q", t.Key, t.Value)
	}
	b.WriteString(" |")
	for _, f := range l.Fields {
		fmt.Fprintf(&b, " %q=", ours.Unescape(f.Name))
		if f.String {
			b.WriteString("string")
		} else {
			fmt.Fprint(&b, f.Value)
		}
	}
	if l.HasTime {
		fmt.Fprintf(&b, " @%d", l.Time)
	}
	return b.String()
}

func TestParser(t *testing.T) {
	for _, tc := range []struct {
		body string
		want []string
	}{
		{"", nil},
		{"\n \n# a comment\n", nil},
		{"cpu v=1", []string{`"cpu" | "v"=1`}},
		{"cpu,host=a,mode=user v=1,w=2i,x=3u,y=t,z=FALSE,s=\"a, b=\\\"c\\\" d\" 1700000000000000000\r\nmem v=-1.5e3 -5\n", []string{
			`"cpu" "host"="a" "mode"="user" | "v"=1 "w"=2 "x"=3 "y"=1 "z"=0 "s"=string @1700000000000000000`,
			`"mem" | "v"=-1500 @-5`,
		}},
		{`a\,b\ c,k\=\,=v\ \,\= f\ \==1`, []string{`"a,b c" "k=,"="v ,=" | "f ="=1`}},
		{`a=b,c=d\x\ v=1`, []string{`line 1: missing fields`}},
		{`a=b,c=d\x v=1`, []string{`"a=b" "c"="d\\x" | "v"=1`}},
		{"a s=\"two\nlines\" 7\nb v=x\nc v=2", []string{`"a" | "s"=string @7`, `line 3: value "x" is neither a number, a boolean nor a string in quotes`, `"c" | "v"=2`}},
		{"ünïts,städt=köln wért=1", []string{`"ünïts" "städt"="köln" | "wért"=1`}},
		{",a=b v=1", []string{"line 1: missing measurement"}},
		{"a", []string{"line 1: missing fields"}},
		{"a ", []string{"line 1: missing fields"}},
		{"a\nb v=1", []string{"line 1: missing fields", `"b" | "v"=1`}},
		{"a,b v=1", []string{"a tag must have the form key=value, and neither may be empty"}},
		{"a,b= v=1", []string{"a tag must have the form key=value, and neither may be empty"}},
		{"a,b=c=d v=1", []string{"a tag must have the form key=value, and neither may be empty"}},
		{"a v", []string{"line 1: a field must have the form key=value, and neither may be empty"}},
		{"a v=", []string{"line 1: a field must have the form key=value, and neither may be empty"}},
		{"a =1", []string{"line 1: a field must have the form key=value, and neither may be empty"}},
		{"a v=1,", []string{"line 1: missing fields"}},
		{`a v="x`, []string{"line 1: a string value has no closing quote"}},
		{"a v=1 x", []string{"line 1: the timestamp is not a 64-bit integer"}},
		{"a v=1 1.5", []string{"line 1: the timestamp is not a 64-bit integer"}},
		{"a v=1 99999999999999999999", []string{"line 1: the timestamp is not a 64-bit integer"}},
		{"a v=1 1 2", []string{"line 1: unexpected text after the timestamp"}},
		{"a v=1e400", []string{`line 1: value "1e400" is not a 64-bit floating-point number`}},
		{"a v=NaN", []string{`line 1: value "NaN" is neither a number, a boolean nor a string in quotes`}},
		{"a v=0x10", []string{`line 1: value "0x10" is neither a number, a boolean nor a string in quotes`}},
		{"a v=1.5i", []string{`line 1: value "1.5i" is not a 64-bit integer`}},
		{"a v=-1u", []string{`line 1: value "-1u" is not a 64-bit unsigned integer`}},
		{"a v=9223372036854775807i", []string{`"a" | "v"=9.223372036854776e+18`}},
		{"a\xff v=1\nb v=1", []string{"line 1: the line is not valid UTF-8", `"b" | "v"=1`}},
	} {
		require.Equal(t, tc.want, read(tc.body), "%q", tc.body)
	}
}

// FuzzParser compares with InfluxData's own decoder: what it reads, we read equally; we read
// nothing that it refuses.
func FuzzParser(f *testing.F) {
	for _, s := range []string{"cpu,host=a v=1,w=2i,x=3u,y=t 5\n", `a\,b\ c,k\=\,=v\ \,\= f\ \==1`, "a s=\"x\\\\\\\"\" 1", "a=b,c=d v=1", "a v=1 1 2", "a,b=\\ v=1"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if bytes.ContainsRune(body, '#') || bytes.ContainsFunc(body, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return // upstream refuses control characters; both split lines, but report errors at different places
		}
		theirs, theirErr := upstream(body)
		p := ours.NewParser(body)
		l, err := p.Next()
		got := ""
		if err == nil && l != nil {
			got = text(l)
			_, _, err = ours.Split(l.Series, nil)
		}
		if err != nil {
			got = ""
		}
		if theirErr != nil {
			require.Empty(t, got, "%q: upstream: %v", body, theirErr)
			return
		}
		if theirs != "" {
			require.Equal(t, theirs, got, "%q: %v", body, err)
		}
	})
}

// upstream prints the first line of a body as text does.
func upstream(body []byte) (string, error) {
	d := lineprotocol.NewDecoderWithBytes(body)
	if !d.Next() {
		return "", nil
	}
	m, err := d.Measurement()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q", m)
	for {
		k, v, err := d.NextTag()
		if err != nil {
			return "", err
		}
		if k == nil {
			break
		}
		fmt.Fprintf(&b, " %q=%q", k, v)
	}
	b.WriteString(" |")
	for {
		k, kind, v, err := d.NextFieldBytes()
		if err != nil {
			return "", err
		}
		if k == nil {
			break
		}
		value, err := lineprotocol.NewValueFromBytes(kind, v)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, " %q=", k)
		switch kind {
		case lineprotocol.String:
			b.WriteString("string")
		case lineprotocol.Int:
			fmt.Fprint(&b, float64(value.IntV()))
		case lineprotocol.Uint:
			fmt.Fprint(&b, float64(value.UintV()))
		case lineprotocol.Bool:
			n := 0
			if value.BoolV() {
				n = 1
			}
			fmt.Fprint(&b, n)
		case lineprotocol.Float:
			if math.IsInf(value.FloatV(), 0) || math.IsNaN(value.FloatV()) {
				return "", fmt.Errorf("not finite")
			}
			fmt.Fprint(&b, value.FloatV())
		}
	}
	at, err := d.TimeBytes()
	if err != nil {
		return "", err
	}
	if len(at) > 0 {
		n, err := strconv.ParseInt(string(at), 10, 64)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, " @%d", n)
	}
	return b.String(), nil
}

func BenchmarkParser(b *testing.B) {
	var body bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&body, "cpu,host=server-%d,region=eu-central-1,cpu=cpu%d usage_user=%d.25,usage_system=3.5,usage_idle=90.125,usage_iowait=0.5 17000000000%05d000\n", i%50, i%16, i%97, i)
	}
	b.SetBytes(int64(body.Len()))
	samples := 0
	for b.Loop() {
		p := ours.NewParser(body.Bytes())
		for {
			l, err := p.Next()
			if err != nil {
				b.Fatal(err)
			}
			if l == nil {
				break
			}
			samples += len(l.Fields)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(samples), "ns/sample")
}

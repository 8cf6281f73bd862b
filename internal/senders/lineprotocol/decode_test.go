package lineprotocol_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/senders/lineprotocol"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

const came = 1_700_000_000_000 // ms

func request(body string) lineprotocol.Request {
	p, err := lineprotocol.ParsePrecision("ns")
	if err != nil {
		panic(err)
	}
	return lineprotocol.Request{Body: []byte(body), Naming: lineprotocol.Naming{Separator: "_", DatabaseLabel: "db"}, Precision: p, Came: time.UnixMilli(came)}
}

// decode returns the samples of a request as text, sorted, and the batch's offence.
func decode(t testing.TB, r lineprotocol.Request, g *remotewrite.Generation) (samples []string, strs int, offence error) {
	t.Helper()
	limits := remotewrite.DefaultLimits()
	rules := remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(r.Came), MaxWindows: 100}
	room := remotewrite.MostRoom(int64(len(r.Body)))
	b, res, err := lineprotocol.Decode(r, g, rules, remotewrite.NewRoom(len(r.Body), room, room, nil))
	require.NoError(t, err)
	defer b.Release()
	g.Table.Lock()
	v := g.Table.View()
	g.Table.Unlock()
	for _, f := range b.Floats {
		samples = append(samples, fmt.Sprintf("%s %v @%d", remotewritetest.Labels(&v, f.Ref), f.V, f.T-came))
	}
	slices.Sort(samples)
	return samples, res, b.Err
}

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		request func(*lineprotocol.Request)
		body    string
		want    []string
		strings int
		offence string
	}{
		"fields are metrics, tags are labels": {body: `cpu,host=a,az=b user=1,n=2i,up=t,msg="x" 1700000001000000000`, strings: 1, want: []string{
			`{__name__="cpu_n", az="b", host="a"} 2 @1000`, `{__name__="cpu_up", az="b", host="a"} 1 @1000`, `{__name__="cpu_user", az="b", host="a"} 1 @1000`,
		}},
		"tags in another order are the same series": {body: "m,a=1,b=2 v=1 1700000000000000000\nm,b=2,a=1 v=2 1700000001000000000", want: []string{
			`{__name__="m_v", a="1", b="2"} 1 @0`, `{__name__="m_v", a="1", b="2"} 2 @1000`,
		}},
		"without a timestamp the time of the request counts": {body: "m v=1", want: []string{`{__name__="m_v"} 1 @0`}},
		"nanoseconds before a millisecond belong to the one before": {body: "m v=1 -1\nm v=2 1999999", want: []string{
			`{__name__="m_v"} 1 @-1700000000001`, `{__name__="m_v"} 2 @-1699999999999`,
		}},
		"the database is a label": {request: func(r *lineprotocol.Request) { r.Database = "telegraf" }, body: "m v=1", want: []string{`{__name__="m_v", db="telegraf"} 1 @0`}},
		"a tag of that name wins": {request: func(r *lineprotocol.Request) { r.Database = "telegraf" }, body: "m,db=own v=1", want: []string{`{__name__="m_v", db="own"} 1 @0`}},
		"bad lines leave the others": {
			body: "m v=1\nbroken\nm,a v=2\nm,a=1,a=2 v=3\nm v=4 99999999999999999\n", want: []string{`{__name__="m_v"} 1 @0`, `{__name__="m_v"} 4 @-1600000000001`},
			offence: "line 2: missing fields (invalid_line)",
		},
		"bad tags before a string of two lines": {body: "m v=1\nm,a s=\"x\ny\",v=2", strings: 1, want: []string{`{__name__="m_v"} 1 @0`},
			offence: "line 2: a tag must have the form key=value, and neither may be empty (invalid_line)"},
		"duplicate tags": {body: "m,a=1,a=2 v=3", offence: `duplicate label name "a" in series {__name__="m_v", a="1", a="2"} (duplicate_label_names)`},
		"the future":     {body: "m v=1 1800000000000000000", offence: "timestamp 1800000000000 ms is too far in the future: the limit is now 1700000600000 ms (too_far_in_future); it is set by creation_grace_period of the tenant, or --validation.create-grace-period"},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(tc.body)
			if tc.request != nil {
				tc.request(&r)
			}
			g := remotewrite.NewGeneration(7)
			for range 2 { // the second time all series are known
				got, strs, offence := decode(t, r, g)
				require.Equal(t, tc.want, got)
				require.Equal(t, tc.strings, strs)
				if tc.offence == "" {
					require.NoError(t, offence)
				} else {
					require.EqualError(t, offence, tc.offence)
				}
			}
		})
	}
}

// TestKeysAreApart: requests and lines that differ only in where one part ends are different
// series.
func TestKeysAreApart(t *testing.T) {
	g := remotewrite.NewGeneration(7)
	seen := map[string]bool{}
	for _, tc := range []struct{ db, line string }{
		{"a", "b v=1"}, {"a\x00b", "b v=1"}, {"", "ab v=1"}, {"ab", "v=1 v=1"}, {"", "a\x00b c=1"}, {"", "a b\x00c=1"}, {"", "a_b c=1"}, {"", "a b_c=1"},
	} {
		r := request(tc.line)
		r.Database = tc.db
		got, _, err := decode(t, r, g)
		require.NoError(t, err, tc)
		require.Len(t, got, 1, tc)
		seen[got[0]] = true
	}
	// The last two are one metric by the rule of names.
	require.Len(t, seen, 7)
}

func TestPrecision(t *testing.T) {
	for _, tc := range []struct {
		precision, time string
		want            int64
	}{
		{"", "1700000000123456789", 1700000000123}, {"us", "1700000000123456", 1700000000123}, {"ms", "1700000000123", 1700000000123},
		{"s", "1700000000", 1700000000000}, {"m", "28333333", 1699999980000}, {"h", "472222", 1699999200000},
		{"auto", "1700000000", 1700000000000}, {"auto", "1700000000123", 1700000000123}, {"auto", "1700000000123456", 1700000000123},
		{"auto", "1700000000123456789", 1700000000123}, {"auto", "4999999999999", 4999999999999 - 1<<62}, {"auto", "-1700000000", -1700000000000}, {"auto", "0", 0},
	} {
		p, err := lineprotocol.ParsePrecision(tc.precision)
		require.NoError(t, err)
		r := request("m v=1 " + tc.time)
		r.Precision = p
		got, _, offence := decode(t, r, remotewrite.NewGeneration(7))
		if tc.want < -1<<60 { // in the future
			require.ErrorContains(t, offence, "too_far_in_future")
			continue
		}
		require.NoError(t, offence, tc)
		require.Equal(t, []string{fmt.Sprintf(`{__name__="m_v"} 1 @%d`, tc.want-came)}, got, tc)
	}
	_, err := lineprotocol.ParsePrecision("fortnight")
	require.ErrorContains(t, err, `precision "fortnight" is not one of`)
}

func BenchmarkDecode(b *testing.B) {
	var body bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&body, "cpu,host=server-%d,region=eu-central-1,cpu=cpu%d usage_user=%d.25,usage_system=3.5,usage_idle=90.125,usage_iowait=0.5 1699999999%06d000\n", i%50, i/50, i%97, i)
	}
	r := request(body.String())
	limits := remotewrite.DefaultLimits()
	rules := remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(r.Came), MaxWindows: 100}
	g := remotewrite.NewGeneration(7)
	room := remotewrite.MostRoom(int64(len(r.Body)))
	samples := 0
	for b.Loop() {
		batch, _, err := lineprotocol.Decode(r, g, rules, remotewrite.NewRoom(len(r.Body), room, room, nil))
		if err != nil {
			b.Fatal(err)
		}
		samples += len(batch.Floats)
		batch.Release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(samples), "ns/sample")
}

// FuzzDecode holds that a request is decoded equally whether its series are known or not, and that
// no line but a bad one is lost.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		`cpu,host=a,az=b user=1,n=2i,up=t,msg="x" 1700000001000000000`, "m,a=1,b=2 v=1\nm,b=2,a=1 v=2 1700000001000000000", "m,db=own v=1",
		"m v=1\nbroken\nm,a v=2\nm,a=1,a=2 v=3\n", "m,a s=\"x\ny\",v=2", `m\ n,k\,=\=v f\ =1u -1`, "# a comment\nm v=1 9223372036854775807",
	} {
		for _, precision := range []string{"ns", "ms", "h", "auto"} {
			f.Add([]byte(body), precision, "telegraf")
		}
	}
	f.Fuzz(func(t *testing.T, body []byte, precision, database string) {
		r := request(string(body))
		r.Database = database
		var err error
		if r.Precision, err = lineprotocol.ParsePrecision(precision); err != nil {
			return
		}
		g := remotewrite.NewGeneration(7)
		samples, strs, offence := decode(t, r, g)
		r.Body = slices.Clone(body)
		again, strsAgain, offenceAgain := decode(t, r, g)
		require.Equal(t, samples, again)
		require.Equal(t, strs, strsAgain)
		require.Equal(t, fmt.Sprint(offence), fmt.Sprint(offenceAgain))
		if offence != nil {
			return
		}
		fields := 0
		p := lineprotocol.NewParser(slices.Clone(body))
		for l, err := p.Next(); l != nil || err != nil; l, err = p.Next() {
			require.NoError(t, err)
			fields += len(l.Fields)
		}
		require.Equal(t, fields, len(samples)+strs)
	})
}

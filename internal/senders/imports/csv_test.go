package imports_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/senders/imports"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

const now = 1_700_000_000_000 // ms

func tryCSV(r imports.CSV, room int64, g *remotewrite.Generation, extra ...series.Label) (samples []string, rejected int, offence, err error) {
	limits := remotewrite.DefaultLimits()
	rules := remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now)), MaxWindows: 100, Labels: series.LastOfEach(extra)}
	b, err := imports.DecodeCSV(r, g, rules, remotewrite.NewRoom(len(r.Body), room, room, nil))
	if err != nil {
		return nil, 0, nil, err
	}
	defer b.Release()
	g.Table.Lock()
	v := g.Table.View()
	g.Table.Unlock()
	for _, f := range b.Floats {
		samples = append(samples, fmt.Sprintf("%s %v @%d", remotewritetest.Labels(&v, f.Ref), f.V, f.T-now))
	}
	slices.Sort(samples)
	return samples, b.Rejected, b.Err, nil
}

func formatOf(t testing.TB, text string) imports.CSVFormat {
	t.Helper()
	f, err := imports.ParseCSVFormat(text)
	require.NoError(t, err)
	return f
}

func TestCSV(t *testing.T) {
	for name, tc := range map[string]struct {
		format, body string
		labels       []series.Label
		want         []string
	}{
		"labels, metrics, a time": {
			format: "2:label:ticker,3:metric:price,1:time:unix_s,4:metric:volume",
			body:   "1700000000,GOOG,1.5,7\n1699999999.5,\"MS,FT\",2,\n\n",
			want:   []string{`{__name__="price", ticker="GOOG"} 1.5 @0`, `{__name__="price", ticker="MS,FT"} 2 @-500`, `{__name__="volume", ticker="GOOG"} 7 @0`},
		},
		"no time":        {format: "1:metric:a,3:label:l", body: "1,,x\r\n", want: []string{`{__name__="a", l="x"} 1 @-7`}},
		"rfc3339":        {format: "1:metric:a,2:time:rfc3339", body: "1,2023-11-14T23:13:20+01:00\n", want: []string{`{__name__="a"} 1 @0`}},
		"a layout":       {format: "2:time:custom:2 Jan, 2006 15:04,1:metric:a", body: "1,\"14 Nov, 2023 22:13\"\n", want: []string{`{__name__="a"} 1 @-20000`}},
		"milliseconds":   {format: "1:metric:a,2:time:unix_ms", body: "NaN,1700000000001\n", want: []string{`{__name__="a"} NaN @1`}},
		"microseconds":   {format: "1:metric:a,2:time:unix_us", body: "1e3,1700000000001999\n", want: []string{`{__name__="a"} 1000 @1`}},
		"nanoseconds":    {format: "1:metric:a,2:time:unix_ns", body: "-Inf,1700000000000000000\n", want: []string{`{__name__="a"} -Inf @0`}},
		"labels replace": {format: "1:metric:a,2:label:l", body: "1,x\n", labels: []series.Label{{Name: "l", Value: "y"}}, want: []string{`{__name__="a", l="y"} 1 @-7`}},
		"empty labels":   {format: "1:metric:a,2:label:l", body: "1,\n", want: []string{`{__name__="a"} 1 @-7`}},
	} {
		t.Run(name, func(t *testing.T) {
			g := remotewrite.NewGeneration(7)
			for range 2 { // the second time all series are known
				got, _, offence, err := tryCSV(imports.CSV{Body: []byte(tc.body), Format: formatOf(t, tc.format), Time: now - 7}, 1<<30, g, tc.labels...)
				require.NoError(t, err)
				require.NoError(t, offence)
				require.Equal(t, tc.want, got)
			}
		})
	}
}

// TestBadLinesOfCSV: a line that cannot be read is named, and the others are stored.
func TestBadLinesOfCSV(t *testing.T) {
	for bad, want := range map[string]string{
		"x,1,1700000000":     `line 2: column 1: "x" is not a number (invalid_line)`,
		"1,1":                `line 2: 2 columns, the format has 3`,
		"1,1,noon":           `line 2: column 3: "noon" is not a number of seconds`,
		"1,1,9e30":           `"9e30" is not a number of seconds`,
		"1,\"x\"y,170000000": `line 2: column 5: `,
		"1,1,1900000000":     `too_far_in_future`,
		"1,\xff,1700000000":  `is not valid UTF-8`,
	} {
		body := "1,1,1700000000\n" + bad + "\n2,1,1700000000\n"
		got, rejected, offence, err := tryCSV(imports.CSV{Body: []byte(body), Format: formatOf(t, "1:metric:m,2:label:l,3:time:unix_s")}, 1<<30, remotewrite.NewGeneration(7))
		require.NoError(t, err)
		require.ErrorContains(t, offence, want, bad)
		require.Equal(t, 1, rejected)
		require.Equal(t, []string{`{__name__="m", l="1"} 1 @0`, `{__name__="m", l="1"} 2 @0`}, got, bad)
	}
}

func TestBadFormats(t *testing.T) {
	for format, want := range map[string]string{
		"":                                       "has not the form",
		"1":                                      `"1" has not the form <column from 1 to 10000>`,
		"0:metric:x":                             "has not the form",
		"10001:metric:x":                         "has not the form",
		"1:metric:":                              "has not the form",
		"1:value:x":                              `"value" is not one of metric, label, time`,
		"1:metric:x,1:metric:y":                  "column 1 is named twice",
		"1:label:x":                              "no column is a metric",
		"1:metric:x,2:time:noon":                 `time "noon" is not one of unix_s`,
		"1:metric:x,2:time:unix_s,3:time:unix_s": "two columns are a time",
	} {
		_, err := imports.ParseCSVFormat(format)
		require.ErrorContains(t, err, want, format)
	}
}

func TestRoomOfCSV(t *testing.T) {
	var dense *remotewrite.DenseError
	_, _, _, err := tryCSV(imports.CSV{Body: []byte(strings.Repeat(",", 1<<20)), Format: formatOf(t, "1:metric:m")}, 1<<20, remotewrite.NewGeneration(7))
	require.ErrorAs(t, err, &dense)
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("1,\"a,\nb\",1700000000\nx\n"), "1:metric:m,2:label:l,3:time:unix_s")
	f.Fuzz(func(t *testing.T, body []byte, format string) {
		parsed, err := imports.ParseCSVFormat(format)
		if err != nil {
			return
		}
		g := remotewrite.NewGeneration(7)
		unknown, _, _, err := tryCSV(imports.CSV{Body: slices.Clone(body), Format: parsed, Time: now}, 1<<30, g)
		if err != nil {
			return
		}
		known, _, _, err := tryCSV(imports.CSV{Body: slices.Clone(body), Format: parsed, Time: now}, 1<<30, g)
		require.NoError(t, err)
		require.Equal(t, unknown, known)
	})
}

package opentsdb_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/senders/opentsdb"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

const now = 1_700_000_000_000 // ms

func try(body []byte, g *remotewrite.Generation, extra ...series.Label) (samples []string, points, rejected int, offence, err error) {
	limits := remotewrite.DefaultLimits()
	rules := remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now)), MaxWindows: 100, Labels: series.LastOfEach(extra)}
	const room = 1 << 30
	b, points, err := opentsdb.Decode(body, g, rules, remotewrite.NewRoom(len(body), room, room, nil))
	if err != nil {
		return nil, points, 0, nil, err
	}
	defer b.Release()
	g.Table.Lock()
	v := g.Table.View()
	g.Table.Unlock()
	for _, f := range b.Floats {
		samples = append(samples, fmt.Sprintf("%s %v @%d", remotewritetest.Labels(&v, f.Ref), f.V, f.T-now))
	}
	slices.Sort(samples)
	return samples, points, b.Rejected, b.Err, nil
}

func TestDecode(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		labels []series.Label
		want   []string
	}{
		"one": {
			body: `{"metric":"sys.cpu","timestamp":1700000000,"value":18,"tags":{"host":"web 01","dc":5}}`,
			want: []string{`{__name__="sys.cpu", dc="5", host="web 01"} 18 @0`},
		},
		"several": {
			body: "[\n {\"timestamp\": 1699999999999, \"value\": \"1.5\", \"metric\": \"ü\\\"x\", \"other\": [1]},\n{\"metric\":\"b\",\"timestamp\":\"1700000000\",\"value\":-2e3,\"tags\":{}}\n]\n",
			want: []string{`{__name__="b"} -2000 @0`, `{__name__="ü\"x"} 1.5 @-1`},
		},
		"none": {body: "[]"},
		"labels": {
			body:   `{"metric":"a","timestamp":1700000000,"value":1,"tags":{"l":"x"}}`,
			labels: []series.Label{{Name: "l", Value: "y"}}, want: []string{`{__name__="a", l="y"} 1 @0`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := remotewrite.NewGeneration(7)
			for range 2 { // the second time all series are known
				got, points, _, offence, err := try([]byte(tc.body), g, tc.labels...)
				require.NoError(t, err)
				require.NoError(t, offence)
				require.Equal(t, tc.want, got)
				require.Len(t, got, points)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	const good = `{"metric":"good","timestamp":1700000000,"value":1,"tags":{}}`
	for bad, want := range map[string]string{
		`{"timestamp":1700000000,"value":1}`:                                       `data point 2: "metric" is missing (invalid_data_point)`,
		`{"metric":"m","value":1}`:                                                 `"timestamp" is missing`,
		`{"metric":"m","timestamp":1700000000}`:                                    `"value" is missing`,
		`{"metric":5,"timestamp":1700000000,"value":1}`:                            `the metric is not a string`,
		`{"metric":"m","timestamp":1700000000,"value":1,"tags":[]}`:                `the tags are not an object`,
		`{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":null}}`:        `the value of tag "a" is neither a string nor a number`,
		`{"metric":"m","timestamp":1700000000,"value":1,"tags":{"a":"x","a":"y"}}`: `duplicate label name "a"`,
		`{"metric":"","timestamp":1700000000,"value":1}`:                           `has no metric name`,
		`{"metric":"m","timestamp":1900000000,"value":1}`:                          `too_far_in_future`,
		"{\"metric\":\"\xff\",\"timestamp\":1700000000,\"value\":1}":               `not valid UTF-8`,
	} {
		got, points, rejected, offence, err := try([]byte("["+good+","+bad+","+good+"]"), remotewrite.NewGeneration(7))
		require.NoError(t, err)
		require.ErrorContains(t, offence, want, bad)
		require.Equal(t, 1, rejected)
		require.Equal(t, 3, points)
		require.Len(t, got, 2)
	}
	for bad, want := range map[string]string{
		"":                    "data point 1: the text ends where { is expected",
		"[":                   "the text ends where { is expected",
		"{}x":                 "data point 2: 'x' at byte 3, where the end is expected",
		"[{},5]":              "data point 2: '5' at byte 5, where { is expected",
		`{"value":"one"}`:     `"value": "one" is not a number`,
		`{"value":{}}`:        `"value": '{' at byte 10, where a number is expected`,
		`{"timestamp":1.5}`:   `"timestamp": '1' at byte 14, where a timestamp in seconds or milliseconds is expected`,
		`{"timestamp":"now"}`: `"timestamp": "now" is not a timestamp`,
	} {
		_, _, _, _, err := try([]byte(bad), remotewrite.NewGeneration(7))
		require.ErrorIs(t, err, opentsdb.ErrInvalid, bad)
		require.ErrorContains(t, err, want, bad)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`[{"metric":"a","timestamp":1700000000,"value":"1.5","tags":{"b":"c","d":5}},{}]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		g := remotewrite.NewGeneration(7)
		unknown, _, _, _, err := try(slices.Clone(body), g)
		known, _, _, _, again := try(slices.Clone(body), g)
		require.Equal(t, err == nil, again == nil)
		require.Equal(t, unknown, known)
	})
}

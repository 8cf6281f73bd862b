package datadog_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/internal/senders/datadog"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

const now = 1_700_000_000_000 // ms

func decode(tb testing.TB, g *remotewrite.Generation, r datadog.Request, extra ...series.Label) (*remotewrite.Batch, error) {
	tb.Helper()
	limits := remotewrite.DefaultLimits()
	return datadog.Decode(r, g, remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now)), MaxWindows: 100, Labels: extra},
		remotewrite.NewRoom(len(r.Body), 1<<30, 1<<30, nil))
}

// samples renders the samples of a batch, with seconds after now.
func samples(b *remotewrite.Batch) (out []string) {
	view := b.Generation.Table.View()
	for i, f := range b.Floats {
		text := fmt.Sprintf("%s %v @%v", remotewritetest.Labels(&view, f.Ref), f.V, float64(f.T-now)/1000)
		if b.Starts != nil && b.Starts[i] != 0 {
			text += fmt.Sprintf(" for %v", float64(f.T-b.Starts[i])/1000)
		}
		out = append(out, text)
	}
	for _, h := range b.Hists {
		out = append(out, fmt.Sprintf("%s %v @%v", remotewritetest.Labels(&view, h.Ref), h.H, float64(h.T-now)/1000))
	}
	return out
}

const v1 = `{"series":[
	{"metric":"system.load.1","points":[[1700000000,0.5],[1700000015,0]],"type":"gauge","interval":15,"host":"web01","device":"sda",
		"tags":["env:prod","url:http://a:80","bare"],"source_type_name":"System"},
	{"points":[[1700000000,-3]],"host":"","tags":null,"device":null,"metric":"requests","type":"count"},
	{"metric":"no.points","points":[]}],"other":{}}`

const v2 = `{"series":[
	{"metric":"system.load.1","type":3,"points":[{"timestamp":1700000000,"value":0.5},{"value":0,"timestamp":1700000015,"x":1}],"interval":15,
		"resources":[{"type":"host","name":"web01"},{"name":"sda","type":"device"}],"tags":["env:prod","url:http://a:80","bare"],"unit":"x"},
	{"resources":[],"metric":"requests","type":1,"points":[{"timestamp":1700000000,"value":-3}],"metadata":{"origin":{"product":10}}},
	{"metric":"no.points","points":[]}]}`

// message is the same as github.com/DataDog/agent-payload/v5 v5.0.215 writes it.
const message = "\n|\n\r\n\x04host\x12\x05web01\n\r\n\x06device\x12\x03sda\x12\rsystem.load.1\x1a\benv:prod\x1a\x0furl:http://a:80\x1a\x04bare\"\x0f\t\x00\x00\x00\x00\x00\x00\xe0?\x10\x80\xe2Ϫ\x06\"\x06\x10\x8f\xe2Ϫ\x06(\x032\x01x:\x06System@\x0fJ\x04\n\x02 \n\n\x1d\x12\brequests\"\x0f\t\x00\x00\x00\x00\x00\x00\b\xc0\x10\x80\xe2Ϫ\x06(\x01\n\v\x12\tno.points"

var forms = map[datadog.Form]string{datadog.V1: v1, datadog.V2: v2, datadog.V2Protobuf: message}

func TestDecode(t *testing.T) {
	for form, body := range forms {
		g := remotewrite.NewGeneration(1)
		for range 2 { // unknown series, then known ones
			b, err := decode(t, g, datadog.Request{Body: []byte(body), Form: form})
			require.NoError(t, err)
			require.NoError(t, b.Err)
			require.Equal(t, []string{
				`{__name__="system.load.1", bare="no_label_value", device="sda", env="prod", host="web01", url="http://a:80"} 0.5 @0`,
				`{__name__="system.load.1", bare="no_label_value", device="sda", env="prod", host="web01", url="http://a:80"} 0 @15`,
				`{__name__="requests", __temporality__="delta"} -3 @0`,
			}, samples(b), form)
			b.Release()
		}
		b, err := decode(t, g, datadog.Request{Body: []byte(body), Form: form}, series.Label{Name: "host", Value: "x"}, series.Label{Name: "z"})
		require.NoError(t, err)
		require.Equal(t, `{__name__="requests", __temporality__="delta", host="x"} -3 @0`, samples(b)[2], "labels of the request are a part of the key")
	}
}

// TestCounts: counts, and rates of a known interval, are points of delta temporality that end at
// their times, wherever type and interval stand. Another type is another series.
func TestCounts(t *testing.T) {
	const v1 = `{"series":[
		{"interval":10,"type":"count","metric":"a","points":[[1700000000,3],[1699999990,0]]},
		{"points":[[1700000000,0.3]],"metric":"a","type":"rate","interval":10},
		{"metric":"a","points":[[1700000000,0.3]],"type":"rate"},
		{"metric":"a","points":[[1700000000,4]],"type":"count","interval":null},
		{"metric":"a","points":[[1700000000,5]],"type":"gauge","interval":10},
		{"metric":"a","points":[[1700000000,6]],"type":"other"}]}`
	var packed []byte
	field := func(b []byte, num protowire.Number, data []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), data)
	}
	number := func(b []byte, num protowire.Number, v int64) []byte {
		return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
	}
	type pair struct {
		seconds int64
		v       float64
	}
	var asJSON []string
	for _, s := range []struct {
		kind, interval int64
		points         []pair
	}{
		{1, 10, []pair{{1_700_000_000, 3}, {1_699_999_990, 0}}}, {2, 10, []pair{{1_700_000_000, 0.3}}}, {2, 0, []pair{{1_700_000_000, 0.3}}},
		{1, 0, []pair{{1_700_000_000, 4}}}, {3, 10, []pair{{1_700_000_000, 5}}}, {0, 0, []pair{{1_700_000_000, 6}}},
	} {
		msg := field(nil, 2, []byte("a"))
		var points []string
		for _, p := range s.points {
			point := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(p.v))
			msg = field(msg, 4, number(point, 2, p.seconds))
			points = append(points, fmt.Sprintf(`{"timestamp":%d,"value":%v}`, p.seconds, p.v))
		}
		packed = field(packed, 1, number(number(msg, 5, s.kind), 8, s.interval))
		asJSON = append(asJSON, fmt.Sprintf(`{"metric":"a","points":[%s],"type":%d,"interval":%d}`, strings.Join(points, ","), s.kind, s.interval))
	}
	for form, body := range map[datadog.Form]string{datadog.V1: v1, datadog.V2: `{"series":[` + strings.Join(asJSON, ",") + `]}`, datadog.V2Protobuf: string(packed)} {
		g := remotewrite.NewGeneration(1)
		for range 2 { // unknown series, then known ones
			b, err := decode(t, g, datadog.Request{Form: form, Body: []byte(body)})
			require.NoError(t, err, form)
			require.NoError(t, b.Err)
			const delta = `{__name__="a", __temporality__="delta"}`
			require.Equal(t, []string{
				delta + " 3 @0 for 10", delta + " 0 @-10 for 10", delta + " 3 @0 for 10", `{__name__="a"} 0.3 @0`, delta + " 4 @0", `{__name__="a"} 5 @0`, `{__name__="a"} 6 @0`,
			}, samples(b), form)
			b.Release()
		}
	}
}

// TestRoom: points that wait for their type take memory of the request.
func TestRoom(t *testing.T) {
	body := []byte(`{"series":[{"metric":"a","points":[` + strings.Repeat("[1,1],", 1<<16) + `[1,1]]}]}`)
	limits := remotewrite.DefaultLimits()
	_, err := datadog.Decode(datadog.Request{Form: datadog.V1, Body: body}, remotewrite.NewGeneration(1), remotewrite.Rules{Limits: &limits, TimeRange: limits.TimeRange(time.UnixMilli(now))},
		remotewrite.NewRoom(len(body), 1<<19, 1<<19, nil))
	var dense *remotewrite.DenseError
	require.ErrorAs(t, err, &dense)
	require.NotErrorIs(t, err, datadog.ErrInvalid)
}

// TestTags: of equal tags the last counts, and host and device before them.
func TestTags(t *testing.T) {
	b, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.V1, Body: []byte(
		`{"series":[{"metric":"a","points":[[1700000000.5,1]],"host":"h","tags":["x:1","host:tag","x:2","empty:","ü.y:z"]}]}`)})
	require.NoError(t, err)
	require.NoError(t, b.Err)
	require.Equal(t, []string{`{__name__="a", host="h", x="2", ü.y="z"} 1 @0.5`}, unquoted(samples(b)))
}

// unquoted removes the quotes of names.
func unquoted(in []string) []string {
	for i := range in {
		in[i] = strings.ReplaceAll(in[i], `"ü.y"=`, `ü.y=`)
	}
	return in
}

// TestOffences cost no other series.
func TestOffences(t *testing.T) {
	for bad, want := range map[string]string{
		`{"points":[[1,1]]}`:                                              `series 2: "metric" is missing (invalid_data_point)`,
		`{"metric":"a","points":[[1,1]],"tags":[":x"]}`:                   `series 2: the tag ":x" has no name`,
		`{"metric":"a","points":[[1,1]],"tags":["__name__:x"]}`:           "has no name, or that of the metric",
		`{"metric":"a","points":[[1800000000,1]]}`:                        "too far in the future",
		`{"metric":"` + strings.Repeat("a", 3000) + `","points":[[1,1]]}`: "longer than the limit of 2048 bytes",
	} {
		b, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.V1, Body: []byte(
			`{"series":[{"metric":"before","points":[[1,1]]},` + bad + `,{"metric":"after","points":[[1,1]]}]}`)})
		require.NoError(t, err, bad)
		require.ErrorContains(t, b.Err, want)
		require.Len(t, b.Floats, 2, bad)
	}
	b, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.V2Protobuf, Body: []byte("\n\x10\x12\x01\xff\"\x0b\t\x00\x00\x00\x00\x00\x00\x00\x00\x10\x01")})
	require.NoError(t, err)
	require.ErrorContains(t, b.Err, "not valid UTF-8")
}

func TestInvalid(t *testing.T) {
	for body, want := range map[string]string{
		"":                          "invalid series: the text ends where { is expected",
		"[]":                        "'[' at byte 1, where { is expected",
		`{"series":[1]}`:            "series 1: '1' at byte 12, where { is expected",
		`{"series":[]} x`:           "'x' at byte 15",
		`{"series":[{"metric":1}]}`: `series 1: "metric": '1'`,
		`{"series":[{"metric":"a","points":[[1]]}]}`:       "a timestamp and a value",
		`{"series":[{"metric":"a","points":[[1,2,3]]}]}`:   "which has a timestamp and a value",
		`{"series":[{"metric":"a","points":[[1,"2"]]}]}`:   "a number",
		`{"series":[{"metric":"a","points":[[1e300,2]]}]}`: "the timestamp 1e+300 is not a number of seconds",
		`{"series":[{"metric":"a","points":{}}]}`:          `"points": '{'`,
		`{"series":[{"metric":"a","tags":"x"}]}`:           `"tags": '"'`,
		`{"series":[{"metric":"a","interval":-1}]}`:        `"interval": the interval -1 is not a number of seconds`,
		`{"series":[{"metric":"a","interval":"x"}]}`:       `"interval": '"'`,
		`{"series":[{"metric":"a","type":1}]}`:             `"type": '1'`,
	} {
		_, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.V1, Body: []byte(body)})
		require.ErrorIs(t, err, datadog.ErrInvalid, body)
		require.ErrorContains(t, err, want)
	}
	_, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.V2, Body: []byte(`{"series":[{"metric":"a","points":[{"timestamp":1}]}]}`)})
	require.ErrorContains(t, err, "timestamp and value before it")
	for end := 1; end < len(message); end++ {
		b, err := decode(t, remotewrite.NewGeneration(1), datadog.Request{Form: datadog.V2Protobuf, Body: []byte(message[:end])})
		if err == nil {
			require.NoError(t, b.Err, "a message of whole series")
			continue
		}
		require.ErrorIs(t, err, datadog.ErrInvalid, end)
	}
}

func FuzzDecode(f *testing.F) {
	for form, body := range forms {
		f.Add([]byte(body), uint8(form)-1)
	}
	f.Add([]byte(sketches), uint8(datadog.Sketches)-1)
	f.Fuzz(func(t *testing.T, body []byte, form uint8) {
		r := datadog.Request{Body: body, Form: datadog.Form(1 + form%4)}
		b, err := decode(t, remotewrite.NewGeneration(1), r)
		if err != nil {
			return
		}
		again, err := decode(t, b.Generation, r)
		require.NoError(t, err)
		require.Equal(t, samples(b), samples(again), "what is known is read alike")
	})
}

func BenchmarkDecode(b *testing.B) {
	var text strings.Builder
	const n = 1000
	text.WriteString(`{"series":[`)
	for i := range n {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `{"metric":"system.net.bytes_%d","points":[[1700000000,%d.25]],"tags":["device:eth%d","env:prod"],"host":"web01","type":"gauge","interval":15}`, i/10, i, i)
	}
	text.WriteString("]}")
	body := []byte(text.String())
	g := remotewrite.NewGeneration(1)
	for b.Loop() {
		batch, err := decode(b, g, datadog.Request{Body: body, Form: datadog.V1})
		require.NoError(b, err)
		batch.Release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/sample")
}

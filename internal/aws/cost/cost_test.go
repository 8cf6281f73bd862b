package cost_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/aws/cost"
	"github.com/promlake/promlake/tests/support/schematest"
)

var update = flag.Bool("update", false, "write the golden files anew")

const day = 24 * time.Hour

func lists(t *testing.T, region string) (*cost.Prices, *cost.Measured) {
	t.Helper()
	p, err := cost.ReadPrices(region)
	require.NoError(t, err)
	return p, cost.Figures()
}

func estimate(t *testing.T, l cost.Load) *cost.Bill {
	t.Helper()
	p, m := lists(t, l.Region)
	b, err := cost.Estimate(l, p, m)
	require.NoError(t, err)
	return b
}

func TestFilesMatchTheirSchemas(t *testing.T) {
	for _, name := range []string{"prices", "measured"} {
		data, err := os.ReadFile(name + ".json")
		require.NoError(t, err)
		require.Equal(t, []string{""}, schematest.Validate(t, name+".schema.json", data), name)
	}
}

func TestNoFigureIsMissing(t *testing.T) {
	v := reflect.ValueOf(*cost.Figures())
	for i := range v.NumField() {
		f := v.Field(i).Interface().(cost.Figure)
		require.NotEmpty(t, f.How, v.Type().Field(i).Name)
		require.NotEmpty(t, f.Unit, v.Type().Field(i).Name)
	}
}

func TestTiers(t *testing.T) {
	p, _ := lists(t, "us-east-1")
	sample := p.Price(cost.AMPSample)
	for _, tc := range []struct{ n, want float64 }{
		{0, 0}, {1, 9e-8}, {2e9, 180}, {3e9, 215}, {252e9, 8930}, {352e9, 10530},
	} {
		require.InDelta(t, tc.want, sample.Dollars(tc.n), 1e-6, tc.n)
	}
	last := 0.0
	for _, unit := range []string{cost.AMPSample, cost.S3Storage, cost.LambdaArm64, cost.LambdaX86, cost.SQSChunk, cost.HTTPAPIRequest, cost.InternetOut} {
		tiers := p.Price(unit).Tiers
		require.Zero(t, tiers[len(tiers)-1].UpTo, "%s: the last tier has no end", unit)
		for i := range tiers[:len(tiers)-1] {
			require.Greater(t, tiers[i].UpTo, last, "%s: tiers ascend", unit)
			require.Less(t, tiers[i+1].Dollars, tiers[i].Dollars, "%s: tiers become cheaper", unit)
			last = tiers[i].UpTo
		}
		last = 0
	}
}

// TestDesign compares the model with the estimate by which the modes were chosen: a scrape every 15
// s, a retention of one month, no queries. They agree to two fifths: that estimate had less for
// compaction, more for functions, and flushed small loads less often.
func TestDesign(t *testing.T) {
	for _, tc := range []struct {
		mode                cost.Mode
		send                float64
		at100k, at1M, at10M float64
	}{
		{cost.Direct, 2000, 60, 598, 5922},
		{cost.Buffered, 2000, 34, 317, 3109},
		{cost.Direct, 10_000, 14, 144, 1438},
		{cost.Grouped, 2000, 256, 364, 1386},
	} {
		for n, want := range map[float64]float64{1e5: tc.at100k, 1e6: tc.at1M, 1e7: tc.at10M} {
			l := monthOf(n)
			l.Mode, l.SamplesPerSend = tc.mode, tc.send
			got := estimate(t, l).Dollars()
			require.InEpsilon(t, want, got, 0.4, "%s, %g a request, %g series: %.0f, want about %.0f", tc.mode, tc.send, n, got, want)
		}
	}
	p, m := lists(t, "us-east-1")
	for n, want := range map[float64]float64{1e5: 716, 1e6: 6165, 1e7: 32618} {
		require.InEpsilon(t, want, cost.AMP(monthOf(n), p, m).Dollars(), 0.001)
	}
}

func monthOf(series float64) cost.Load {
	l := cost.DefaultLoad()
	l.Series, l.Senders, l.Retention, l.QueriesPerDay = series, int(series/1e5), 30*day, 0
	return l
}

func TestGolden(t *testing.T) {
	type entry struct {
		Load    string
		Dollars map[cost.Component]float64
		Total   float64
	}
	var prices struct{ Regions map[string]any }
	list, err := os.ReadFile("prices.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(list, &prices))
	var got []entry
	for _, mode := range cost.Modes {
		for _, region := range slices.Sorted(maps.Keys(prices.Regions)) {
			l := cost.DefaultLoad()
			l.Mode, l.Region = mode, region
			b := estimate(t, l)
			e := entry{string(mode) + " " + region, map[cost.Component]float64{}, cents(b.Dollars())}
			for _, c := range cost.Components {
				e.Dollars[c] = cents(b.Of(c))
			}
			got = append(got, e)
		}
	}
	text, err := json.MarshalIndent(got, "", "  ")
	require.NoError(t, err)
	const file = "testdata/golden.json"
	if *update {
		require.NoError(t, os.WriteFile(file, append(text, '\n'), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.JSONEq(t, string(want), string(text), "if the change is meant: go test ./internal/aws/cost -update")
}

func cents(d float64) float64 { return float64(int64(d*100+0.5)) / 100 }

// TestKeyOfKMS: a key costs a dollar, and three requests each five minutes for each queue in use.
func TestKeyOfKMS(t *testing.T) {
	for mode, queues := range map[cost.Mode]float64{cost.Buffered: 2, cost.Direct: 1} {
		l := cost.DefaultLoad()
		l.Mode = mode
		before := estimate(t, l).Dollars()
		l.KMS = true
		require.InDelta(t, 1+queues*3*30*24*12*0.03/10_000, estimate(t, l).Dollars()-before, 1e-9, mode)
	}
}

// TestReplica: a replica stores what the bucket stores. A tenant that does not change costs three
// listings and three reads a minute.
func TestReplica(t *testing.T) {
	l := cost.DefaultLoad()
	before := estimate(t, l)
	l.Replica = true
	after := estimate(t, l)
	require.InDelta(t, after.Dollars()-before.Dollars(), after.Of(cost.Replica), 1e-9)
	units := map[string]float64{}
	for _, line := range after.Lines {
		if line.Component == cost.Replica {
			units[line.Unit] += line.Dollars
		}
	}
	require.InEpsilon(t, before.Of(cost.Storage), units[cost.S3Storage], 1e-6)
	require.Positive(t, units[cost.RegionOut])

	l.Series = 0
	one := estimate(t, l)
	l.Tenants = 2
	two := estimate(t, l)
	quantity := func(b *cost.Bill, unit string) (n float64) {
		for _, line := range b.Lines {
			if line.Component == cost.Replica && line.Unit == unit {
				n += line.Quantity
			}
		}
		return n
	}
	require.InDelta(t, 3*43_200, quantity(two, cost.S3Put)-quantity(one, cost.S3Put), 1e-6)
	require.InDelta(t, 3*43_200, quantity(two, cost.S3Get)-quantity(one, cost.S3Get), 1e-6)
}

// TestStreamedAnswers: an answer beyond 6 MB comes from the function's URL, so that its bytes are
// charged and its request is not.
func TestStreamedAnswers(t *testing.T) {
	l := cost.DefaultLoad()
	l.BytesPerAnswer = 6e6 + 1<<30/1e4
	units := map[string]float64{}
	for _, line := range estimate(t, l).Lines {
		if line.Component == cost.Query {
			units[line.Unit] += line.Quantity
		}
	}
	require.InDelta(t, 30, units[cost.LambdaStreamed], 1e-6, "GB")
	require.Zero(t, units[cost.HTTPAPIRequest])
}

func TestValidate(t *testing.T) {
	ok := cost.DefaultLoad()
	require.NoError(t, ok.Check())
	bad := cost.Load{Series: -1, Scrape: time.Millisecond, Churn: -1, SamplesPerSend: 0, Mode: "x", WriteThrough: "y", Arch: "z"}
	err := bad.Check()
	for _, want := range []string{
		"series: want 0 to 1e+10, got -1", "scrape: want 1s to 24h0m0s, got 1ms", "retention: ", "churn: ", "samples-per-send: ", "tenants: ", "senders: ",
		"send-deadline: ", "messages of a batch: ", "memory of query: want 128 to 10240 MiB, got 0", `mode: want buffered, direct or grouped, got "x"`,
		`write-through: want http-api or function-url, got "y"`, `system-log-level: want warn or info, got ""`, `arch: want arm64 or x86_64, got "z"`,
	} {
		require.ErrorContains(t, err, want)
	}
	p, m := lists(t, "us-east-1")
	_, err = cost.Estimate(bad, p, m)
	require.ErrorContains(t, err, "check load: ")
	ok.Region = "eu-central-1"
	_, err = cost.Estimate(ok, p, m)
	require.ErrorContains(t, err, `region "eu-central-1", but the prices are those of "us-east-1"`)
	ok = cost.DefaultLoad()
	ok.Senders, ok.SamplesPerSend = 1, 300_000
	_, err = cost.Estimate(ok, p, m)
	require.EqualError(t, err, "check load: samples-per-send: 300000 samples are about 6.9 MB, and a function takes 4.5 MB: want at most 195652")
	_, err = cost.ReadPrices("mars")
	require.EqualError(t, err, `region "mars": no prices for it, only for eu-central-1, us-east-1`)
}

func TestRegister(t *testing.T) {
	for region, put := range map[string]string{"us-east-1": "5e-06", "eu-central-1": "5.4e-06", "mars": "5e-06", "": "5e-06"} {
		reg := prometheus.NewRegistry()
		require.NoError(t, cost.Register(reg, region))
		n, err := testutil.GatherAndCount(reg, "promlake_price_dollars")
		require.NoError(t, err)
		require.Equal(t, 10, n)
		families, err := reg.Gather()
		require.NoError(t, err)
		require.Contains(t, families[0].String(), `value:"s3_put"}`)
		require.Contains(t, families[0].String(), put)
		require.Error(t, cost.Register(reg, region), "registered twice")
	}
}

// TestLargeAnswersTakeTime: beyond 6 MB, an answer takes half a second of the function per MB.
func TestLargeAnswersTakeTime(t *testing.T) {
	seconds := func(bytes float64) float64 {
		l := cost.DefaultLoad()
		l.QueriesPerDay, l.BytesPerAnswer = 1, bytes
		for _, line := range estimate(t, l).Lines {
			if line.Component == cost.Query && line.What == "GB-seconds" {
				return line.Quantity / 30 / (float64(l.Memory.Query) / 1024)
			}
		}
		return 0
	}
	require.InDelta(t, seconds(0), seconds(6e6), 1e-9)
	require.InDelta(t, seconds(0)+97, seconds(200e6), 1e-6)
}

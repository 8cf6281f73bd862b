package segment_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/format/series"
	"github.com/promlake/promlake/tests/support/segmenttest"
)

// fleet is one sample of each of n series that look like node_exporter's.
func fleet(n int) []segment.Row {
	rows := make([]segment.Row, n)
	for i := range rows {
		host, metric := i/500, i%500
		rows[i] = segment.Row{
			Labels: labels.FromStrings(
				"__name__", fmt.Sprintf("node_metric_with_some_name_%d_total", metric/8), fmt.Sprintf("label_%d", metric/10), fmt.Sprint(metric%8),
				"env", "production", "host_number", fmt.Sprint(host), "instance", fmt.Sprintf("host_%d:9100", host), "job", "node_exporter", "role", []string{"db", "web", "cache"}[host%3]),
			Floats: []segment.Float{{T: someTime + int64(host), V: float64(i%977) * 1.5}},
		}
	}
	return rows
}

// BenchmarkWriterWrite encodes one sample of every series.
func BenchmarkWriterWrite(b *testing.B) {
	for _, n := range []int{2_000, 16_000, 100_000} {
		b.Run(fmt.Sprintf("series=%d", n), func(b *testing.B) {
			batch, err := segmenttest.Batch(fleet(n), nil)
			require.NoError(b, err)
			w, err := segment.NewWriter()
			require.NoError(b, err)
			size := 0
			b.ReportAllocs()
			for b.Loop() {
				file, _, err := w.Write(batch, nil)
				require.NoError(b, err)
				size = len(file)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/series")
			b.ReportMetric(float64(size)/float64(n), "B/series")
		})
	}
}

// BenchmarkWriterOfScrapes encodes one sample of every series of about a quarter of some targets, never
// the same ones twice, as a server that scrapes stores them.
func BenchmarkWriterOfScrapes(b *testing.B) {
	const perHost, hosts = 500, 300
	t, rng := series.NewTable(1), rand.New(rand.NewPCG(1, 1))
	rows := fleet(hosts * perHost)
	for _, r := range rows {
		var lset []series.Label
		r.Labels.Range(func(l labels.Label) { lset = append(lset, series.Label{Name: l.Name, Value: l.Value}) })
		_, err := t.Intern(lset)
		require.NoError(b, err)
	}
	v, order := t.View(), series.Order{}
	order.Extend(&v)
	var batches []*segment.Batch
	for range 20 {
		x := &segment.Batch{View: &v, Order: &order}
		for _, host := range rng.Perm(hosts)[:hosts/4-4+rng.IntN(8)] {
			for i := range perHost {
				x.Rows = append(x.Rows, series.Ref(host*perHost+i))
			}
		}
		order.Sort(x.Rows)
		for i, r := range x.Rows {
			f := rows[r].Floats[0]
			x.TS, x.V, x.End = append(x.TS, f.T), append(x.V, f.V), append(x.End, i+1)
		}
		batches = append(batches, x)
	}
	for _, repeats := range []*segment.Repeats{nil, {}} {
		b.Run(fmt.Sprintf("repeats=%t", repeats != nil), func(b *testing.B) {
			w, err := segment.NewWriter()
			require.NoError(b, err)
			for _, x := range batches { // who scrapes goes on for hours
				_, _, err := w.Write(x, repeats)
				require.NoError(b, err)
			}
			n, size := 0, 0
			b.ReportAllocs()
			for b.Loop() {
				x := batches[rng.IntN(len(batches))]
				file, _, err := w.Write(x, repeats)
				require.NoError(b, err)
				n, size = n+len(x.Rows), size+len(file)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/series")
			b.ReportMetric(float64(size)/float64(n), "B/series")
		})
	}
}

// BenchmarkReadInfo reads the footer of a segment with about 60 label columns.
func BenchmarkReadInfo(b *testing.B) {
	file, _, err := segmenttest.Encode(fleet(2000), nil)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		_, err := segment.ReadInfo(bytes.NewReader(file), int64(len(file)))
		require.NoError(b, err)
	}
}

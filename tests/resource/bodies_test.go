package resource

import (
	"fmt"
	"time"

	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
)

// series returns n series of a metric with samples of the last minutes.
func series(name string, n, samples int) []prompb.TimeSeries {
	out := make([]prompb.TimeSeries, n)
	now := time.Now().UnixMilli()
	for i := range out {
		out[i].Labels = []prompb.Label{
			{Name: "__name__", Value: name}, {Name: "instance", Value: fmt.Sprintf("host-%d.example:9100", i%100)},
			{Name: "job", Value: "node"}, {Name: "number", Value: fmt.Sprint(i)},
		}
		for j := range samples {
			out[i].Samples = append(out[i].Samples, prompb.Sample{Value: float64(i*j) / 7, Timestamp: now - int64(samples-j)*1000})
		}
	}
	return out
}

func writeV1(ts []prompb.TimeSeries) []byte {
	b, err := (&prompb.WriteRequest{Timeseries: ts}).Marshal()
	if err != nil {
		panic(err)
	}
	return snappy.Encode(nil, b)
}

// writeV2 returns a request of protocol 2.0 with one series of n samples.
func writeV2(name string, samples int) []byte {
	r := writev2.Request{Symbols: []string{"", "__name__", name}, Timeseries: []writev2.TimeSeries{{LabelsRefs: []uint32{1, 2}}}}
	for i := range samples {
		r.Timeseries[0].Samples = append(r.Timeseries[0].Samples, writev2.Sample{Value: float64(i), Timestamp: time.Now().UnixMilli() - int64(i)})
	}
	b, err := r.Marshal()
	if err != nil {
		panic(err)
	}
	return snappy.Encode(nil, b)
}

const typeV2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"

// windows returns a request with samples in n 2h windows.
func windows(n int) []byte {
	ts := series("windows", 1, 0)
	for i := range n {
		ts[0].Samples = append(ts[0].Samples, prompb.Sample{Timestamp: time.Now().UnixMilli() - int64(i)*7_200_000})
	}
	return writeV1(ts)
}

// remoteRead returns a request for all series of the last hour, as samples or as chunks.
func remoteRead(stream bool) []byte {
	now := time.Now().UnixMilli()
	r := prompb.ReadRequest{Queries: []*prompb.Query{{
		StartTimestampMs: now - 3_600_000, EndTimestampMs: now,
		Matchers: []*prompb.LabelMatcher{{Type: prompb.LabelMatcher_NEQ, Name: "__name__", Value: ""}},
	}}}
	if stream {
		r.AcceptedResponseTypes = []prompb.ReadRequest_ResponseType{prompb.ReadRequest_STREAMED_XOR_CHUNKS}
	}
	b, err := r.Marshal()
	if err != nil {
		panic(err)
	}
	return snappy.Encode(nil, b)
}

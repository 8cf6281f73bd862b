package api_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/gogo/protobuf/proto"
	"github.com/golang/snappy"
	configutil "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/stretchr/testify/require"
)

// reading returns a function that builds a remote read request for up, to be answered with samples
// or streamed chunks.
func reading(chunks bool) func(t *testing.T) *http.Request {
	return func(t *testing.T) *http.Request {
		t.Helper()
		query, err := remote.ToQuery(0, 7_200_000, []*labels.Matcher{labels.MustNewMatcher(labels.MatchEqual, "__name__", "up")}, nil)
		require.NoError(t, err)
		read := &prompb.ReadRequest{Queries: []*prompb.Query{query}}
		if chunks {
			read.AcceptedResponseTypes = []prompb.ReadRequest_ResponseType{prompb.ReadRequest_STREAMED_XOR_CHUNKS}
		}
		data, err := proto.Marshal(read)
		require.NoError(t, err)
		return httptest.NewRequest(http.MethodPost, "/api/v1/read", bytes.NewReader(snappy.Encode(nil, data)))
	}
}

// TestRemoteReadClient: upstream's client reads what upstream's own querier returns.
func TestRemoteReadClient(t *testing.T) {
	backend, settings := newBackend(t), testSettings()
	settings.RemoteReadFrameBytes = 200 // several frames
	server := serve(t, newHandler(t, settings, backend))
	for name, kind := range map[string]prompb.ReadRequest_ResponseType{
		"samples": prompb.ReadRequest_SAMPLES,
		"chunks":  prompb.ReadRequest_STREAMED_XOR_CHUNKS,
	} {
		for _, path := range []string{"/api/v1/read", "/prometheus/api/v1/read"} {
			t.Run(name+path, func(t *testing.T) {
				u, err := url.Parse(server + path)
				require.NoError(t, err)
				client, err := remote.NewReadClient("test", &remote.ClientConfig{
					URL:                   &configutil.URL{URL: u},
					Timeout:               model.Duration(time.Minute),
					ChunkedReadLimit:      config.DefaultChunkedReadLimit,
					AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{kind},
				})
				require.NoError(t, err)
				for _, m := range []*labels.Matcher{
					labels.MustNewMatcher(labels.MatchEqual, "__name__", "requests_total"),
					labels.MustNewMatcher(labels.MatchRegexp, "__name__", "up|latency.*|odd"),
					labels.MustNewMatcher(labels.MatchEqual, "__name__", "nothing"),
				} {
					query, err := remote.ToQuery(60_000, 5_400_000, []*labels.Matcher{m}, nil)
					require.NoError(t, err)
					got, err := client.Read(t.Context(), query, true)
					require.NoError(t, err)

					q, err := backend.TestStorage.Querier(60_000, 5_400_000)
					require.NoError(t, err)
					want := dump(t, q.Select(t.Context(), true, nil, m))
					require.NoError(t, q.Close())
					require.Equal(t, want, dump(t, got))
				}
			})
		}
	}
}

// dump formats a set's series and samples; floats have the shortest decimal that keeps their bits.
func dump(t *testing.T, set storage.SeriesSet) []string {
	t.Helper()
	res := []string{}
	var it chunkenc.Iterator
	for set.Next() {
		series := set.At()
		res = append(res, series.Labels().String())
		it = series.Iterator(it)
		for typ := it.Next(); typ != chunkenc.ValNone; typ = it.Next() {
			if typ == chunkenc.ValFloat {
				at, v := it.At()
				res = append(res, model.Time(at).String()+" "+model.SampleValue(v).String())
				continue
			}
			at, h := it.AtFloatHistogram(nil)
			res = append(res, model.Time(at).String()+" "+h.String())
		}
		require.NoError(t, it.Err())
	}
	require.NoError(t, set.Err())
	return res
}

func TestRemoteReadRejects(t *testing.T) {
	settings := testSettings()
	settings.RemoteReadSampleLimit = 10
	h := newHandler(t, settings, newBackend(t))
	for _, tc := range []struct {
		name string
		body []byte
		code int
		text string
	}{
		{"nothing", nil, 400, "snappy: corrupt input\n"},
		{"not snappy", []byte("up"), 400, "snappy: corrupt input\n"},
		{"not protobuf", snappy.Encode(nil, []byte{0xff}), 400, "unexpected EOF\n"},
		{"bomb", []byte{0x80, 0x80, 0x80, 0x80, 0x04, 0x00}, 400, "snappy: decoded length 1073741824 exceeds limit 33554432\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/api/v1/read", bytes.NewReader(tc.body)))
			require.Equal(t, tc.code, rec.Code)
			require.Equal(t, tc.text, rec.Body.String())
		})
	}
	for _, m := range []*prompb.LabelMatcher{{Type: 65, Name: "a"}, {Type: prompb.LabelMatcher_RE, Name: "a", Value: "("}} {
		body, err := (&prompb.ReadRequest{Queries: []*prompb.Query{{Matchers: []*prompb.LabelMatcher{m}}}}).Marshal()
		require.NoError(t, err)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/api/v1/read", bytes.NewReader(snappy.Encode(nil, body))))
		require.Equal(t, 400, rec.Code, rec.Body)
		require.Contains(t, rec.Body.String(), `"errorType":"bad_data"`)
	}
	t.Run("too many samples", func(t *testing.T) {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, reading(false)(t))
		require.Equal(t, http.StatusBadRequest, rec.Code)
		require.Equal(t, "exceeded sample limit (10)\n", rec.Body.String())
	})
}

package api_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/gogo/protobuf/proto"
	"github.com/golang/snappy"
	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/storage/remote"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/access/tenant"
	"github.com/promlake/promlake/internal/query/api"
)

// configured is the configuration of a process with external labels of the tenant "own".
type configured struct {
	api.Monitoring
	external labels.Labels
}

func (c configured) ExternalLabels(ctx context.Context) labels.Labels {
	if tenant.From(ctx) != "own" {
		return labels.EmptyLabels()
	}
	return c.external
}

// as sends a request of a tenant.
func as(id string, h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	r.Header.Set(tenant.Header, id)
	h.ServeHTTP(rec, r)
	return rec
}

// TestExternalLabelsOfFederation: series get those that they lack, sorted, as upstream sends them.
func TestExternalLabelsOfFederation(t *testing.T) {
	backend := newEmptyBackend(t)
	backend.append(t, federationPoints()...)
	for want, external := range map[string]labels.Labels{
		`a{instance="i",job="x",zone="eu"} 2 6000000` + "\n" + `a{zone="z",instance=""} +Inf 6060000` + "\n":                           labels.FromStrings("zone", "eu"),
		`a{instance="i",job="x",cluster="c"} 2 6000000` + "\n" + `a{zone="z",cluster="c",instance="me",job="own"} +Inf 6060000` + "\n": labels.FromStrings("instance", "me", "cluster", "c", "job", "own"),
	} {
		settings := testSettings()
		settings.Monitoring = configured{external: external}
		h, err := api.New(settings, backend, nil, func() time.Time { return time.UnixMilli(federationTime) }, slog.New(slog.DiscardHandler), nil)
		require.NoError(t, err)
		rec := as("own", h, httptest.NewRequest(http.MethodGet, "/federate?match[]=a", nil))
		require.Equal(t, "# TYPE a untyped\n"+want, rec.Body.String())
		rec = as("other", h, httptest.NewRequest(http.MethodGet, "/federate?match[]=a", nil))
		require.Equal(t, federate(t, newFederation(t), "", "a").Body.String(), rec.Body.String())
	}
}

// TestExternalLabelsOfRemoteRead compares with upstream's handler, byte by byte: external labels are
// added, and matchers of them are about labels that the storage does not have.
func TestExternalLabelsOfRemoteRead(t *testing.T) {
	external := labels.FromStrings("job", "own", "zone", "eu")
	backend, settings := newBackend(t), testSettings()
	settings.Monitoring = configured{external: external}
	h := newHandler(t, settings, backend)
	upstream := func(external labels.Labels) http.Handler {
		c := config.Config{GlobalConfig: config.GlobalConfig{ExternalLabels: external}}
		return remote.NewReadHandler(slog.New(slog.DiscardHandler), nil, backend.TestStorage, func() config.Config { return c }, settings.RemoteReadSampleLimit, 1, settings.RemoteReadFrameBytes)
	}
	seen := map[string]bool{}
	for _, zone := range []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchEqual, "zone", "eu"), labels.MustNewMatcher(labels.MatchEqual, "zone", "us"),
		labels.MustNewMatcher(labels.MatchNotEqual, "zone", "eu"), labels.MustNewMatcher(labels.MatchRegexp, "zone", "eu"),
	} {
		query, err := remote.ToQuery(0, 7_200_000, []*labels.Matcher{labels.MustNewMatcher(labels.MatchRegexp, "__name__", "up|info_metric"), zone}, nil)
		require.NoError(t, err)
		for _, kind := range []prompb.ReadRequest_ResponseType{prompb.ReadRequest_SAMPLES, prompb.ReadRequest_STREAMED_XOR_CHUNKS} {
			body, err := proto.Marshal(&prompb.ReadRequest{Queries: []*prompb.Query{query}, AcceptedResponseTypes: []prompb.ReadRequest_ResponseType{kind}})
			require.NoError(t, err)
			ask := func(id string, h http.Handler) string {
				return as(id, h, httptest.NewRequest(http.MethodPost, "/api/v1/read", bytes.NewReader(snappy.Encode(nil, body)))).Body.String()
			}
			own := ask("own", h)
			require.Equal(t, ask("", upstream(external)), own, "%s %s", zone, kind)
			require.Equal(t, ask("", upstream(labels.EmptyLabels())), ask("other", h), "%s %s", zone, kind)
			seen[own] = true
		}
	}
	require.Greater(t, len(seen), 3, "matchers make a difference")
}

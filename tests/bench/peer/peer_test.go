package peer

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMerges(t *testing.T) {
	const page = `vm_active_merges{type="storage/small"} 1
vm_active_merges{type="indexdb"} 2
vm_active_force_merges 1
vm_parts{type="storage/big"} 1
vm_parts{type="storage/small"} 3
vm_parts{type="indexdb"} 9
`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = io.WriteString(w, page)
		}
	}))
	defer srv.Close()
	active, parts, err := merges(t.Context(), srv.URL+"/metrics")
	require.NoError(t, err)
	require.Equal(t, []float64{4, 4}, []float64{active, parts})
	_, _, err = merges(t.Context(), srv.URL+"/")
	require.ErrorContains(t, err, "vm_parts")
}

func TestHead(t *testing.T) {
	const page = `prometheus_tsdb_head_min_time_seconds 1000
prometheus_tsdb_head_max_time_seconds 4600
# TYPE prometheus_tsdb_compactions_total counter
prometheus_tsdb_compactions_total 7
`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/metrics" {
			_, _ = io.WriteString(w, page)
		}
	}))
	defer srv.Close()
	span, compactions, err := head(t.Context(), srv.URL+"/metrics")
	require.NoError(t, err)
	require.Equal(t, []float64{3600, 7}, []float64{span, compactions})
	_, _, err = head(t.Context(), srv.URL+"/")
	require.ErrorContains(t, err, "prometheus_tsdb_head_min_time_seconds is not among them")
}

package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/value"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/tests/support/promblocktest"
	"github.com/promlake/promlake/tests/support/s3test"
)

// TestBlockUpload uploads a block that upstream's TSDB has written. Queries return exactly its
// samples, also after a restart, and a second upload is refused.
func TestBlockUpload(t *testing.T) {
	from := time.Now().Add(-72 * time.Hour).Truncate(2 * time.Hour)
	all := promblocktest.History(1, from.UnixMilli(), 5*time.Hour)
	dir := promblocktest.Write(t, t.TempDir(), from.UnixMilli(), from.Add(5*time.Hour).UnixMilli(), all)
	var meta map[string]any
	raw, err := os.ReadFile(filepath.Join(dir, "meta.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &meta))
	files := map[string][]byte{}
	var list []any
	for _, path := range []string{"index", "chunks/000001"} {
		files[path], err = os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		require.NoError(t, err)
		list = append(list, map[string]any{"rel_path": path, "size_bytes": len(files[path])})
	}
	meta["thanos"] = map[string]any{"files": list}
	raw, err = json.Marshal(meta)
	require.NoError(t, err)

	for name, store := range map[string]string{"file": "file://" + t.TempDir(), "s3": s3test.Start(t).StoreURL(t)} {
		t.Run(name, func(t *testing.T) {
			s := defaults()
			s.Process.Store, s.Uploads.Enabled = store, true
			srv := start(t, s)
			base := "/api/v1/upload/block/" + filepath.Base(dir)
			send := func(what string, body []byte) int {
				resp, err := http.Post(srv.url+base+what, "", bytes.NewReader(body))
				require.NoError(t, err)
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Contains(t, []int{http.StatusOK, http.StatusConflict}, resp.StatusCode, string(text))
				return resp.StatusCode
			}
			require.Equal(t, http.StatusOK, send("/start", raw))
			for path, body := range files {
				require.Equal(t, http.StatusOK, send("/files?path="+url.QueryEscape(path), body))
			}
			require.Equal(t, http.StatusOK, send("/finish", nil))
			var text string
			require.Eventually(t, func() bool {
				_, text = get(t, srv.url+base+"/check")
				return text != `{"result":"validating"}`+"\n"
			}, time.Minute, time.Millisecond)
			require.JSONEq(t, `{"result":"complete"}`, text)
			require.Equal(t, http.StatusConflict, send("/start", raw))

			want := floatSamples(all)
			require.NotEmpty(t, want)
			for range 2 {
				require.Equal(t, want, selected(t, srv.url, from))
				srv.end(t)
				srv = start(t, s)
			}
			srv.end(t)
		})
	}
}

// floatSamples are the samples of series of floats, without stale markers, as selected has them.
func floatSamples(all []promblocktest.Series) map[string]string {
	out := map[string]string{}
	for _, s := range all {
		if n := s.Labels.Get("__name__"); n != "requests_total" && n != "temperature" {
			continue
		}
		m := model.Metric{}
		for k, v := range s.Labels.Map() {
			m[model.LabelName(k)] = model.LabelValue(v)
		}
		text := ""
		for _, x := range s.Samples {
			if math.Float64bits(x.V) != value.StaleNaN {
				text += fmt.Sprintf("%d:%v ", x.Time, x.V)
			}
		}
		out[m.String()] = text
	}
	return out
}

// selected are the samples that a server has of these series.
func selected(t *testing.T, url string, from time.Time) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, s := range query(t, url, `{__name__=~"requests_total|temperature"}[6h]`, from.Add(5*time.Hour)).(model.Matrix) {
		text := ""
		for _, x := range s.Values {
			text += fmt.Sprintf("%d:%v ", int64(x.Timestamp), float64(x.Value))
		}
		out[s.Metric.String()] = text
	}
	return out
}

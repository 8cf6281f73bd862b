package uploadapp_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/copyapp"
	"github.com/promlake/promlake/internal/app/importapp"
	"github.com/promlake/promlake/internal/app/process"
	"github.com/promlake/promlake/internal/app/tenantapp"
	"github.com/promlake/promlake/internal/app/uploadapp"
	"github.com/promlake/promlake/internal/base/memory"
	"github.com/promlake/promlake/internal/base/settings"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/objstore"
)

// TestUpload: an uploaded block counts as the same block does that a command imports, once however
// often it is imported, and only a small object stays of the upload.
func TestUpload(t *testing.T) {
	dir := history(t)
	b := read(t, dir)
	require.Contains(t, b.files, "tombstones")
	imported := newStore(&clock{})
	im := settings.Default[importapp.Settings]()
	im.Tenant, im.MemoryLimit, im.Level = name, 256<<20, "2h"
	bring := func(store objstore.Store) int64 {
		r, err := importapp.Share(t.Context(), store, im, importapp.TSDB{Source: dir}, time.Now)
		require.NoError(t, err)
		return r.Samples
	}
	require.Positive(t, bring(imported))

	store := newStore(&clock{})
	s := serve(t, store)
	s.upload(b)
	want := samples(t, imported)
	require.Equal(t, want, samples(t, store))
	require.Equal(t, []string{b.id + "/upload.json"}, uploads(store))
	require.Zero(t, bring(store), "a command finds it imported")

	for what, body := range map[string][]byte{"start": b.meta, files("index"): b.files["index"], "finish": nil} {
		s.want(http.StatusConflict, "block already exists", b.id, what, body)
	}
	result, _ := s.state(b.id)
	require.Equal(t, "complete", result)

	s = serve(t, imported)
	s.upload(b)
	require.Equal(t, want, samples(t, imported), "an upload finds it imported")
}

// TestRefused holds the answers to wrong requests, in wrong orders.
func TestRefused(t *testing.T) {
	b := small(t, "up")
	store := newStore(&clock{})
	s := serve(t, store, func(o *options) { o.settings.MaxBytes = 10_000 })
	index := b.files["index"]
	for what, body := range map[string][]byte{"start": b.meta, files("index"): index, "finish": nil} {
		s.want(http.StatusBadRequest, "want a ULID", strings.ToLower(b.id), what, body)
		s.want(http.StatusBadRequest, "want a ULID", "x", what, body)
	}
	s.want(http.StatusNotFound, "not started", b.id, files("index"), index)
	s.want(http.StatusNotFound, "not started", b.id, "finish", nil)
	code, _ := s.ask(http.MethodGet, b.id, "check", nil)
	require.Equal(t, http.StatusNotFound, code)
	s.want(http.StatusBadRequest, "invalid meta.json", b.id, "start", []byte("{"))
	s.want(http.StatusBadRequest, "it is of block", "01M830A8Q5FDT227PX59J0YKC3", "start", b.meta)
	s.want(http.StatusRequestEntityTooLarge, "more than 262144 bytes", b.id, "start", bytes.Repeat([]byte(" "), 1<<18+1))
	large := bytes.Replace(b.meta, []byte(`"size_bytes":`), []byte(`"size_bytes":9999`), 1)
	s.want(http.StatusBadRequest, "more than 10000 bytes, the limit: divide the block, or raise --compactor.block-upload-max-block-size-bytes", b.id, "start", large)
	require.Empty(t, uploads(store))

	s.want(200, "", b.id, "start", b.meta)
	s.want(200, "", b.id, "start", b.meta)
	s.want(http.StatusBadRequest, "chunks/000001 is missing", b.id, "finish", nil)
	for _, path := range []string{"", "meta.json", "chunks/1", "../index", "/index"} {
		s.want(http.StatusBadRequest, "invalid path", b.id, files(path), index)
	}
	s.want(http.StatusBadRequest, "is not in thanos.files", b.id, files("chunks/000002"), index)
	s.want(http.StatusBadRequest, fmt.Sprintf("index has %d bytes, meta.json says %d", len(index)-1, len(index)), b.id, files("index"), index[1:])
	s.want(http.StatusBadRequest, fmt.Sprintf("index has %d bytes, meta.json says %d", len(index)+1, len(index)), b.id, files("index"), append(index[:len(index):len(index)], 0))
	s.want(http.StatusBadRequest, "index has 0 bytes", b.id, files("index"), nil)
	for _, sent := range [][]byte{index[1:], append(index[:len(index):len(index)], 0)} { // of an unknown length
		r, err := http.NewRequest(http.MethodPost, s.url+"/api/v1/upload/block/"+b.id+"/files?path=index", struct{ *bytes.Reader }{bytes.NewReader(sent)})
		require.NoError(t, err)
		r.Header.Set("X-Scope-OrgID", name)
		require.Zero(t, r.ContentLength)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	}
	require.Equal(t, []string{b.id + "/upload.json"}, uploads(store))
	result, _ := s.state(b.id)
	require.Equal(t, "uploading", result)
	s.upload(b)
	require.NoError(t, testutil.GatherAndCompare(s.reg, strings.NewReader(`# HELP promlake_block_upload_limited_requests_total Uploads of blocks that were refused by a limit.
# TYPE promlake_block_upload_limited_requests_total counter
promlake_block_upload_limited_requests_total{limit="compactor.block-upload-max-block-size-bytes"} 1
promlake_block_upload_limited_requests_total{limit="meta.json"} 1
# HELP promlake_block_uploads_total Uploads of blocks that ended, by result: complete, failed, expired (nobody finished them within --compactor.block-upload-deletion-delay), and unreadable (their state in the store cannot be decoded, so they are not imported).
# TYPE promlake_block_uploads_total counter
promlake_block_uploads_total{result="complete"} 1
`)))

	kept := serve(t, newStore(&clock{}), func(o *options) { o.imports.TenantRetention = map[string]time.Duration{name: 24 * time.Hour} })
	kept.want(http.StatusUnprocessableEntity, "past the retention", b.id, "start", b.meta)
	off := serve(t, newStore(&clock{}), func(o *options) { o.settings.Enabled = false })
	off.want(http.StatusBadRequest, "--compactor.block-upload-enabled enables it", b.id, "start", b.meta)
	_, err := uploadapp.New(uploadapp.Settings{Enabled: true}, im())(t.Context(), process.Parts{Registry: prometheus.NewRegistry(), Memory: memory.New(100<<20, probe(nil), nil), Logger: slog.Default()})
	require.ErrorContains(t, err, "--memory-limit is 104857600 bytes, want at least 134217728")
}

func im() importapp.Settings { return settings.Default[importapp.Settings]() }

// probe measures as much memory as a test says.
func probe(used *atomic.Int64) memory.Probe {
	return memory.Probe{Usage: func() int64 { return used.Load() }, Now: time.Now}
}

// TestBroken: a block that cannot be read fails with an error that names what is broken, without a
// directory of this machine. It can be repaired and finished again.
func TestBroken(t *testing.T) {
	for path, want := range map[string]string{"index": "not a Prometheus block", "chunks/000001": "corrupt chunk in chunks/000001 at offset 8"} {
		t.Run(path, func(t *testing.T) {
			b := small(t, "up")
			store := newStore(&clock{})
			s := serve(t, store)
			s.send(b)
			damaged := bytes.Clone(b.files[path])
			damaged[20] ^= 0xff // symbols of the index, or the first chunk
			s.want(200, "", b.id, files(path), damaged)
			for range 2 {
				s.want(200, "", b.id, "finish", nil)
				result, reason := s.wait(b.id)
				require.Equal(t, "failed", result)
				require.Contains(t, reason, want)
				require.Contains(t, reason, b.id)
				require.NotContains(t, reason, "promlake-import")
				require.Zero(t, samples(t, store).Count())
			}
			s.want(200, "", b.id, files(path), b.files[path])
			s.want(200, "", b.id, "finish", nil)
			result, reason := s.wait(b.id)
			require.Equal(t, "complete", result, reason)
			require.Equal(t, smallSamples, samples(t, store).Count())
		})
	}
}

// TestWaits: blocks are imported one after another, when there is memory. Until then they are
// validating: they take no file and cannot be started, and may be finished again. A file that
// changes nevertheless is not imported.
func TestWaits(t *testing.T) {
	used := &atomic.Int64{}
	used.Store(1 << 30)
	store := newStore(&clock{})
	s := serve(t, store, func(o *options) { o.memory = memory.New(1<<30, probe(used), nil) })
	a, b := small(t, "a"), small(t, "b")
	for _, x := range []block{a, b} {
		s.send(x)
		for range 2 {
			s.want(200, "", x.id, "finish", nil)
		}
		result, _ := s.state(x.id)
		require.Equal(t, "validating", result)
		s.want(http.StatusConflict, "validated", x.id, "start", x.meta)
		s.want(http.StatusConflict, "validated", x.id, files("index"), x.files["index"])
	}
	_, err := store.Put(t.Context(), key.UploadsPrefix(name)+a.id+"/index", bytes.NewReader(b.files["index"]), objstore.Condition{})
	require.NoError(t, err)
	used.Store(0)
	result, reason := s.wait(a.id)
	require.Equal(t, "failed", result)
	require.Contains(t, reason, "the file has changed since the upload was finished")
	result, reason = s.wait(b.id)
	require.Equal(t, "complete", result, reason)
	require.Equal(t, smallSamples, samples(t, store).Count())
}

// TestFinishElsewhere: another process continues what one that has died was asked to finish, when
// it is asked to finish, too.
func TestFinishElsewhere(t *testing.T) {
	used := &atomic.Int64{}
	used.Store(1 << 30)
	store := newStore(&clock{})
	b := small(t, "up")
	other := serve(t, store)
	require.NoError(t, uploadapp.Sweep(t.Context(), other.stage))
	s := serve(t, store, func(o *options) { o.memory = memory.New(1<<30, probe(used), nil) })
	s.send(b)
	s.want(200, "", b.id, "finish", nil)
	s.kill()
	require.NoError(t, uploadapp.Sweep(t.Context(), other.stage), "of a process that is not new")
	result, _ := other.state(b.id)
	require.Equal(t, "validating", result)
	other.want(200, "", b.id, "finish", nil)
	result, reason := other.wait(b.id)
	require.Equal(t, "complete", result, reason)
	require.Equal(t, smallSamples, samples(t, store).Count())
}

// TestCopyAndDeletion: a copy of the store has the imported samples and nothing of the uploads.
// Nothing of them outlives their tenant.
func TestCopyAndDeletion(t *testing.T) {
	c := &clock{}
	store := newStore(c)
	s := serve(t, store)
	s.upload(small(t, "a"))
	s.send(small(t, "b"))
	require.NotEmpty(t, uploads(store))
	copied := newStore(c)
	_, err := copyapp.Tenant(t.Context(), store, copied, name)
	require.NoError(t, err)
	require.Empty(t, uploads(copied))
	require.Equal(t, smallSamples, samples(t, copied).Count())
	_, err = tenantapp.Delete(t.Context(), store, name, 0)
	require.NoError(t, err)
	require.Empty(t, uploads(store))
}

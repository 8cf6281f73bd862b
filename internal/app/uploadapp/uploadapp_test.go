package uploadapp_test

import (
	"bytes"
	"errors"
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
	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/memory"
	"github.com/promlake/promlake/internal/objstore"
	"github.com/promlake/promlake/internal/objstore/memstore"
	"github.com/promlake/promlake/internal/settings"
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
		o, err := importapp.RunInto(t.Context(), store, im, importapp.TSDB{Source: dir}, time.Now, nil)
		require.NoError(t, err)
		return o.Report().Samples
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
# HELP promlake_block_uploads_total Uploads of blocks that ended, by result: complete, failed, and expired (nobody finished them within --compactor.block-upload-deletion-delay).
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

var errKilled = errors.New("killed")

// TestKilled kills a process at every request to the store, before and after its effect. A new
// process continues what was finished, by itself or when it is asked to finish again. A client
// repeats the rest. No sample is lost or imported twice.
func TestKilled(t *testing.T) {
	b := small(t, "up")
	for at, total := 0, 1; at < total; at++ {
		for _, when := range []memstore.When{memstore.Before, memstore.After} {
			var n atomic.Int64
			var dead atomic.Bool
			dying := at > 0
			store := memstore.New(memstore.Settings{Now: (&clock{}).now, Faults: func(memstore.Call) memstore.Fault {
				f := memstore.Fault{}
				if i := int(n.Add(1)); dying && i >= at {
					dead.Store(true)
					f.Err = errKilled
					if i == at {
						f.When = when
					}
				}
				return f
			}})
			label := fmt.Sprintf("killed at request %d (%v)", at, when)
			first := serve(t, store)
			first.try(b, dead.Load)
			first.kill()
			if at == 0 {
				total = int(n.Load()) + 1
				break
			}
			dying = false
			second := serve(t, store)
			switch result, reason := second.wait(b.id); result {
			case "complete":
			case "", "uploading":
				second.upload(b)
			default:
				t.Fatalf("%s: %s %s", label, result, reason)
			}
			require.Equal(t, smallSamples, samples(t, store).Count(), label)
			require.Eventually(t, func() bool { return len(uploads(store)) == 1 }, time.Minute, time.Millisecond, "%s: %v", label, uploads(store))
			blocks := 0
			for _, k := range store.Keys() {
				if strings.HasPrefix(k, "v1/"+name+"/imports/") {
					blocks++
				}
			}
			require.Equal(t, 2, blocks, label)
		}
	}
}

// try uploads a block until it is complete or the process dies.
func (s *server) try(b block, dead func() bool) {
	s.t.Helper()
	s.ask(http.MethodPost, b.id, "start", b.meta)
	for path, raw := range b.files {
		s.ask(http.MethodPost, b.id, files(path), raw)
	}
	s.ask(http.MethodPost, b.id, "finish", nil)
	require.Eventually(s.t, func() bool {
		if dead() {
			return true
		}
		_, text := s.ask(http.MethodGet, b.id, "check", nil)
		return strings.Contains(text, "complete")
	}, time.Minute, 10*time.Millisecond)
}

// TestOutage: a store that fails for a moment does not fail the upload.
func TestOutage(t *testing.T) {
	script := &memstore.Script{}
	script.Add(func(c memstore.Call) bool { return c.Op == memstore.Put && c.Key == key.Manifest(name) }, memstore.Fault{Err: errors.New("no answer")})
	store := memstore.New(memstore.Settings{Now: (&clock{}).now, Faults: script.Next})
	serve(t, store).upload(small(t, "up"))
	require.Zero(t, script.Left())
	require.Equal(t, smallSamples, samples(t, store).Count())
}

// TestSweep: what nobody has finished for a day is deleted. Complete uploads, those that are under
// way and other objects stay.
func TestSweep(t *testing.T) {
	c, used := &clock{}, &atomic.Int64{}
	store := newStore(c)
	s := serve(t, store, func(o *options) { o.memory = memory.New(1<<30, probe(used), nil) })
	done, failed, begun, waiting := small(t, "done"), small(t, "failed"), small(t, "begun"), small(t, "waiting")
	s.upload(done)
	index := failed.files["index"]
	failed.files["index"] = bytes.Repeat([]byte("x"), len(index))
	s.send(failed)
	s.want(200, "", failed.id, "finish", nil)
	result, _ := s.wait(failed.id)
	require.Equal(t, "failed", result)
	s.send(begun)
	used.Store(1 << 30)
	s.send(waiting)
	s.want(200, "", waiting.id, "finish", nil)
	orphan := key.UploadsPrefix(name) + "01M830A8Q5FDT227PX59J0YKC3/index"
	other := key.UploadsPrefix(name) + "notes.txt"
	for _, k := range []string{orphan, other, key.UploadsPrefix(name) + done.id + "/index"} {
		_, err := store.Put(t.Context(), k, strings.NewReader("x"), objstore.Condition{})
		require.NoError(t, err)
	}

	c.pass(23 * time.Hour)
	require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
	for _, b := range []block{failed, begun} {
		require.Contains(t, uploads(store), b.id+"/index")
	}
	require.Contains(t, store.Keys(), orphan)
	require.NotContains(t, uploads(store), done.id+"/index", "what is left of a complete upload")
	s.want(200, "", begun.id, files("index"), begun.files["index"]) // the client goes on

	c.pass(2 * time.Hour)
	for range 2 {
		require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
	}
	left := strings.Join(uploads(store), " ")
	require.NotContains(t, left, failed.id)
	require.NotContains(t, store.Keys(), orphan)
	require.Contains(t, store.Keys(), other)
	for b, want := range map[*block]string{&done: "complete", &failed: "", &begun: "uploading", &waiting: "validating"} {
		result, _ := s.state(b.id)
		require.Equal(t, want, result)
	}

	c.pass(23 * time.Hour)
	require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
	s.want(http.StatusNotFound, "not started", begun.id, "finish", nil)

	used.Store(0)
	result, reason := s.wait(waiting.id)
	require.Equal(t, "complete", result, reason)
	failed.files["index"] = index
	s.upload(failed)
	require.Equal(t, 3*smallSamples, samples(t, store).Count())
}

// TestSweepKilled kills a sweep at every request. The next one deletes the rest.
func TestSweepKilled(t *testing.T) {
	b := small(t, "up")
	for at := 1; ; at++ {
		c := &clock{}
		var n atomic.Int64
		var dying atomic.Bool
		store := memstore.New(memstore.Settings{Now: c.now, Faults: func(memstore.Call) memstore.Fault {
			if dying.Load() && int(n.Add(1)) >= at {
				return memstore.Fault{Err: errKilled}
			}
			return memstore.Fault{}
		}})
		s := serve(t, store)
		s.send(b)
		c.pass(25 * time.Hour)
		dying.Store(true)
		err := uploadapp.Sweep(t.Context(), s.stage)
		dying.Store(false)
		require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
		if len(uploads(store)) > 0 { // files whose state was deleted first, or none
			c.pass(25 * time.Hour)
			require.NoError(t, uploadapp.Sweep(t.Context(), s.stage))
		}
		require.Empty(t, uploads(store), "killed at request %d", at)
		s.upload(b)
		require.Equal(t, smallSamples, samples(t, store).Count())
		if err == nil {
			return
		}
	}
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
	_, err = tenantapp.Delete(t.Context(), store, name, tenantapp.Settings{})
	require.NoError(t, err)
	require.Empty(t, uploads(store))
}

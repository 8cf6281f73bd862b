package s3store_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
)

const conflict = "ConditionalRequestConflict"

var ifAbsent = objstore.Condition{IfAbsent: true}

// TestFaultyPuts: in spite of faults, a Put that can succeed does, and returns the ETag of the
// stored object.
func TestFaultyPuts(t *testing.T) {
	p, s := newProxy(t)
	for _, c := range []struct {
		name   string
		faults []fault
	}{
		{"no fault", nil},
		{"conflicts", []fault{refuse("PUT", 409, conflict), refuse("PUT", 409, "OperationAborted"), refuse("PUT", 409, conflict)}},
		{"slow down", []fault{refuse("PUT", 503, "SlowDown"), refuse("PUT", 503, "SlowDown"), refuse("PUT", 429, "TooManyRequests")}},
		{"errors of the server", []fault{refuse("PUT", 500, "InternalError"), refuse("PUT", 502, ""), refuse("PUT", 400, "RequestTimeout")}},
		{"lost requests", []fault{dropBefore("PUT"), dropBefore("PUT")}},
		{"lost answer", []fault{dropAfter("PUT")}},
		{"lost answers", []fault{dropAfter("PUT"), dropAfter("PUT"), dropAfter("PUT")}},
		{"effect, then an error", []fault{failAfter("PUT")}},
		{"effect, error, conflict", []fault{failAfter("PUT"), refuse("PUT", 409, conflict)}},
		{"lost answer, lost HEAD", []fault{dropAfter("PUT"), dropBefore("HEAD"), refuse("HEAD", 503, "")}},
	} {
		for _, size := range []int{5, 3 << 20} {
			require.NoError(t, s.Delete(t.Context(), "k"), c.name)
			first, second := text(size), bytes.ToUpper(text(size))

			p.plan(c.faults...)
			etag := mustPut(t, s, first, ifAbsent, c.name)
			_, left := p.seen()
			assert.Zero(t, left, c.name)
			requireObject(t, p, first, etag, c.name)

			p.plan(c.faults...)
			etag = mustPut(t, s, second, objstore.Condition{IfMatch: etag}, c.name)
			requireObject(t, p, second, etag, c.name)

			unconditional := c.faults
			if strings.Contains(c.name, "HEAD") {
				unconditional = nil
			}
			p.plan(unconditional...)
			etag = mustPut(t, s, first, objstore.Condition{}, c.name)
			requests, _ := p.seen()
			assert.Zero(t, count(requests, "HEAD"), "%s: nothing to find out", c.name)
			requireObject(t, p, first, etag, c.name)
		}
	}
}

func mustPut(t *testing.T, s objstore.Store, b []byte, cond objstore.Condition, name string) string {
	t.Helper()
	etag, err := s.Put(t.Context(), "k", bytes.NewReader(b), cond)
	require.NoError(t, err, "%s: %+v", name, cond)
	return etag
}

func requireObject(t *testing.T, p *proxy, want []byte, etag, name string) {
	t.Helper()
	r, o, err := p.direct().Get(t.Context(), "k", 0, -1)
	require.NoError(t, err, name)
	got, err := io.ReadAll(r)
	require.NoError(t, err, name)
	require.NoError(t, r.Close())
	require.True(t, bytes.Equal(want, got), "%s: the bytes differ", name)
	require.Equal(t, etag, o.ETag, name)
}

// TestLostRaces: a rejection is final if no earlier attempt can have taken effect.
func TestLostRaces(t *testing.T) {
	p, s := newProxy(t)
	old := mustPut(t, s, []byte("old"), objstore.Condition{}, "")
	current := mustPut(t, s, []byte("current"), objstore.Condition{}, "")
	for _, faults := range [][]fault{
		nil,
		{refuse("PUT", 409, conflict)},
		{refuse("PUT", 503, "SlowDown"), refuse("PUT", 429, "TooManyRequests")},
	} {
		for _, cond := range []objstore.Condition{ifAbsent, {IfMatch: old}} {
			p.plan(faults...)
			_, err := s.Put(t.Context(), "k", strings.NewReader("new"), cond)
			require.ErrorIs(t, err, objstore.ErrPrecondition)
			requests, left := p.seen()
			assert.Zero(t, left)
			assert.Zero(t, count(requests, "HEAD"))
			requireObject(t, p, []byte("current"), current, "")
		}
	}
}

// TestUnknownEffect: the answer to an attempt was lost, the next attempt was rejected, and the
// object belongs to another writer. Whether our write ever took effect is unknown, so the error is
// none of the sentinels.
func TestUnknownEffect(t *testing.T) {
	p, s := newProxy(t)
	rival := func() {
		_, err := p.direct().Put(context.Background(), "k", strings.NewReader("rival"), objstore.Condition{})
		assert.NoError(t, err)
	}
	remove := func() { assert.NoError(t, p.direct().Delete(context.Background(), "k")) }
	etag := mustPut(t, s, []byte("old"), objstore.Condition{}, "")
	for _, c := range []struct {
		name   string
		cond   objstore.Condition
		faults []fault
	}{
		{"written and overwritten", objstore.Condition{IfMatch: etag}, []fault{dropAfter("PUT", rival)}},
		{"written and deleted", objstore.Condition{IfMatch: etag}, []fault{dropAfter("PUT", remove)}},
		{"never written", objstore.Condition{IfMatch: "stale"}, []fault{dropBefore("PUT")}},
		{"never created", ifAbsent, []fault{dropBefore("PUT")}},
		{"no answer to HEAD", objstore.Condition{IfMatch: etag}, []fault{dropAfter("PUT"), refuse("HEAD", 403, "AccessDenied")}},
	} {
		etag := mustPut(t, s, []byte("old"), objstore.Condition{}, c.name)
		if c.cond.IfMatch != "" && c.cond.IfMatch != "stale" {
			c.cond.IfMatch = etag
		}
		p.plan(c.faults...)
		_, err := s.Put(t.Context(), "k", strings.NewReader("new"), c.cond)
		require.ErrorContains(t, err, "may have taken effect", c.name)
		require.NotErrorIs(t, err, objstore.ErrPrecondition, c.name)
		require.NotErrorIs(t, err, objstore.ErrNotFound, c.name)
	}
}

func TestFaultyUploadsInParts(t *testing.T) {
	p, s := newProxy(t)
	want := text(17 << 20)
	const create, part, complete = "POST uploads", "PUT partNumber", "POST uploadId"
	for _, c := range []struct {
		name    string
		faults  []fault
		creates int
	}{
		{"no fault", nil, 1},
		{"busy server", []fault{refuse(create, 503, "SlowDown"), refuse(part, 503, "SlowDown"), refuse(part, 500, ""), refuse(complete, 500, "")}, 2},
		{"lost parts", []fault{dropBefore(part), dropAfter(part), dropAfter(part)}, 1},
		{"completed, lost answer", []fault{dropAfter(complete)}, 1},
		{"completed, then an error", []fault{failAfter(complete), refuse(complete, 500, "InternalError")}, 1},
		{"conflict", []fault{refuse(complete, 409, conflict)}, 2},
		{"completed, lost answer, conflict", []fault{dropAfter(complete), refuse(complete, 409, conflict)}, 2},
	} {
		require.NoError(t, s.Delete(t.Context(), "k"), c.name)
		etag := ""
		for _, cond := range []func() objstore.Condition{
			func() objstore.Condition { return ifAbsent },
			func() objstore.Condition { return objstore.Condition{IfMatch: etag} },
			func() objstore.Condition { return objstore.Condition{} },
		} {
			want[len(want)/2]++
			p.plan(c.faults...)
			etag = mustPut(t, s, want, cond(), c.name)
			requests, left := p.seen()
			assert.Zero(t, left, c.name)
			assert.Equal(t, c.creates, count(requests, create), c.name)
			requireObject(t, p, want, etag, c.name)
			requireNoUploads(t, p, c.name)
		}
	}
}

func TestFailedUploadsInPartsLeaveNothing(t *testing.T) {
	p, s := newProxy(t)
	etag := mustPut(t, s, []byte("old"), objstore.Condition{}, "")
	for name, f := range map[string]fault{
		"part":     refuse("PUT partNumber", 403, "AccessDenied"),
		"complete": refuse("POST uploadId", 400, "InvalidPart"),
	} {
		p.plan(f)
		_, err := s.Put(t.Context(), "k", bytes.NewReader(text(17<<20)), objstore.Condition{})
		require.ErrorContains(t, err, name)
		requireNoUploads(t, p, name)
		requireObject(t, p, []byte("old"), etag, name)
	}
	p.plan()
	_, err := s.Put(t.Context(), "k", bytes.NewReader(text(17<<20)), ifAbsent)
	require.ErrorIs(t, err, objstore.ErrPrecondition)
	requireNoUploads(t, p, "precondition")
}

func requireNoUploads(t *testing.T, p *proxy, name string) {
	t.Helper()
	out, err := p.gateway.Client().ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &p.bucket})
	require.NoError(t, err)
	require.Empty(t, out.Uploads, "%s: parts are left behind", name)
}

// TestBrokenBodies: a reader does not notice broken connections.
func TestBrokenBodies(t *testing.T) {
	p, s := newProxy(t)
	const size = 1 << 20
	want := text(size)
	mustPut(t, s, want, objstore.Condition{}, "")
	for _, c := range []struct {
		name           string
		offset, length int64
		faults         []fault
		gets           int
	}{
		{"once", 0, -1, []fault{truncate("GET", 1000)}, 2},
		{"at once", 0, -1, []fault{truncate("GET", 0), truncate("GET", 0)}, 3},
		{"one byte short", 0, -1, []fault{truncate("GET", size-1)}, 2},
		{"again and again", 0, -1, []fault{truncate("GET", 10), truncate("GET", 1), truncate("GET", 70_000), truncate("GET", 5)}, 5},
		{"lost before", 5, 500_000, []fault{dropBefore("GET"), refuse("GET", 503, "SlowDown"), truncate("GET", 300_000)}, 4},
		{"lost while resuming", 5, 500_000, []fault{truncate("GET", 300_000), dropBefore("GET"), refuse("GET", 503, "SlowDown")}, 4},
		{"suffix", -400_000, -1, []fault{truncate("GET", 100_001), truncate("GET", 100_001)}, 3},
		{"part of a suffix", -400_000, 200_000, []fault{truncate("GET", 100_001)}, 2},
		{"whole but for the end", -400_000, 100, []fault{truncate("GET", 200_000)}, 1},
	} {
		p.plan(c.faults...)
		r, o, err := s.Get(t.Context(), "k", c.offset, c.length)
		require.NoError(t, err, c.name)
		got, err := io.ReadAll(r)
		require.NoError(t, err, c.name)
		require.NoError(t, r.Close())
		start, n, err := objstore.Span(c.offset, c.length, size)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(want[start:start+n], got), "%s: the bytes differ", c.name)
		assert.EqualValues(t, size, o.Size)
		requests, _ := p.seen()
		assert.Equal(t, c.gets, count(requests, "GET"), c.name)
	}
}

// TestBrokenBodiesOfOtherVersions: if the rest of a version is no longer available, the reader gets
// an error, never a mixture or a short body.
func TestBrokenBodiesOfOtherVersions(t *testing.T) {
	p, s := newProxy(t)
	for name, change := range map[string]func(){
		"overwritten": func() {
			_, err := p.direct().Put(context.Background(), "k", bytes.NewReader(bytes.ToUpper(text(1<<20))), objstore.Condition{})
			assert.NoError(t, err)
		},
		"deleted": func() { assert.NoError(t, p.direct().Delete(context.Background(), "k")) },
	} {
		want := text(1 << 20)
		mustPut(t, s, want, objstore.Condition{}, name)
		p.plan(truncate("GET", 1000, change))
		r, _, err := s.Get(t.Context(), "k", 0, -1)
		require.NoError(t, err, name)
		got, err := io.ReadAll(r)
		require.ErrorContains(t, err, "resume", name)
		assert.True(t, bytes.HasPrefix(want, got), name)
		require.NoError(t, r.Close())
	}
}

func TestAttemptsEnd(t *testing.T) {
	p, s := newProxy(t)
	mustPut(t, s, text(1000), objstore.Condition{}, "")
	repeat := func(f fault) (faults []fault) {
		for range 50 {
			faults = append(faults, f)
		}
		return faults
	}
	p.plan(repeat(refuse("PUT", 503, "SlowDown"))...)
	_, err := s.Put(t.Context(), "k", strings.NewReader("x"), ifAbsent)
	require.ErrorContains(t, err, "SlowDown")
	require.NotErrorIs(t, err, objstore.ErrPrecondition)
	requests, _ := p.seen()
	assert.Equal(t, 8, count(requests, "PUT"))

	p.plan(repeat(truncate("GET", 0))...)
	r, _, err := s.Get(t.Context(), "k", 0, -1)
	require.NoError(t, err)
	_, err = io.ReadAll(r)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.NoError(t, r.Close())
	requests, _ = p.seen()
	assert.Equal(t, 8, count(requests, "GET"))
}

func TestFaultyListsAndDeletes(t *testing.T) {
	p, s := newProxy(t)
	for _, k := range []string{"a", "b"} {
		_, err := s.Put(t.Context(), k, strings.NewReader(k), objstore.Condition{})
		require.NoError(t, err)
	}
	for _, f := range []fault{refuse("GET list-type", 503, "SlowDown"), dropBefore("GET list-type"), truncate("GET list-type", 0), truncate("GET list-type", 1), truncate("GET list-type", 60), truncate("GET list-type", 300)} {
		p.plan(f)
		var keys []string
		for o, err := range s.List(t.Context(), "", "") {
			require.NoError(t, err)
			keys = append(keys, o.Key)
		}
		assert.Equal(t, []string{"a", "b"}, keys)
		_, left := p.seen()
		assert.Zero(t, left)
	}
	p.plan(dropAfter("DELETE"), refuse("DELETE", 503, "SlowDown"))
	require.NoError(t, s.Delete(t.Context(), "a"))
	_, left := p.seen()
	assert.Zero(t, left)
	_, _, err := s.Get(t.Context(), "a", 0, -1)
	require.ErrorIs(t, err, objstore.ErrNotFound)

	p.plan(refuse("GET", 404, "NoSuchBucket"))
	_, _, err = s.Get(t.Context(), "b", 0, -1)
	require.ErrorContains(t, err, "NoSuchBucket")
	require.NotErrorIs(t, err, objstore.ErrNotFound, "a missing bucket is no missing object")
}

// TestDeniedGets: an object is missing if a request for it is denied and the caller may list that it
// does not exist. Otherwise, the denial is the error.
func TestDeniedGets(t *testing.T) {
	p, s := newProxy(t)
	for _, k := range []string{"object", "objects", "parent/child"} {
		_, err := s.Put(t.Context(), k, strings.NewReader("x"), objstore.Condition{})
		require.NoError(t, err)
	}
	for _, c := range []struct {
		key    string
		length int64 // 0 is a HEAD
		faults []fault
		want   string // "" is ErrNotFound
	}{
		{"absent", -1, nil, ""},
		{"absent", -1, []fault{refuse("GET", 403, "AccessDenied")}, ""},
		{"absent", 0, []fault{refuse("HEAD", 403, "")}, ""},
		{"objec", -1, []fault{refuse("GET", 403, "AccessDenied")}, ""}, // another key begins with it
		{"parent", -1, []fault{refuse("GET", 403, "AccessDenied")}, ""},
		{"absent", -1, []fault{refuse("GET", 403, "AccessDenied"), refuse("GET list-type", 503, "SlowDown")}, ""},
		{"absent", -1, []fault{refuse("GET", 403, "AccessDenied"), refuse("GET list-type", 403, "AccessDenied")}, "AccessDenied"},
		{"absent", 0, []fault{refuse("HEAD", 403, ""), refuse("GET list-type", 403, "AccessDenied")}, "Forbidden"},
		{"object", -1, []fault{refuse("GET", 403, "AccessDenied")}, "AccessDenied"},
		{"object", 0, []fault{refuse("HEAD", 403, "")}, "Forbidden"},
		{"absent", -1, []fault{refuse("GET", 403, "InvalidAccessKeyId")}, "InvalidAccessKeyId"},
	} {
		p.plan(c.faults...)
		_, _, err := s.Get(t.Context(), c.key, 0, c.length)
		_, left := p.seen()
		assert.Zero(t, left, c)
		if c.want == "" {
			require.ErrorIs(t, err, objstore.ErrNotFound, "%+v", c)
			continue
		}
		require.ErrorContains(t, err, c.want)
		require.NotErrorIs(t, err, objstore.ErrNotFound, "%+v", c)
	}
}

// TestSilentServer: a request without an answer is retried after the timeout, and ends at once with
// its context.
func TestSilentServer(t *testing.T) {
	p, _ := newProxy(t)
	c := configOf(t, p.gateway)
	c.Bucket, c.Timeout = p.bucket, 2*time.Second
	c.Endpoint = p.url
	s := open(t, c)
	p.plan(stall("PUT"), stall("GET"))
	etag := mustPut(t, s, []byte("x"), ifAbsent, "")
	requireObject(t, p, []byte("x"), etag, "")
	r, _, err := s.Get(t.Context(), "k", 0, -1)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, left := p.seen()
	assert.Zero(t, left)
}

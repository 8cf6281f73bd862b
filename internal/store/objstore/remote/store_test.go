package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/store/objstore"
	"github.com/promlake/promlake/tests/support/memstore"
	"github.com/promlake/promlake/tests/support/storetest"
)

// errAfter is the error of a request that took effect, and whose answer was lost.
var errAfter = errors.New("the connection broke")

// memory is a Protocol over a memstore.Store, whose script injects faults.
type memory struct {
	*memstore.Store
	script *memstore.Script
	tokens sync.Map
	puts   atomic.Int32
	second func() // is called before the second Put
}

func newMemory() *memory {
	script := &memstore.Script{}
	return &memory{Store: memstore.New(memstore.Settings{Faults: script.Next}), script: script}
}

func (m *memory) open(t *testing.T) *Store {
	t.Helper()
	s, err := New(m, "/some/prefix/", Policy{MaxAttempts: 8, MinBackoff: time.Millisecond, MaxBackoff: time.Millisecond})
	require.NoError(t, err)
	return s
}

func (m *memory) Get(ctx context.Context, name string, offset, length int64, etag string) (Answer, error) {
	r, o, err := m.Store.Get(ctx, name, offset, length)
	if err == nil && etag != "" && o.ETag != etag {
		err = objstore.ErrPrecondition
	}
	if err != nil {
		return Answer{}, err
	}
	a := Answer{Body: r, Object: o}
	if start, n, err := objstore.Span(offset, length, o.Size); err == nil && n < o.Size {
		a.Range = strings.Replace(RangeHeader(start, n), "=", " ", 1) + "/" + strconv.FormatInt(o.Size, 10)
	}
	return a, nil
}

func (m *memory) Head(ctx context.Context, name string) (objstore.Object, string, error) {
	r, o, err := m.Store.Get(ctx, name, 0, -1)
	if err == nil {
		err = r.Close()
	}
	token, _ := m.tokens.Load(name)
	s, _ := token.(string)
	return o, s, err
}

func (m *memory) Put(ctx context.Context, name string, body *io.SectionReader, cond objstore.Condition, token string) (string, error) {
	if m.puts.Add(1) == 2 && m.second != nil {
		m.second()
	}
	etag, err := m.Store.Put(ctx, name, body, cond)
	if err == nil || errors.Is(err, errAfter) {
		m.tokens.Store(name, token)
	}
	return etag, err
}

func (m *memory) List(ctx context.Context, prefix, start string, folders bool, token string) (page []objstore.Object, next string, err error) {
	if folders {
		for f, err := range m.ListFolders(ctx, prefix) {
			if err != nil {
				return page, "", err
			}
			page = append(page, objstore.Object{Key: f})
		}
		return page, "", nil
	}
	for o, err := range m.Store.List(ctx, prefix, max(start, token)) {
		switch {
		case err != nil:
			return page, "", err
		case len(page) == 100:
			return page, page[99].Key, nil
		}
		page = append(page, o)
	}
	return page, "", nil
}

func (m *memory) Fault(err error) (f Fault) {
	f.Header = http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}
	for status, sentinel := range map[int]error{404: objstore.ErrNotFound, 412: objstore.ErrPrecondition, 416: objstore.ErrRange} {
		if errors.Is(err, sentinel) {
			f.Status, f.Means = status, sentinel
		}
	}
	if answer, ok := errors.AsType[*memstore.StatusError](err); ok {
		f.Status = answer.Code
	}
	return f
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) objstore.Store { return newMemory().open(t) })
}

var (
	lost   = memstore.Fault{Err: errAfter, When: memstore.After}
	busy   = memstore.Fault{Err: memstore.Status(503)}
	denied = memstore.Fault{Err: memstore.Status(403)}
)

// TestLostAnswers: a conditional write whose answer was lost is found by its token. A refusal after
// it that cannot be explained is never reported as a condition that did not hold.
func TestLostAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		faults    []memstore.Fault
		overwrite bool
		want      error
		attempts  int
	}{
		"first answer":          {[]memstore.Fault{lost}, false, nil, 2},
		"busy, then the answer": {[]memstore.Fault{busy, lost, busy}, false, nil, 4},
		"overwritten":           {[]memstore.Fault{lost}, true, ErrUnknownEffect, 2},
		"denied":                {[]memstore.Fault{denied}, false, memstore.Status(403), 1},
	} {
		for _, cond := range []objstore.Condition{{IfAbsent: true}, {IfMatch: "old"}} {
			m := newMemory()
			s := m.open(t)
			if cond.IfMatch != "" {
				etag, err := s.Put(t.Context(), "k", strings.NewReader("old"), objstore.Condition{})
				require.NoError(t, err, name)
				cond.IfMatch = etag
			}
			for _, f := range c.faults {
				m.script.Add(memstore.On(memstore.Put), f)
			}
			m.puts.Store(0)
			if c.overwrite {
				m.second = func() {
					m.tokens.Store("some/prefix/k", "other")
					_, err := m.Store.Put(t.Context(), "some/prefix/k", strings.NewReader("other"), objstore.Condition{})
					require.NoError(t, err)
				}
			}
			etag, err := s.Put(t.Context(), "k", strings.NewReader("mine"), cond)
			assert.Zero(t, m.script.Left(), name)
			assert.EqualValues(t, c.attempts, m.puts.Load(), name)
			require.NotErrorIs(t, err, objstore.ErrPrecondition, name)
			if c.want != nil {
				require.ErrorContains(t, err, c.want.Error(), name)
				continue
			}
			require.NoError(t, err, name)
			b, o, err := objstore.ReadAll(t.Context(), s, "k")
			require.NoError(t, err, name)
			assert.Equal(t, "mine", string(b), name)
			assert.Equal(t, etag, o.ETag, name)
		}
	}
}

// TestBrokenBodies: a reader does not notice broken connections, and never sees a mixture of
// versions.
func TestBrokenBodies(t *testing.T) {
	m := newMemory()
	s := m.open(t)
	put := func(value string) {
		_, err := s.Put(t.Context(), "k", strings.NewReader(value), objstore.Condition{})
		require.NoError(t, err)
	}
	put("0123456789")
	midway := memstore.Fault{Err: errAfter, When: memstore.Midway}
	for range 3 {
		m.script.Add(memstore.On(memstore.Get), midway)
	}
	b, _, err := objstore.ReadAll(t.Context(), s, "k")
	require.NoError(t, err)
	assert.Equal(t, "0123456789", string(b))
	assert.Zero(t, m.script.Left())

	m.script.Add(memstore.On(memstore.Get), midway)
	r, _, err := s.Get(t.Context(), "k", 0, -1)
	require.NoError(t, err)
	put("abcdefghij")
	b, err = io.ReadAll(r)
	require.ErrorContains(t, err, "resume")
	require.NotErrorIs(t, err, objstore.ErrNotFound)
	assert.True(t, strings.HasPrefix("0123456789", string(b)))
	require.NoError(t, r.Close())
}

package compact

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/segment"
	"github.com/promlake/promlake/internal/store/objstore"
)

// flipping answers whole reads of one object with a bit of a byte changed.
type flipping struct {
	objstore.Store
	key string
	at  int
}

func (f *flipping) Get(ctx context.Context, k string, offset, length int64) (io.ReadCloser, objstore.Object, error) {
	r, o, err := f.Store.Get(ctx, k, offset, length)
	if err != nil || k != f.key {
		return r, o, err
	}
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, o, err
	}
	if at := f.at - int(offset); at >= 0 && at < len(b) {
		b[at] ^= 1
	}
	return io.NopCloser(bytes.NewReader(b)), o, r.Close()
}

// TestDamageIsNotCopied: a segment with a flipped bit ends its job with an error that names it. No
// block is made, and nothing is lost: once the bytes are right again, the same job succeeds.
func TestDamageIsNotCopied(t *testing.T) {
	l := newLake(t)
	rows := func(hhmm string) (out []segment.Row) { // of floats alone: of histograms, not every column is read
		for _, name := range []string{"a", "b", "c"} {
			out = append(out, segment.Row{Labels: labels.FromStrings("__name__", name, "i", "0"), Floats: []segment.Float{{T: clock(hhmm).UnixMilli(), V: 7}}})
		}
		return out
	}
	l.at("0:10").write("t", rows("0:05"))
	l.at("0:11").write("t", rows("0:06"))
	l.at("2:30")
	k := l.snapshot("t").Segments[0].String()
	r, o, err := l.mem.Get(t.Context(), k, 0, -1)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	f := &flipping{Store: l.mem, key: k}
	l.store = f
	for f.at = 4; f.at < int(o.Size); f.at += 7 {
		err := l.stage(Settings{Policy: plan.Policy{MinPartSegments: 2}}, 2).UntilIdle(t.Context(), nil, nil)
		require.Error(t, err, "byte %d of %d", f.at, o.Size)
		require.Contains(t, err.Error(), k)
	}
	require.Empty(t, l.snapshot("t").Blocks)
	f.at = 60
	require.ErrorIs(t, l.stage(Settings{Policy: plan.Policy{MinPartSegments: 2}}, 2).UntilIdle(t.Context(), nil, nil), checksum.ErrDamaged)
	f.key = ""
	l.untilIdle(l.stage(Settings{Policy: plan.Policy{MinPartSegments: 2}}, 2))
	require.NotEmpty(t, l.snapshot("t").Blocks)
	l.check("t")
}

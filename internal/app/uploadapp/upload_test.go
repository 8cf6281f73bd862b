package uploadapp_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/uploadapp"
	"github.com/promlake/promlake/internal/format/checksum"
)

const blockID = "01M830A8Q5FDT227PX59J0YKC3"

var (
	id     = ulid.MustParse(blockID)
	now    = time.UnixMilli(1_700_000_000_000)
	limits = uploadapp.Limits{Bytes: 1000, Range: 24 * time.Hour, Retention: 30 * 24 * time.Hour}
)

// meta is a valid meta.json, in which pairs of texts are replaced.
func meta(replace ...string) string {
	return strings.NewReplacer(replace...).Replace(`{"ulid":"` + blockID + `","version":1,"minTime":1699900000000,"maxTime":1699907200000,` +
		`"stats":{"numSamples":4800,"numChunks":75,"numSeries":50},"thanos":{"files":[{"rel_path":"index","size_bytes":400},{"rel_path":"chunks/000001","size_bytes":600},{"rel_path":"meta.json"}]}}`)
}

func TestAnnounce(t *testing.T) {
	s, err := uploadapp.Announce(id, []byte(meta()), limits, now)
	require.NoError(t, err)
	require.Equal(t, uploadapp.Uploading, s.Result)
	require.Equal(t, []uploadapp.File{{Path: "chunks/000001", Bytes: 600}, {Path: "index", Bytes: 400}}, s.Files)
	f, ok := s.File("index")
	require.True(t, ok)
	require.Equal(t, int64(400), f.Bytes)
	_, ok = s.File("tombstones")
	require.False(t, ok)

	_, err = uploadapp.Announce(id, []byte(meta(`"thanos":{`, `"thanos":{"labels":{"__org_id__":"1"},`)), limits, now)
	require.NoError(t, err, "labels of Mimir itself")

	var limit *uploadapp.LimitError
	for _, tc := range []struct {
		name string
		body string
		want string
		is   error
	}{
		{"no JSON", `{`, "meta.json", uploadapp.ErrInvalid},
		{"version", meta(`"version":1`, `"version":2`), "version 2, want 1", uploadapp.ErrInvalid},
		{"another block", meta(blockID, "01M830A8Q5FDT227PX59J0YKC4"), "it is of block 01M830A8Q5FDT227PX59J0YKC4", uploadapp.ErrInvalid},
		{"downsampled", meta(`"thanos":{`, `"thanos":{"downsample":{"resolution":300000},`), "is downsampled", uploadapp.ErrInvalid},
		{"external labels", meta(`"thanos":{`, `"thanos":{"labels":{"replica":"a"},`), `external label "replica"`, uploadapp.ErrInvalid},
		{"negative", meta("1699900000000", "-1"), "minTime -1", uploadapp.ErrInvalid},
		{"reversed", meta("1699900000000", "1699907200001", `"numSamples":4800,`, ""), "minTime 1699907200001 and maxTime 1699907200000", uploadapp.ErrInvalid},
		{"future", meta("1699907200000", "1700000000001"), "in the future", uploadapp.ErrInvalid},
		{"expired", meta("1699900000000", "1600000000000", "1699907200000", "1600007200000"), "samples are kept for 720h0m0s", uploadapp.ErrExpired},
		{"no list", meta(`"files"`, `"others"`), "thanos.files does not list index", uploadapp.ErrInvalid},
		{"no index", meta(`"index"`, `"tombstones"`), "thanos.files does not list index", uploadapp.ErrInvalid},
		{"path", meta(`chunks/000001`, `../x`), `"../x", want`, uploadapp.ErrInvalid},
		{"empty file", meta(`:600`, `:0`), "chunks/000001 with a size of 0 bytes", uploadapp.ErrInvalid},
		{"negative file", meta(`:600`, `:-600`), "size of -600", uploadapp.ErrInvalid},
		{"twice", meta(`chunks/000001`, `index`), "index twice", uploadapp.ErrInvalid},
		{"long", meta("1699900000000", "1699800000000"), "the limit is 24h0m0s: divide it, or raise --" + uploadapp.LimitRange, nil},
		{"forever", meta("1699900000000", "0"), "the limit is 24h0m0s", nil},
		{"large", meta(`:600`, `:601`), "more than 1000 bytes, the limit: divide the block, or raise --" + uploadapp.LimitBytes, nil},
		{"samples", meta(":4800", ":4801"), "stats.numSamples is 4801, but 600 bytes of chunks hold 4800 at most", uploadapp.ErrInvalid},
		{"all samples", meta(":4800", ":18446744073709551615"), "stats.numSamples is 18446744073709551615", uploadapp.ErrInvalid},
		{"chunks", meta(":75", ":76"), "stats.numChunks is 76, but 600 bytes of chunks hold 75 at most", uploadapp.ErrInvalid},
		{"series", meta(":50", ":51"), "stats.numSeries is 51, but 400 bytes of index hold 50 at most", uploadapp.ErrInvalid},
		{"tombstones", meta("chunks/000001", "tombstones", ":600", ":16777217"), "tombstones has 16777217 bytes, the limit is 16777216", nil},
		{"overflow", meta(`:600`, `:9223372036854775807`), "more than 1000 bytes", nil},
	} {
		_, err := uploadapp.Announce(id, []byte(tc.body), limits, now)
		require.ErrorContains(t, err, tc.want, tc.name)
		if tc.is != nil {
			require.ErrorIs(t, err, tc.is, tc.name)
		} else {
			require.ErrorAs(t, err, &limit, tc.name)
		}
	}
}

func TestFinish(t *testing.T) {
	s, err := uploadapp.Announce(id, []byte(meta()), limits, now)
	require.NoError(t, err)
	there := map[string]uploadapp.File{"index": {Bytes: 400, ETag: "i"}, "tombstones": {Bytes: 1}}
	_, err = s.Finish(there)
	require.ErrorIs(t, err, uploadapp.ErrMissing)
	require.ErrorContains(t, err, "chunks/000001 is missing")
	there["chunks/000001"] = uploadapp.File{Bytes: 599}
	_, err = s.Finish(there)
	require.ErrorContains(t, err, "chunks/000001 has 599 bytes, meta.json says 600")
	there["chunks/000001"] = uploadapp.File{Bytes: 600, ETag: "c"}
	v, err := s.Finish(there)
	require.NoError(t, err)
	require.Equal(t, uploadapp.Validating, v.Result)
	require.NotEqual(t, s.ID, v.ID)
	require.Equal(t, []uploadapp.File{{Path: "chunks/000001", Bytes: 600, ETag: "c"}, {Path: "index", Bytes: 400, ETag: "i"}}, v.Files)

	f := v.Fail(errors.New(strings.Repeat("ü", 3000)))
	require.Equal(t, uploadapp.Failed, f.Result)
	require.Less(t, len(f.Error), 2100)
	again, err := f.Finish(there)
	require.NoError(t, err)
	require.Empty(t, again.Error)
	c := again.Complete()
	require.Equal(t, uploadapp.Complete, c.Result)
	require.Empty(t, c.Files)
	require.Empty(t, c.Meta)
	x := f.Expire()
	require.True(t, f.Exists())
	require.False(t, x.Exists())
	x = (&uploadapp.State{}).Expire()
	require.Equal(t, uploadapp.Version, x.Version, "of files without a state")
	require.True(t, x.Expired)
}

// TestAttempts: an import begins MaxAttempts times. What is given back, and what came before the
// client has finished the upload again, does not count.
func TestAttempts(t *testing.T) {
	s, err := uploadapp.Announce(id, []byte(meta()), limits, now)
	require.NoError(t, err)
	there := map[string]uploadapp.File{"index": {Bytes: 400, ETag: "i"}, "chunks/000001": {Bytes: 600, ETag: "c"}}
	first, err := s.Finish(there)
	require.NoError(t, err)
	s = first
	for range 2 {
		for n := range uploadapp.MaxAttempts {
			next := s.Begin()
			require.NotEqual(t, s.ID, next.ID)
			back := next.GiveBack()
			require.Equal(t, n, back.Attempts)
			s = back.Begin()
			require.Equal(t, uploadapp.Validating, s.Result)
			require.Equal(t, n+1, s.Attempts)
			require.True(t, s.Same(&first))
		}
		s = s.Begin()
		require.Equal(t, uploadapp.Failed, s.Result)
		require.Contains(t, s.Error, "3 imports of the block ended with the process, the limit")
		s, err = s.Finish(there)
		require.NoError(t, err)
		require.Zero(t, s.Attempts)
	}
	there["index"] = uploadapp.File{Bytes: 400, ETag: "j"}
	other, err := s.Finish(there)
	require.NoError(t, err)
	require.False(t, s.Same(&other))
}

// TestFormat pins the bytes of a state.
func TestFormat(t *testing.T) {
	s := uploadapp.State{Version: 1, ID: "R4ND0M", Result: uploadapp.Failed, Error: "x", Attempts: 2, Meta: json.RawMessage(`{"version":1}`), Files: []uploadapp.File{{Path: "index", Bytes: 4, ETag: `"e"`}}, Expired: true}
	b, err := s.Encode()
	require.NoError(t, err)
	require.Equal(t, `{"version":1,"id":"R4ND0M","result":"failed","error":"x","attempts":2,"meta":{"version":1},"files":[{"path":"index","bytes":4,"etag":"\"e\""}],"expired":true,"crc32c":"`, string(b[:len(b)-10]))
	back, err := uploadapp.Decode(b)
	require.NoError(t, err)
	require.Equal(t, s, back)
	_, err = uploadapp.Decode([]byte(strings.Replace(string(b), "failed", "compl1", 1)))
	require.ErrorIs(t, err, uploadapp.ErrState)
	require.ErrorIs(t, err, checksum.ErrDamaged)
	_, err = uploadapp.Decode([]byte(`{"version":1}`))
	require.ErrorIs(t, err, checksum.ErrDamaged)
	s.Version = 2
	b, err = s.Encode()
	require.NoError(t, err)
	_, err = uploadapp.Decode(b)
	require.ErrorIs(t, err, uploadapp.ErrState)
	require.ErrorContains(t, err, "version 2, this program reads 1")
}

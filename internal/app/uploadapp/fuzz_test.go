package uploadapp_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/uploadapp"
	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/key"
)

// FuzzAnnounce holds that an announced block is within its limits and can be stored, and that what
// is refused has a reason which the server knows.
func FuzzAnnounce(f *testing.F) {
	f.Add([]byte(meta()))
	f.Add([]byte(meta(`"chunks/000001","size_bytes":600`, `"tombstones","size_bytes":1`)))
	f.Add([]byte(meta(`"thanos":{`, `"thanos":{"labels":{"__org_id__":"1"},`)))
	f.Add([]byte(meta(`"size_bytes":400`, `"size_bytes":9223372036854775807`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := uploadapp.Announce(id, body, limits, now)
		if err != nil {
			var limit *uploadapp.LimitError
			require.True(t, errors.Is(err, uploadapp.ErrInvalid) || errors.Is(err, uploadapp.ErrExpired) || errors.As(err, &limit), "%v", err)
			return
		}
		var total int64
		for _, file := range s.Files {
			require.True(t, key.IsUploadFile(file.Path))
			require.Positive(t, file.Bytes)
			total += file.Bytes
		}
		require.LessOrEqual(t, total, limits.Bytes)
		require.True(t, slices.IsSortedFunc(s.Files, func(a, b uploadapp.File) int { return strings.Compare(a.Path, b.Path) }))
		require.Equal(t, uploadapp.Uploading, s.Result)
		stored, err := s.Encode()
		require.NoError(t, err)
		again, err := uploadapp.Decode(stored)
		require.NoError(t, err)
		require.JSONEq(t, string(s.Meta), string(again.Meta))
		again.Meta = s.Meta
		require.Equal(t, s, again)
	})
}

// FuzzDecode holds that a state that is read can be stored, and that its transitions do not depend
// on what it holds. The checksum is repaired.
func FuzzDecode(f *testing.F) {
	s, err := uploadapp.Announce(id, []byte(meta()), limits, now)
	require.NoError(f, err)
	for _, s := range []uploadapp.State{s, s.Begin(), s.Complete(), s.Expire(), s.Fail(errors.New("why"))} {
		stored, err := s.Encode()
		require.NoError(f, err)
		f.Add(stored[:strings.LastIndex(string(stored), `,"crc32c"`)])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sealed, err := checksum.Append(append(slices.Clone(body), '}'))
		if err != nil {
			sealed = body
		}
		s, err := uploadapp.Decode(sealed)
		if err != nil {
			require.ErrorIs(t, err, uploadapp.ErrState)
			return
		}
		for _, next := range []uploadapp.State{s, s.Begin(), s.GiveBack(), s.Complete(), s.Expire(), s.Fail(errors.New("why"))} {
			stored, err := next.Encode()
			require.NoError(t, err)
			again, err := uploadapp.Decode(stored)
			require.NoError(t, err)
			require.Equal(t, next.Result, again.Result)
			require.Equal(t, next.Exists(), again.Exists())
		}
		for _, file := range s.Files {
			s.File(file.Path) // whatever the order
		}
	})
}

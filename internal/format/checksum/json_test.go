package checksum_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
)

func TestAppend(t *testing.T) {
	for _, tc := range []struct{ body, whole string }{
		{`{"a":1}`, `{"a":1,"crc32c":"6cb98cba"}`},
		{"{\"a\":1}\n", "{\"a\":1,\"crc32c\":\"6cb98cba\"}\n"},
		{`{}`, `{"crc32c":"ba6cac67"}`},
		{"{ \n}", "{ \n\"crc32c\":\"f0f190b1\"}"},
	} {
		got, err := checksum.Append([]byte(tc.body))
		require.NoError(t, err)
		require.Equal(t, tc.whole, string(got))
		require.True(t, json.Valid(got))
		present, err := checksum.Verify(got)
		require.NoError(t, err)
		require.True(t, present)
	}
	for _, body := range []string{"", "[1]", `"x"`, "{"} {
		_, err := checksum.Append([]byte(body))
		require.Error(t, err, body)
	}
}

// TestVerifyWithoutChecksum: objects from before objects had checksums are accepted.
func TestVerifyWithoutChecksum(t *testing.T) {
	for _, body := range []string{"", "{}", `{"a":1}`, `{"crc32c":"00000000","a":1}`, `{"a":{"crc32c":"00000000"}}x`} {
		present, err := checksum.Verify([]byte(body))
		require.NoError(t, err, body)
		require.False(t, present, body)
	}
}

// TestVerifyFindsEveryChange changes every byte to every other value: Verify detects the change, or
// the object decodes to the same value.
func TestVerifyFindsEveryChange(t *testing.T) {
	type doc struct {
		A int               `json:"a"`
		B map[string]string `json:"b"`
	}
	want := doc{A: 17, B: map[string]string{"x": "y", "ü": "\n"}}
	body, err := json.Marshal(want)
	require.NoError(t, err)
	whole, err := checksum.Append(append(body, '\n'))
	require.NoError(t, err)
	for at := range whole {
		for x := 1; x < 256; x++ {
			raw := append([]byte(nil), whole...)
			raw[at] ^= byte(x)
			if _, err := checksum.Verify(raw); err != nil {
				require.ErrorIs(t, err, checksum.ErrDamaged)
				continue
			}
			var got doc
			if json.Unmarshal(raw, &got) == nil {
				require.Equal(t, want, got, "byte %d, mask %#x", at, x)
			}
		}
	}
}

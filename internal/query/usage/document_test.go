package usage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
)

// FuzzDecode holds that a document that is read can be added to and stored. The checksum is
// repaired.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"version":1,"since":1700000000000,"names":{"up":{"queries":12,"last":1700003600000}},"patterns":{"node_.+":{"queries":1,"last":1700000000000}},"labels":{"job":{"queries":13,"last":1700003600000}},"spent":{"2023-11-14":{"dashboard/x":{"title":"X","queries":1,"microseconds":1000000,"bytes":1000,"requests":10}},"?":{"":{}},"2023-11-15":null},"saves":["01HF7YAT00V3G5K1B8M6Q2W9XZ"]}`))
	f.Add([]byte(`{"version":1,"since":-1,"names":null,"labels":{"":{}}}`))
	f.Add([]byte(`{"version":2}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		sealed, err := checksum.Append(body)
		if err != nil {
			sealed = body
		}
		d, err := decode(sealed)
		if err != nil {
			return
		}
		const now, limit = 1_700_000_000_000, 1 << 20
		next := d.with(&batch{id: "batch"}, now, limit)
		require.GreaterOrEqual(t, next.Since, d.Since)
		require.Equal(t, "batch", next.Saves[len(next.Saves)-1])
		require.LessOrEqual(t, len(next.Saves), maxSaves)
		stored, err := checksum.Marshal(next)
		require.NoError(t, err)
		again, err := decode(stored)
		require.NoError(t, err)
		require.Equal(t, next, again)
	})
}

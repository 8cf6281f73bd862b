package appender

import (
	"fmt"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/stretchr/testify/require"
)

// TestTransactionsShareMemory commits transactions with many samples one after the other: a later
// one has the memory of an earlier one. The garbage collector may take that away at any time.
func TestTransactionsShareMemory(t *testing.T) {
	const samples = 500
	seen := map[*Sample]bool{}
	shared := false
	a := New(func(tx *Transaction) error {
		require.Len(t, tx.Samples, samples)
		for i := range tx.Samples {
			require.EqualValues(t, i, tx.Samples[i].V)
		}
		shared = shared || seen[&tx.Samples[0]]
		seen[&tx.Samples[0]] = true
		tx.Release()
		return nil
	})
	for at := int64(1); at <= 1000 && !shared; at++ {
		app := a.AppenderV2(t.Context())
		for i := range samples {
			_, err := app.Append(0, labels.FromStrings("__name__", fmt.Sprint("m", i)), 0, at, float64(i), nil, nil, storage.AppendV2Options{})
			require.NoError(t, err)
		}
		require.NoError(t, app.Commit())
	}
	require.True(t, shared)
}

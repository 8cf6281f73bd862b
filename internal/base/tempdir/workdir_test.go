package tempdir

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTemporaryDirectoriesComeAndGo: while one directory is removed, others are made, and nobody
// takes what is left of it for stale.
func TestTemporaryDirectoriesComeAndGo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	errs := make([]error, 8)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			for n := 0; n < 300 && errs[i] == nil; n++ {
				var w WorkDir
				if _, errs[i] = w.Path(Fetched); errs[i] == nil {
					errs[i] = w.Close()
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

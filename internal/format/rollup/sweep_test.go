package rollup_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/rollup"
	"github.com/promlake/promlake/tests/support/checksumtest"
)

var allStandIns = []rollup.StandIn{rollup.StandInMax, rollup.StandInMin, rollup.StandInFirst, rollup.StandInLast, rollup.StandInInstant, rollup.StandInCount}

// readStandIns writes down what queries read of a rollup.
func readStandIns(file []byte) (string, error) {
	in := bytes.NewReader(file)
	var out strings.Builder
	c, err := rollup.OpenColumns(in, int64(len(file)), 1000, func(id uint64, rows int) error {
		fmt.Fprintln(&out, id, rows)
		return nil
	})
	if err != nil {
		return "", err
	}
	fmt.Fprintln(&out, c.Step)
	for _, s := range allStandIns {
		for g := range c.Groups() {
			t, v, err := c.StandIns(in, g, s)
			if err != nil {
				return "", err
			}
			for i := range t {
				fmt.Fprintln(&out, t[i], math.Float64bits(v[i]))
			}
		}
	}
	return out.String(), nil
}

// readRecords writes down every row.
func readRecords(file []byte) (string, error) {
	r, err := rollup.OpenReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return "", err
	}
	var out strings.Builder
	err = r.Each(func(rec rollup.Record) error {
		fmt.Fprintf(&out, "%+v\n", rec)
		return nil
	})
	return out.String(), err
}

var readers = map[string]func([]byte) (string, error){"stand-ins": readStandIns, "records": readRecords}

// TestEveryByteIsChecked changes every byte of the golden rollups: each reader reports an error, or
// reads the same as before.
func TestEveryByteIsChecked(t *testing.T) {
	for _, name := range []string{"rollup-5m-v2.parquet", "rollup-1h-v2.parquet", "rollup-5m-v3.parquet", "rollup-1h-v3.parquet", "rollup-5m-v4.parquet", "rollup-1h-v4.parquet"} {
		file, err := os.ReadFile(filepath.Join("testdata", name))
		require.NoError(t, err)
		for reader, read := range readers {
			checksumtest.Sweep(t, reader+" of "+name, file, checksumtest.OneAndAllBits, func() (string, error) { return read(file) }, rollup.ErrFormat)
		}
	}
}

// TestWithoutChecksums reads rollups that were written before pages had checksums.
func TestWithoutChecksums(t *testing.T) {
	for _, name := range []string{"rollup-5m-v1", "rollup-1h-v1"} {
		for reader, read := range readers {
			var texts []string
			for _, file := range []string{name + ".parquet", name + "-unsealed.parquet"} {
				b, err := os.ReadFile(filepath.Join("testdata", file))
				require.NoError(t, err)
				text, err := read(b)
				require.NoError(t, err)
				texts = append(texts, text)
			}
			require.Equal(t, texts[0], texts[1], "%s of %s", reader, name)
		}
	}
}

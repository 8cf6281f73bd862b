package importapp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/app/human"
	"github.com/promlake/promlake/internal/app/importapp"
)

// TestPriceRows: a dry run has a price, or says why it has none.
func TestPriceRows(t *testing.T) {
	text := func(bytes, puts int64) string {
		table := human.Table{Left: 2}
		importapp.PriceRows(&table, bytes, puts)
		return table.String()
	}
	t.Setenv("AWS_REGION", "us-east-1")
	require.Regexp(t, `^storage +about \$0\.0230 a month \(us-east-1, Amazon S3 Standard\)\n$`, text(1<<30, 0))
	require.Regexp(t, `storage +about .*\nwriting +about \$0\.0050\n$`, text(1<<30, 1000))
	t.Setenv("AWS_REGION", "moon-1")
	require.Regexp(t, `^price +region "moon-1": no prices for it, only for .*us-east-1`, text(1<<30, 0))
}

package all

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/promlake/promlake/tests/bench/table"
)

// record appends the ratios of a run to a CSV file, which it begins with the names of the columns.
func record(file, version string, at time.Time, all []table.Comparison) (err error) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("open history: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("stat history: %w", err)
	}
	w := csv.NewWriter(f)
	if info.Size() == 0 {
		_ = w.Write([]string{"date", "version", "measured", "unit", "ratio"}) // Error has it
	}
	for _, c := range all {
		if ratio, known := c.Ratio(); known {
			_ = w.Write([]string{at.UTC().Format(time.DateOnly), version, c.Name, c.Unit, strconv.FormatFloat(ratio, 'g', 3, 64)})
		}
	}
	w.Flush()
	if err := w.Error(); err != nil {
		return fmt.Errorf("write history: %w", err)
	}
	return nil
}

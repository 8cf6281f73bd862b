package bulk

import (
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/catalog"
	"github.com/promlake/promlake/tests/support/memstore"
)

const tenant = "team-a"

// imported is the record of inputs in a window of two hours.
func imported(n int, window key.Window, slice catalog.Slice, inputs ...string) Record {
	var id ulid.ULID
	_ = id.SetTime(uint64(n + 1)) // small
	return Record{recordVersion, catalog.Import{Block: id, Level: key.L2h, Window: window, Slice: slice, Inputs: inputs}}
}

// pastOf is a past with records.
func pastOf(records ...Record) Past {
	p := Past{Records: map[string]Record{}}
	for _, r := range records {
		p.Records[key.Import(tenant, r.Block)] = r
	}
	return p
}

// TestLeft: a ledger leaves out what is imported by its past, or by imports that it learns of.
func TestLeft(t *testing.T) {
	w := key.L2h.WindowOf(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	plan := &Plan{Inputs: []Input{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}}
	unit := &Unit{Level: key.L2h, Window: w, Inputs: []int{0, 1, 2, 3}}
	damaged := imported(0, w, catalog.Slice{}, "d")
	past := pastOf(imported(1, w, catalog.Slice{}, "a", "x"), damaged)
	past.Quarantined = []catalog.BlockID{{Level: key.L2h, Window: w, ID: damaged.Block}}
	store := memstore.New(memstore.Settings{})
	for restore, want := range map[bool][]int{false: {1, 2}, true: {1, 2, 3}} {
		l := newLedger(store, tenant, past, restore)
		left, err := l.left(t.Context(), catalog.Manifest{}, plan, unit)
		require.NoError(t, err)
		require.Equal(t, want, left.Inputs)
		for range 2 {
			left, err = l.left(t.Context(), catalog.Manifest{Imports: []catalog.Import{imported(2, w, catalog.Slice{}, "b").Import}}, plan, unit)
			require.NoError(t, err)
			require.Equal(t, want[1:], left.Inputs)
		}
		require.Len(t, l.known["b"], 1)
		m := catalog.Manifest{Imports: []catalog.Import{imported(3, w, catalog.Slice{Index: 0, Of: 2}, "c").Import}}
		_, err = l.left(t.Context(), m, plan, unit)
		require.ErrorIs(t, err, errTooLarge)
	}
	require.Len(t, past.Records, 2, "that of the plan is not changed")
}

// TestLeftCost: a unit costs as much however many records of other inputs there are.
func TestLeftCost(t *testing.T) {
	plan := &Plan{Inputs: []Input{{ID: "a"}}}
	unit := &Unit{Level: key.L2h, Inputs: []int{0}}
	cost := func(others int) float64 {
		var records []Record
		for n := range others {
			records = append(records, imported(n, 0, catalog.Slice{}, fmt.Sprint(n)))
		}
		l := newLedger(memstore.New(memstore.Settings{}), tenant, pastOf(records...), false)
		return testing.AllocsPerRun(100, func() {
			left, err := l.left(t.Context(), catalog.Manifest{}, plan, unit)
			require.NoError(t, err)
			require.Equal(t, []int{0}, left.Inputs)
		})
	}
	require.Equal(t, cost(1), cost(10_000))
}

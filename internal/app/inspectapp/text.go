package inspectapp

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/promlake/promlake/internal/app/human"
)

// Text writes the report for people.
func (r Report) Text() string {
	if len(r.Tenants) == 0 {
		return "The store is empty.\n"
	}
	parts := make([]string, len(r.Tenants))
	for i := range r.Tenants {
		parts[i] = r.Tenants[i].text()
	}
	return strings.Join(parts, "\n\n")
}

func (t *Tenant) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tenant %s, %s\n", t.Tenant, t.Manifest)
	for _, section := range []string{
		t.levels(), t.columns(), t.Garbage.text(), t.splits(), t.tombstones(), t.next(),
	} {
		if section != "" {
			b.WriteString("\n" + section)
		}
	}
	return b.String()
}

// String names the manifest in one line.
func (m Manifest) String() string {
	if m.Time == nil {
		return "never compacted"
	}
	return fmt.Sprintf("manifest of generation %d, committed %s", m.Generation, moment(m.Time))
}

// levels lists the sums by level. The size of rollups, which only repeat samples, has a column of
// its own.
func (t *Tenant) levels() string {
	table := human.Table{Left: 1}
	table.Row("LEVEL", "OBJECTS", "SERIES", "SAMPLES", "BYTES", "BYTES/SAMPLE", "ROLLUPS", "FIRST SAMPLE", "LAST SAMPLE")
	for _, l := range t.Levels {
		table.Row(l.Level, strconv.Itoa(l.Objects), human.Count(l.Series), human.Count(l.Samples), human.Bytes(l.Bytes-l.RollupBytes),
			human.Ratio(l.Bytes-l.RollupBytes, l.Samples), human.Bytes(l.RollupBytes), moment(l.MinTime), moment(l.MaxTime))
	}
	return table.String()
}

// columns lists the bytes of the blocks by column.
func (t *Tenant) columns() string {
	bytes, samples := int64(0), int64(0)
	for _, b := range t.Blocks {
		bytes, samples = bytes+b.Bytes, samples+b.Samples
	}
	if bytes == 0 {
		return ""
	}
	table := human.Table{Left: 1}
	table.Row("BLOCKS' BYTES BY COLUMN", "BYTES", "BYTES/SAMPLE", "SHARE")
	row := func(name string, n int64) {
		table.Row(name, human.Bytes(n), human.Ratio(n, samples), fmt.Sprintf("%.1f%%", 100*float64(n)/float64(bytes)))
	}
	rollups := int64(0)
	for _, c := range t.Columns {
		row(strings.TrimSuffix(c.File+"."+c.Column, "."), c.Bytes)
		if c.File == rollup {
			rollups = c.Bytes
		}
	}
	if rollups > 0 {
		row("all but rollup", bytes-rollups)
	}
	row("all", bytes)
	return table.String()
}

func (g Garbage) text() string {
	table := human.Table{Left: 1}
	table.Row("GARBAGE", "OBJECTS", "BYTES")
	for _, p := range []struct {
		name string
		pile Pile
	}{
		{"segments that wait for their deletion", g.Consumed},
		{"blocks that wait for their deletion", g.Retired},
		{"blocks being written, or left by a crash", g.Unlisted},
		{"objects that are not Promlake's", g.Foreign},
	} {
		if p.pile.Objects > 0 {
			table.Row(p.name, strconv.Itoa(p.pile.Objects), human.Bytes(p.pile.Bytes))
		}
	}
	if len(table.Rows) == 1 {
		return "No garbage.\n"
	}
	return table.String()
}

func (t *Tenant) splits() string {
	if len(t.Splits) == 0 {
		return ""
	}
	table := human.Table{Left: 3}
	table.Row("LARGE JOB", "LEVEL", "WINDOW", "SLICES DONE")
	for _, s := range t.Splits {
		table.Row(s.ID, s.Level, moment(&s.Window), fmt.Sprintf("%d/%d", s.Done, s.Of))
	}
	return table.String()
}

func (t *Tenant) tombstones() string {
	if len(t.Tombstones) == 0 {
		return ""
	}
	table := human.Table{Left: 4}
	table.Row("DELETED", "AT", "FROM", "TO")
	for _, s := range t.Tombstones {
		table.Row(s.Match, moment(&s.Time), moment(&s.MinTime), moment(&s.MaxTime))
	}
	return table.String()
}

func (t *Tenant) next() string {
	if len(t.Next) == 0 {
		return "Nothing to compact now.\n"
	}
	return "TO COMPACT NOW\n" + strings.Join(t.Next, "\n") + "\n"
}

// moment writes a time in UTC, or – for none.
func moment(t *time.Time) string {
	if t == nil {
		return "–"
	}
	return human.Time(t.UnixMilli())
}

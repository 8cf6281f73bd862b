package storage

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/promlake/promlake/tests/bench/disk"
	"github.com/promlake/promlake/tests/bench/server"
	"github.com/promlake/promlake/tests/bench/table"
)

// publish prints the results: JSON, or Markdown tables.
func publish(w io.Writer, asJSON bool, results []result) error {
	if asJSON {
		return table.WriteJSON(w, results)
	}
	tables := [][][]string{sizes(results)}
	for i := range results {
		tables = append(tables, files(&results[i]))
		if c := results[i].Compact; c != nil {
			tables = append(tables, compacting(c, results[i].Samples))
		}
		if s := results[i].Scan; s != nil {
			tables = append(tables, scanning(s, &results[i]))
		}
	}
	return table.Write(w, tables...)
}

// comparisons are the bytes of a sample, and what compaction costs, which is a part of ingestion in
// VictoriaMetrics.
func comparisons(results []result) (out []table.Comparison) {
	of := func(name string) *result {
		for i := range results {
			if results[i].Name == name {
				return &results[i]
			}
		}
		return nil
	}
	own, peer := of(server.Promlake), of(server.VictoriaMetrics)
	if own == nil {
		return nil
	}
	bytes := table.Comparison{Name: "a day of samples", Unit: "bytes per sample", Promlake: own.share(own.Files.Bytes() - own.Files.Rollups())}
	rollups := table.Comparison{Name: "a day of samples, with rollups", Unit: "bytes per sample", Promlake: own.share(own.Files.Bytes())}
	if peer != nil {
		bytes.Peer = peer.share(peer.Files.Bytes())
		rollups.Peer = bytes.Peer
	}
	return []table.Comparison{
		bytes, rollups,
		{Name: "compaction of the day", Unit: "CPU-s per million samples", Promlake: own.Compact.CPU.Seconds() / float64(own.Samples) * 1e6},
		{Name: "compaction of the day, peak memory", Unit: "MB", Promlake: float64(own.Compact.PeakRSS) / 1e6},
	}
}

// sizes compares what the servers keep. Rollups, which VictoriaMetrics does not have, have columns
// of their own.
func sizes(results []result) [][]string {
	rows := [][]string{{"server", "samples", "bytes", "bytes/sample", "with rollups", "ratio", "with rollups"}}
	var peer *result
	for i := range results {
		if results[i].Name == server.VictoriaMetrics {
			peer = &results[i]
		}
	}
	for i := range results {
		r := &results[i]
		bare := r.Files.Bytes() - r.Files.Rollups()
		row := []string{r.Name, fmt.Sprint(r.Samples), fmt.Sprint(bare), perSample(r, bare), perSample(r, r.Files.Bytes()), table.Unknown, table.Unknown}
		if peer != nil {
			row[5] = ratio(r.share(bare), peer.share(peer.Files.Bytes()))
			row[6] = ratio(r.share(r.Files.Bytes()), peer.share(peer.Files.Bytes()))
		}
		rows = append(rows, row)
	}
	return rows
}

// files lists a server's bytes by kind of file, and those of the columns of samples, if known.
func files(r *result) [][]string {
	rows := [][]string{{r.Name, "bytes", "bytes/sample"}}
	for _, of := range []map[string]int64{r.Files, r.Columns} {
		for _, k := range slices.Sorted(maps.Keys(of)) {
			rows = append(rows, []string{k, fmt.Sprint(of[k]), perSample(r, of[k])})
		}
	}
	return rows
}

func compacting(c *disk.Compaction, samples int64) [][]string {
	rows := [][]string{
		{"compaction", ""},
		{"processor time, s", fmt.Sprintf("%.2f", c.CPU.Seconds())},
		{"elapsed, s", fmt.Sprintf("%.2f", c.Elapsed.Seconds())},
		{"peak RSS, MB", fmt.Sprintf("%.1f", float64(c.PeakRSS)/1e6)},
		{"CPU-s per million samples kept", fmt.Sprintf("%.3f", c.CPU.Seconds()/float64(samples)*1e6)},
		{"samples/s per core", fmt.Sprintf("%.0f", float64(c.Read())/c.CPU.Seconds())},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Levels)) {
		l := c.Levels[name]
		rows = append(rows, []string{fmt.Sprintf("samples/s per core, level %s (%d jobs, %d samples)", name, l.Jobs, l.Read), fmt.Sprintf("%.0f", c.PerCore(name))})
	}
	return rows
}

func scanning(s *scan, r *result) [][]string {
	best, median := s.ratios()
	speed := func(bestOf float64) string { return fmt.Sprintf("%.1f", float64(r.Samples)/bestOf/1e6) }
	return [][]string{
		{"DuckDB, sum(value), one thread", "block", "plain doubles"},
		{"millions of samples per processor second, best run", speed(slices.Min(s.Block).Seconds()), speed(slices.Min(s.Plain).Seconds())},
		{"speed relative to plain doubles, best runs", fmt.Sprintf("%.2f", best), "1"},
		{"speed relative to plain doubles, median of neighbouring runs", fmt.Sprintf("%.2f", median), "1"},
		{"bytes/sample of the columns of values", perSample(r, r.Columns["v_int"]+r.Columns["v_div"]), perSample(r, s.PlainBytes)},
	}
}

func perSample(r *result, bytes int64) string { return fmt.Sprintf("%.4f", r.share(bytes)) }

func ratio(a, b float64) string { return fmt.Sprintf("%.3f", a/b) }

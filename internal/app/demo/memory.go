package demo

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
)

// collectMemory reports all fields of meminfo with node_exporter's names; those in bytes end with
// _bytes.
func collectMemory(procPath string, e emit) error {
	text, err := os.ReadFile(filepath.Join(procPath, "meminfo"))
	if err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":") // such as Active(anon): 4000000 kB
		amount, unit, _ := strings.Cut(strings.TrimSpace(rest), " ")
		v, err := strconv.ParseFloat(amount, 64)
		if err != nil {
			return fmt.Errorf("read memory: field %s: %w", name, err)
		}
		name = strings.NewReplacer("(", "_", ")", "").Replace(name)
		if unit == "kB" {
			name, v = name+"_bytes", v*1024
		}
		e(desc("node_memory_"+name, "Memory information field "+name+"."), prometheus.GaugeValue, v)
	}
	return nil
}

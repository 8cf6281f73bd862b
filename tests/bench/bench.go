// Package bench is the root of the whole-system benchmark: it carries the golden capture that every run replays by default.
//
// The way of a sample here: capture (scrapes as recorded) → fleet (the same scrapes as N virtual hosts) → wire (remote_write
// bodies) → load (senders, clocks, accounting) → run (servers started in turn, one table of ratios).
package bench

import _ "embed"

//go:embed testdata/node_exporter.txt.zst
var golden []byte

// Golden returns the compressed golden capture (see package capture for the format). Callers must not change the bytes.
func Golden() []byte { return golden }

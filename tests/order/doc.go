// Package order tests that the order of acknowledgements determines the order of events, whatever
// the machines' clocks show: writes over HTTP in every ingest mode, deletions over HTTP, and
// compaction by the stage, each with a wrong clock of its own.
//
// It contains only tests. tests/sim simulates the same rules with random schedules, and tests/model
// checks them exhaustively.
package order

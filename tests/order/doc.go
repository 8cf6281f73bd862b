// Package order tests that the order of acknowledgements is the order of events, whatever the
// clocks of the machines show: writes through HTTP in every ingest mode, deletions through HTTP,
// compaction by the stage, each with its own wrong clock.
//
// It has nothing but tests. The same rules are simulated at length in tests/sim, and checked
// exhaustively in tests/model.
package order

// Package plan decides what a compactor does. It computes values from values, and reads and writes
// no object: Jobs returns the jobs of a snapshot, StateOf sums the snapshot up, and Resolve finds
// the sources of a job in a later snapshot.
package plan

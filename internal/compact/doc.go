// Package compact turns segments into blocks: small segments into parts of their 2h window, a
// closed window into a 2h block, 2h blocks into 12h and 24h blocks. It also applies deletions,
// expires data that is past its retention, and removes garbage.
//
// A sample takes this way after ingest: catalog.Take (a snapshot) → plan.Jobs (pure: jobs as
// values) → Stage.Run (open the sources, merge them series by series, write the block's files,
// commit the manifest) → Stage.Collect. The sources of a merge are live until the commit, which
// replaces them by their block at once. So a reader sees every sample exactly once, whichever
// process dies in between, and every step may run again.
//
// Package live decides which of the samples of one series and time counts: the one of the highest
// rank. The sources of a merge are closed: no other live object that overlaps them in time has a
// rank between theirs. So the block can take the highest rank of its sources without changing an
// answer.
package compact

// Package compact turns segments into blocks: small segments into parts of their 2h window, a closed window into a 2h block, blocks
// into 12h and 24h blocks. It also applies deletions, expires what is past its retention, and removes the objects that nobody needs.
//
// The way of a sample after ingest: catalog.Snapshot → Plan (pure: jobs as values) → Stage.Run (open sources, merge series by series, write the
// block's files, commit the manifest) → later garbage. The sources of a merge stay live until the commit, which replaces them by their
// block at once, so a reader sees every sample exactly once, whatever dies in between; running any of it again is safe.
//
// Rank decides between samples of one series and timestamp: a segment's identifier, a block's newest source's. A merge's sources are
// closed: no other live object that overlaps them in time has a rank between theirs. So the block can take the newest rank, and no
// answer changes.
package compact

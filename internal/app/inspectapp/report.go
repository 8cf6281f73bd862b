// Package inspectapp describes the contents of a store to its operator: levels, sizes, garbage, and
// the compactor's next jobs.
package inspectapp

import "time"

// Report describes a store at one moment. Its JSON form is for scripts: fields are added, never
// changed. Times are UTC, sizes bytes.
type Report struct {
	Tenants []Tenant `json:"tenants"` // sorted by name
}

// Tenant describes the objects of one tenant. Lists are never null.
type Tenant struct {
	Tenant     string      `json:"tenant"`
	Manifest   Manifest    `json:"manifest"`
	Levels     []Level     `json:"levels"`  // segments, then the levels of blocks that have any, smallest first
	Blocks     []Block     `json:"blocks"`  // live ones, by level, window and rank
	Columns    []Column    `json:"columns"` // of all live blocks; their bytes add up to the blocks' bytes
	Garbage    Garbage     `json:"garbage"`
	Splits     []Split     `json:"splits"`
	Tombstones []Tombstone `json:"tombstones"`
	Next       []string    `json:"next"` // jobs that the compactor would do now, in its order
}

// Manifest identifies the state on which readers and compactors agree. A tenant that was never
// compacted has no manifest: its generation is 0.
type Manifest struct {
	Generation uint64     `json:"generation"`
	ID         string     `json:"id,omitempty"`
	Time       *time.Time `json:"time,omitempty"` // of its commit
}

// Level sums up the live objects of one level. Series are counted once per object that has them.
type Level struct {
	Level   string `json:"level"` // segment, part, 2h, 12h, 24h
	Objects int    `json:"objects"`
	Series  int64  `json:"series"`
	Samples int64  `json:"samples"` // floats and histograms
	Bytes   int64  `json:"bytes"`   // of everything
	// RollupBytes is the part of Bytes that repeats samples: downsamples. The bytes per sample are
	// computed without this part.
	RollupBytes int64      `json:"rollup_bytes"`
	MinTime     *time.Time `json:"min_time,omitempty"` // of the first sample; none if there is no sample
	MaxTime     *time.Time `json:"max_time,omitempty"` // of the last sample
}

// Block is one live block.
type Block struct {
	Level   string    `json:"level"`
	Window  time.Time `json:"window"` // its start
	ID      string    `json:"id"`
	Prefix  string    `json:"prefix"` // of its objects' keys, with a slash at the end
	Rank    string    `json:"rank"`
	Slice   string    `json:"slice,omitempty"` // 1/4: the first of four ranges of series; none for a whole block
	Series  int64     `json:"series"`
	Samples int64     `json:"samples"`
	Bytes   int64     `json:"bytes"` // of everything
	// RollupBytes is as in Level.
	RollupBytes int64      `json:"rollup_bytes"`
	MinTime     *time.Time `json:"min_time,omitempty"`
	MaxTime     *time.Time `json:"max_time,omitempty"`
}

// Column is the size of one column, or of files that are not reported by column, in all live
// blocks.
type Column struct {
	File   string `json:"file"`             // samples, histograms, series, exemplars, metadata, rollup, meta
	Column string `json:"column,omitempty"` // none for files as a whole; "footer" is what is outside of column chunks
	Bytes  int64  `json:"bytes"`
}

// Garbage counts the objects that no reader uses any more, and those that no manifest names.
type Garbage struct {
	Consumed Pile `json:"consumed"` // segments that blocks replaced, waiting to be deleted
	Retired  Pile `json:"retired"`  // blocks that were replaced or given up, waiting to be deleted
	Unlisted Pile `json:"unlisted"` // blocks that are being written, or whose writer crashed
	Foreign  Pile `json:"foreign"`  // objects that are none of Promlake's: they are left alone
}

// Pile counts objects; a block is several objects.
type Pile struct {
	Objects int   `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// Split is a large job under way: its blocks become live together.
type Split struct {
	ID     string    `json:"id"`
	Level  string    `json:"level"`
	Window time.Time `json:"window"`
	Done   int       `json:"done"`
	Of     int       `json:"of"`
}

// Tombstone hides the samples that it matches from readers, until the compactor has applied it to
// all objects.
type Tombstone struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"` // of the request
	Match   string    `json:"match"`
	MinTime time.Time `json:"min_time"`
	MaxTime time.Time `json:"max_time"`
}

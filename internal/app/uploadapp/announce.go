package uploadapp

import (
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/senders/promblock"
)

// Limits bound a block that is uploaded.
type Limits struct {
	Bytes     int64         // of all files
	Range     time.Duration // of its times
	Retention time.Duration // older blocks are refused; 0: none is
}

// Names of limits, which errors name and metrics count.
const (
	LimitBytes      = "compactor.block-upload-max-block-size-bytes"
	LimitRange      = "compactor.block-upload-max-block-range"
	LimitPending    = "compactor.block-upload-max-pending-blocks"
	LimitMeta       = "meta.json"  // has no flag
	LimitTombstones = "tombstones" // has no flag
)

// MaxMeta is the largest meta.json, in bytes: it lists some three thousand files, and Prometheus
// puts half a gigabyte of chunks into each.
const MaxMeta = 256 << 10

// MaxTombstones is the largest file of tombstones, in bytes: half a million deletions of a series
// at least. An import has all of them in memory.
const MaxTombstones = 16 << 20

// LimitError reports a block beyond a limit.
type LimitError struct {
	Limit string // its name
	Text  string // what the block has, and what to do
}

// Error implements error.
func (e *LimitError) Error() string { return e.Text }

var (
	// ErrInvalid reports a meta.json of a block that cannot be uploaded.
	ErrInvalid = errors.New("invalid meta.json")
	// ErrExpired reports a block whose samples are past the retention.
	ErrExpired = errors.New("the block is past the retention")
)

// Announce returns the state of an upload that begins at a time of the store's clock. id is the
// block that the request names, and body its meta.json. The rules are those that Mimir documents
// ("Configure TSDB block upload"), except that blocks need not be within a day. Errors: ErrInvalid,
// ErrExpired, *LimitError.
func Announce(id ulid.ULID, body []byte, limits Limits, now time.Time) (State, error) {
	meta, err := promblock.ReadMeta(body)
	if err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := check(id, &meta, now); err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if d := meta.MaxTime - meta.MinTime; d > limits.Range.Milliseconds() {
		return State{}, &LimitError{LimitRange, fmt.Sprintf("the block is %s long, the limit is %s: divide it, or raise --%s",
			time.Duration(min(d, math.MaxInt64/int64(time.Millisecond)))*time.Millisecond, limits.Range, LimitRange)}
	}
	if limits.Retention > 0 && meta.MaxTime <= now.Add(-limits.Retention).UnixMilli() {
		return State{}, fmt.Errorf("%w: its last sample is before %s, samples are kept for %s", ErrExpired, time.UnixMilli(meta.MaxTime).UTC().Format(time.RFC3339), limits.Retention)
	}
	files, err := list(meta.Thanos.Files, limits.Bytes)
	if err != nil {
		return State{}, err
	}
	// An import is planned by what meta.json claims, so the files must be able to hold it.
	var chunks, series uint64 // bytes
	for _, f := range files {
		switch f.Path {
		case index:
			series = uint64(f.Bytes)
		case tombstones:
		default:
			chunks += uint64(f.Bytes)
		}
	}
	for _, x := range []struct {
		name         string
		claims, most uint64
		where        string
		bytes        uint64
	}{
		{"numSamples", meta.Stats.NumSamples, chunks * samplesPerByte, "chunks", chunks},
		{"numChunks", meta.Stats.NumChunks, chunks / bytesPerChunk, "chunks", chunks},
		{"numSeries", meta.Stats.NumSeries, series / bytesPerSeries, index, series},
	} {
		if x.claims > x.most {
			return State{}, fmt.Errorf("%w: stats.%s is %d, but %d bytes of %s hold %d at most", ErrInvalid, x.name, x.claims, x.bytes, x.where, x.most)
		}
	}
	return State{Version: Version, ID: rand.Text(), Result: Uploading, Meta: body, Files: files}, nil
}

// check returns an error if the block is not the one that the request names, or must not be
// imported.
func check(id ulid.ULID, meta *promblock.Meta, now time.Time) error {
	if meta.ULID != id {
		return fmt.Errorf("it is of block %s, the request names %s", meta.ULID, id)
	}
	if reason := meta.Skip(); reason != "" {
		return fmt.Errorf("the block %s", reason)
	}
	if external := meta.External(); len(external) > 0 {
		return fmt.Errorf("the block has the external label %q, which an upload does not add to series: promlake import tsdb --external-labels does", external[0].Name)
	}
	if meta.MinTime < 0 || meta.MaxTime < meta.MinTime {
		return fmt.Errorf("minTime %d and maxTime %d, want 0 <= minTime <= maxTime", meta.MinTime, meta.MaxTime)
	}
	if meta.MaxTime > now.UnixMilli() {
		return fmt.Errorf("maxTime %d is in the future", meta.MaxTime)
	}
	return nil
}

// Files of a block beside its chunks.
const (
	index      = "index"
	tombstones = "tombstones"
)

// What the files of a block can hold at most, whatever encodings it has.
const (
	samplesPerByte = 8 // of chunks: a float that repeats takes a bit
	bytesPerChunk  = 8 // length, encoding, number of samples and checksum
	bytesPerSeries = 8 // of the index: length, labels, chunks and checksum
)

// list returns the files that a meta.json names, by path.
func list(entries []promblock.MetaEntry, limit int64) (files []File, err error) {
	var total int64
	for _, e := range entries {
		switch {
		case e.Path == promblock.MetaFile:
			continue
		case !key.IsUploadFile(e.Path):
			return nil, fmt.Errorf("%w: thanos.files has %q, want index, tombstones, or chunks/ and six digits", ErrInvalid, e.Path)
		case e.Bytes <= 0:
			return nil, fmt.Errorf("%w: thanos.files has %s with a size of %d bytes", ErrInvalid, e.Path, e.Bytes)
		case e.Path == tombstones && e.Bytes > MaxTombstones:
			return nil, &LimitError{LimitTombstones, fmt.Sprintf("tombstones has %d bytes, the limit is %d: let Prometheus clean its tombstones, or divide the block", e.Bytes, MaxTombstones)}
		case e.Bytes > limit-total:
			return nil, &LimitError{LimitBytes, fmt.Sprintf("the files of the block have more than %d bytes, the limit: divide the block, or raise --%s", limit, LimitBytes)}
		}
		total += e.Bytes
		files = append(files, File{Path: e.Path, Bytes: e.Bytes})
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(files); i++ {
		if files[i-1].Path == files[i].Path {
			return nil, fmt.Errorf("%w: thanos.files has %s twice", ErrInvalid, files[i].Path)
		}
	}
	if !slices.ContainsFunc(files, func(f File) bool { return f.Path == index }) {
		return nil, fmt.Errorf("%w: thanos.files does not list index: want rel_path and size_bytes of each file of the block", ErrInvalid)
	}
	return files, nil
}

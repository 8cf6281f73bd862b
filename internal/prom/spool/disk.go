package spool

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/klauspost/compress/snappy"

	"github.com/promlake/promlake/internal/base/tempdir"
	"github.com/promlake/promlake/internal/format/checksum"
)

// A file of the directory is named by its number, ascending in order of time:
//
//	"PLQ1"       magic and version
//	4 bytes      CRC-32C of what follows, little-endian
//	uvarint n    length of the tenant
//	n bytes      tenant
//	uvarint      samples
//	rest         snappy block: io.prometheus.write.v2.Request
//
// It appears whole or not at all. A file that is damaged, or whose samples were refused as a whole,
// is kept under a name with another suffix, which nothing reads.
const (
	magic         = "PLQ1"
	suffix        = ".queue"
	damagedSuffix = ".damaged"
	refusedSuffix = ".refused"
)

// FullError reports that the directory has no room.
type FullError struct{ Max, Bytes int64 }

func (e *FullError) Error() string {
	return fmt.Sprintf("the queue's files have %d bytes, the limit is %d bytes (scrape.queue-bytes)", e.Bytes, e.Max)
}

// errDamaged marks files whose bytes are not those that were written.
var errDamaged = errors.New("damaged file of the queue")

// entry is one file.
type entry struct {
	number uint64
	bytes  int64
}

// record is the content of a file.
type record struct {
	tenant  string
	samples int
	message []byte
}

// disk is the directory. It is safe for concurrent use.
type disk struct {
	dir string
	max int64

	mu    sync.Mutex
	lock  *os.File // nil: the directory does not exist yet, or was never used
	files []entry  // ascending
	bytes int64
	last  uint64 // number given
}

// openDisk returns the directory with the files that a former process left.
func openDisk(dir string, limit int64) (*disk, error) {
	d := &disk{dir: dir, max: limit}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return d, nil
	}
	return d, d.own()
}

// own makes, locks and lists the directory. The caller holds d.mu, or is the only one.
func (d *disk) own() error {
	if d.lock != nil {
		return nil
	}
	if err := makeDurably(d.dir); err != nil {
		return fmt.Errorf("make the directory of the queue: %w", err)
	}
	lock, err := tempdir.Hold(d.dir)
	if err != nil {
		return fmt.Errorf("hold the directory of the queue (does another process use it? set scrape.queue-dir): %w", err)
	}
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		return errors.Join(fmt.Errorf("list the directory of the queue: %w", err), lock.Close())
	}
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), suffix)
		n, err := strconv.ParseUint(base, 10, 64)
		if !ok || err != nil {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return errors.Join(fmt.Errorf("list the directory of the queue: %w", err), lock.Close())
		}
		d.files = append(d.files, entry{n, info.Size()})
		d.bytes, d.last = d.bytes+info.Size(), max(d.last, n)
	}
	slices.SortFunc(d.files, func(a, b entry) int { return cmp.Compare(a.number, b.number) })
	d.lock = lock
	return nil
}

func (d *disk) path(number uint64, suffix string) string {
	return filepath.Join(d.dir, fmt.Sprintf("%020d%s", number, suffix))
}

// put writes a file durably. It returns a *FullError if there is no room.
func (d *disk) put(r record) error {
	body := append(binary.AppendUvarint(nil, uint64(len(r.tenant))), r.tenant...)
	body = append(binary.AppendUvarint(body, uint64(r.samples)), snappy.Encode(nil, r.message)...)
	file := binary.LittleEndian.AppendUint32([]byte(magic), checksum.Update(0, body))
	file = append(file, body...)

	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.own(); err != nil {
		return err
	}
	size := int64(len(file))
	if d.bytes+size > d.max {
		return &FullError{Max: d.max, Bytes: d.bytes}
	}
	number := d.last + 1
	if err := writeDurably(d.path(number, ".tmp"), d.path(number, suffix), file); err != nil {
		return fmt.Errorf("write to the queue: %w", err)
	}
	d.last, d.bytes, d.files = number, d.bytes+size, append(d.files, entry{number, size})
	return nil
}

func writeDurably(temporary, path string, b []byte) (err error) {
	f, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o640)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// makeDurably makes a directory and those above it that are missing. It syncs the directory in
// which each of them is named, also for one that exists: its maker may have died before the sync.
func makeDurably(dir string) error {
	above := filepath.Dir(dir)
	if _, err := os.Stat(above); errors.Is(err, os.ErrNotExist) {
		if err := makeDurably(above); err != nil {
			return err
		}
	}
	made := os.Mkdir(dir, 0o750)
	if made != nil && !errors.Is(made, os.ErrExist) {
		return made
	}
	err := syncDir(above)
	if made != nil && errors.Is(err, os.ErrPermission) {
		return nil // an administrator made dir in a directory of others
	}
	return err
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// oldest returns at most n files, as many as have maxBytes together, but one at least.
func (d *disk) oldest(n int, maxBytes int64) []entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []entry
	for _, f := range d.files {
		if maxBytes -= f.bytes; len(out) == n || maxBytes < 0 && len(out) > 0 {
			break
		}
		out = append(out, f)
	}
	return out
}

// read returns the content of a file.
func (d *disk) read(e entry) (record, error) {
	b, err := os.ReadFile(d.path(e.number, suffix))
	if err != nil {
		return record{}, fmt.Errorf("read from the queue: %w", err)
	}
	bad := func(what string) (record, error) {
		return record{}, fmt.Errorf("%w: %s: %s", errDamaged, d.path(e.number, suffix), what)
	}
	if len(b) < 8 || string(b[:4]) != magic {
		return bad("it does not begin with " + magic)
	}
	body := b[8:]
	if checksum.Update(0, body) != binary.LittleEndian.Uint32(b[4:]) {
		return bad("its checksum is wrong")
	}
	n, used := binary.Uvarint(body)
	if used <= 0 || n > uint64(len(body)-used) {
		return bad("its tenant is cut off")
	}
	r := record{tenant: string(body[used : used+int(n)])}
	body = body[used+int(n):]
	samples, used := binary.Uvarint(body)
	if used <= 0 {
		return bad("its number of samples is cut off")
	}
	r.samples = int(samples)
	if r.message, err = snappy.Decode(nil, body[used:]); err != nil {
		return bad(err.Error())
	}
	return r, nil
}

// remove removes a file, or keeps it under another suffix if that is not "".
func (d *disk) remove(e entry, as string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var err error
	if as == "" {
		err = os.Remove(d.path(e.number, suffix))
	} else {
		err = os.Rename(d.path(e.number, suffix), d.path(e.number, as))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove from the queue: %w", err)
	}
	d.files = slices.DeleteFunc(d.files, func(f entry) bool { return f.number == e.number })
	d.bytes -= e.bytes
	return nil
}

// count returns the number of files.
func (d *disk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.files)
}

// size returns the bytes of all files.
func (d *disk) size() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

func (d *disk) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}

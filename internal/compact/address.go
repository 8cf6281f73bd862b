package compact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/promlake/promlake/internal/key"
	"github.com/promlake/promlake/internal/queue"
)

// maxGroup is the longest name of a message group, in bytes (Amazon SQS, "Using the message group ID").
const maxGroup = 128

// Group is whatever must be done one after another, because a job may be in vain once the one before it is done: the jobs of a tenant's day. Slices
// are groups of their own, since they share nothing with any other job; so are the two kinds that have no day.
func (w Work) Group() string {
	at := w.Job.Kind.String()
	if w.Job.windowed() {
		at = key.L24h.WindowOf(int64(w.Job.Window)).String()
	}
	if w.Job.Kind == Cut {
		at = fmt.Sprintf("%s/%s/%d", at, w.Job.Split, w.Job.Slice.Index)
	}
	if name := w.Tenant + "/" + at; len(name) <= maxGroup { // of the alphabet of tenants and the slash, all of which groups may have
		return name
	}
	return digest([]byte(w.Tenant)) + "/" + at
}

// Identity is a hash of what the job does, whenever and for whatever reason it was planned.
func (w Work) Identity() (string, error) {
	w.Job = Job{
		Kind: w.Job.Kind, Level: w.Job.Level, Window: w.Job.Window, Sources: w.Job.Sources, Slice: w.Job.Slice, Split: w.Job.Split, Drop: w.Job.Drop,
	}
	body, err := w.Encode()
	if err != nil {
		return "", err
	}
	return digest(body), nil
}

// Message returns the job as a message of a FIFO queue. A copy within the queue's time of deduplication adds nothing; a later one waits until the
// first is done, and then finds nothing to do.
func (w Work) Message() (queue.Message, error) {
	body, err := w.Encode()
	if err != nil {
		return queue.Message{}, err
	}
	id, err := w.Identity()
	return queue.Message{Body: string(body), Group: w.Group(), Deduplication: id}, err
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

package compact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/promlake/promlake/internal/compact/plan"
	"github.com/promlake/promlake/internal/format/key"
	"github.com/promlake/promlake/internal/store/queue"
)

// maxGroup is the longest name of a message group, in bytes (Amazon SQS, "Using the message group
// ID").
const maxGroup = 128

// Group names the jobs that must run one after another: those of a tenant's day, because a job may
// be pointless once the one before it is done. Each slice is a group of its own, since it shares
// nothing with any other job, and so are the two kinds of jobs that have no day.
func (w Work) Group() string {
	at := w.Job.Kind.String()
	if w.Job.Windowed() {
		at = key.L24h.WindowOf(int64(w.Job.Window)).String()
	}
	if w.Job.Kind == plan.Cut {
		at = fmt.Sprintf("%s/%s/%d", at, w.Job.Split, w.Job.Slice.Index)
	}
	if name := w.Tenant + "/" + at; len(name) <= maxGroup { // groups may have all characters of tenants, and the slash
		return name
	}
	return digest([]byte(w.Tenant)) + "/" + at
}

// Identity is a hash of what the job does. It does not depend on when or why the job was planned.
func (w Work) Identity() (string, error) {
	w.Job = plan.Job{
		Kind: w.Job.Kind, Level: w.Job.Level, Window: w.Job.Window, Sources: w.Job.Sources, Slice: w.Job.Slice, Split: w.Job.Split, Drop: w.Job.Drop,
	}
	body, err := w.Encode()
	if err != nil {
		return "", err
	}
	return digest(body), nil
}

// Message returns the job as a message of a FIFO queue. The queue drops a copy that it receives
// within its deduplication interval. A later copy waits until the first one is done, and then has
// nothing to do.
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

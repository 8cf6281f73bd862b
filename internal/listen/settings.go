// Package listen takes lines of a protocol over TCP and UDP and appends them to the ingest stage.
//
// Such protocols have no answers, so a sender does not learn when its samples are durable. Lines
// wait in a bounded queue. While it is full, TCP connections are not read, so that senders wait;
// lines that come over UDP are dropped and counted. Lines in the queue are appended again until the
// stage has them. A process that ends without an orderly shutdown loses the lines in its queue.
package listen

import (
	"context"
	"time"

	"github.com/promlake/promlake/internal/remotewrite"
)

// Protocol is what lines mean.
type Protocol struct {
	Name string // in metrics and logs
	// Decode reads complete lines that came at a time (see remotewrite.Collect).
	Decode func(lines []byte, came time.Time, g *remotewrite.Generation, rules remotewrite.Rules, room remotewrite.Room) (*remotewrite.Batch, error)
}

// Settings are those of one listener.
type Settings struct {
	Address        string        // host:port for TCP and UDP
	Tenant         string        // that lines are written to
	QueueBytes     int64         // of lines that wait
	MaxConnections int           // TCP
	Interval       time.Duration // longest wait of a line for others
}

// Sink makes samples durable. refused says what was refused for good; after an error the samples
// should be appended again.
type Sink interface {
	Append(ctx context.Context, tenant string, size int64, source func(*remotewrite.Generation, remotewrite.Rules, remotewrite.Room) (*remotewrite.Batch, error)) (refused, err error)
}

const (
	// maxLine is the longest line, in bytes, and the memory of a connection.
	maxLine = 16 << 10
	// maxDatagram is the largest payload of UDP.
	maxDatagram = 64 << 10
	// batchBytes are appended at once; they are fewer samples than an ingestion burst has.
	batchBytes = 1 << 20
	// idle is how long a connection may be silent.
	idle = 15 * time.Minute
	// firstPause and lastPause bound the time between two attempts to append lines.
	firstPause, lastPause = 100 * time.Millisecond, 5 * time.Second
	// complainEvery is the time between two log entries on refused or dropped lines.
	complainEvery = time.Minute
)

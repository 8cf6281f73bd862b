package ingestapp

import (
	"github.com/promlake/promlake/internal/app/flags"
	"github.com/promlake/promlake/internal/aws/lambda"
	"github.com/promlake/promlake/internal/ingest"
)

// resolved returns s with the mode that auto stands for in this process, and within its memory.
func resolved(s ingest.Settings, limit int64, given flags.Values) ingest.Settings {
	if s.Mode == ingest.Auto {
		s.Mode = chooseMode(s.QueueURL != "", lambda.Running(), lambda.Concurrency())
	}
	return within(s, limit, given)
}

// chooseMode resolves auto: only a process that takes several requests at once can let them share a
// segment.
func chooseMode(queue, function bool, concurrency int) ingest.Mode {
	switch {
	case !function || concurrency > 1:
		return ingest.Grouped
	case queue:
		return ingest.Buffered
	}
	return ingest.Direct
}

// within returns s with shares of the process's memory, limit bytes, in place of larger defaults:
// requests in flight have a quarter at most, known label sets an eighth. What the operator gave is
// kept, and one request still fits. limit 0 is none.
func within(s ingest.Settings, limit int64, given flags.Values) ingest.Settings {
	if limit <= 0 {
		return s
	}
	flags.Lower(given, "ingest.max-inflight-bytes", &s.MaxInflightBytes, max(limit/4, s.MaxRequestBytes+s.MaxDecodedBytes))
	flags.Lower(given, "ingest.max-known-bytes", &s.MaxKnownBytes, limit/8)
	flags.Lower(given, "ingest.max-series-bytes", &s.MaxSeriesBytes, limit/8)
	return s
}

package ingestapp

import "github.com/promlake/promlake/internal/ingest"

// within returns s with the shares of the process's memory, limit bytes, where s has defaults that
// are larger: requests in flight have a quarter at most, known label sets an eighth. What was set
// to another value than the default is kept, and one request must still fit. limit 0 is none.
func within(s ingest.Settings, limit int64) ingest.Settings {
	if limit <= 0 {
		return s
	}
	d := ingest.DefaultSettings()
	if s.MaxInflightBytes == d.MaxInflightBytes {
		s.MaxInflightBytes = max(min(d.MaxInflightBytes, limit/4), s.MaxRequestBytes+s.MaxDecodedBytes)
	}
	if s.MaxKnownBytes == d.MaxKnownBytes {
		s.MaxKnownBytes = min(d.MaxKnownBytes, limit/8)
	}
	if s.MaxSeriesBytes == d.MaxSeriesBytes {
		s.MaxSeriesBytes = min(d.MaxSeriesBytes, limit/8)
	}
	return s
}

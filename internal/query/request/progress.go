package request

import "sync"

// Progress is how far the scans of a SQL statement are. It is safe for concurrent use.
type Progress struct {
	mu    sync.Mutex
	scans map[string][]func() (done, planned int64)
}

// Begin names the scans of a statement, of which none has begun.
func (p *Progress) Begin(scans []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.scans = map[string][]func() (done, planned int64){}
	for _, s := range scans {
		p.scans[s] = nil
	}
}

// Add adds a pass of a scan that Begin has named; of other scans it is left out. of returns how much
// of what the pass is to read is done, in any unit. It is called from other goroutines.
func (p *Progress) Add(scan string, of func() (done, planned int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if passes, ok := p.scans[scan]; ok {
		p.scans[scan] = append(passes, of)
	}
}

// Share returns the part that is done, from 0 to 1: the mean of the scans, of which each counts the
// same, for it is not known what a scan reads until it begins. ok is false if there are no scans.
func (p *Progress) Share() (part float64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, passes := range p.scans {
		var done, planned int64
		for _, of := range passes {
			d, n := of()
			done, planned = done+min(d, n), planned+n
		}
		switch {
		case planned > 0:
			part += float64(done) / float64(planned)
		case len(passes) > 0:
			part++ // there was nothing to read
		}
	}
	return part / float64(max(1, len(p.scans))), len(p.scans) > 0
}

package views

// Shown is a table that shows the replicas of a series as one.
type Shown interface {
	// Narrow reports whether its scan needs a snapshot that has what the choice among replicas
	// depends on, and would not get it.
	Narrow() (bool, error)
}

// narrow is Narrow of a table. It decides by the objects' label names, so that a statement knows it
// before it has written rows.
func (s *Store) narrow(from Reader) (bool, error) {
	ctx, r, err := from.Read()
	if err != nil || r.Wide || r.Stored || r.MinT > r.MaxT {
		return false, err
	}
	return s.Series.MayHaveReplicas(ctx, r.Snap, r.MinT, r.MaxT, s.shown(ctx, r)...)
}

// Narrow implements Shown.
func (t *Samples) Narrow() (bool, error) { return t.Store.narrow(t.Reader) }

// Narrow implements Shown.
func (t *Histograms) Narrow() (bool, error) { return t.Store.narrow(t.Reader) }

// Narrow implements Shown.
func (t *Rollup) Narrow() (bool, error) { return t.Store.narrow(t.Reader) }

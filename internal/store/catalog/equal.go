package catalog

import "slices"

// equal reports whether two manifests have the same JSON.
func (m *Manifest) equal(o *Manifest) bool {
	return m.Version == o.Version && m.Generation == o.Generation && m.ID == o.ID && m.Parent == o.Parent &&
		m.LastTombstone == o.LastTombstone && m.Oldest == o.Oldest &&
		slices.Equal(m.Blocks, o.Blocks) && slices.Equal(m.Consumed, o.Consumed) && slices.Equal(m.Retired, o.Retired) &&
		slices.EqualFunc(m.Tombstones, o.Tombstones, Tombstone.equal) && slices.Equal(m.Sealed, o.Sealed) &&
		slices.EqualFunc(m.Splits, o.Splits, Split.equal) && slices.EqualFunc(m.Imports, o.Imports, Import.equal)
}

func (t Tombstone) equal(o Tombstone) bool {
	return t.ID == o.ID && slices.Equal(t.Matchers, o.Matchers) && t.MinT == o.MinT && t.MaxT == o.MaxT &&
		t.QueuedThrough == o.QueuedThrough && t.Before == o.Before
}

func (s Split) equal(o Split) bool {
	return s.ID == o.ID && s.Level == o.Level && s.Window == o.Window && s.Of == o.Of &&
		slices.Equal(s.Sources.Segments, o.Sources.Segments) && slices.Equal(s.Sources.Blocks, o.Sources.Blocks) && slices.Equal(s.Done, o.Done)
}

func (x Import) equal(o Import) bool {
	return x.Block == o.Block && x.Level == o.Level && x.Window == o.Window && x.Slice == o.Slice && slices.Equal(x.Inputs, o.Inputs) &&
		x.DeletesThrough == o.DeletesThrough && x.Series == o.Series && x.Samples == o.Samples && x.Bytes == o.Bytes
}

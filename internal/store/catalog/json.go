package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/promlake/promlake/internal/format/checksum"
)

// MaxManifestBytes bounds a manifest's JSON.
const MaxManifestBytes = 64 << 20

// Encode returns the manifest as JSON (schemas/manifest.schema.json). Equal manifests have equal
// bytes.
func Encode(m Manifest) ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	b, err := checksum.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	if len(b) >= MaxManifestBytes {
		return nil, fmt.Errorf("encode manifest: it has %d bytes, the limit is %d: compact and collect garbage more often: %w", len(b), MaxManifestBytes, ErrInvalid)
	}
	return append(b, '\n'), nil
}

// Decode is the inverse of Encode. The error wraps ErrFormat for bytes that are not a manifest, and
// checksum.ErrUnknownVersion for a manifest of a later version. A field that this version does not
// have is refused too: a committer would drop it.
func Decode(b []byte) (Manifest, error) {
	sealed, err := checksum.Verify(b)
	if err != nil {
		return Manifest{}, fmt.Errorf("decode manifest: %w: %w", ErrFormat, err)
	}
	m, ok := Manifest{}, false
	if sealed {
		m, ok = decodePlain(b)
	}
	if !ok {
		if m, err = decodeAny(b, sealed); err != nil {
			return Manifest{}, err
		}
	}
	if err := m.validate(); err != nil {
		return Manifest{}, fmt.Errorf("decode manifest: %w: %w", ErrFormat, err)
	}
	return m, nil
}

// decodeAny decodes any JSON of a manifest, and validates nothing.
func decodeAny(b []byte, sealed bool) (Manifest, error) {
	var object struct {
		Manifest
		CRC string `json:"crc32c"` // checked
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&object); err != nil {
		return Manifest{}, fmt.Errorf("decode manifest: %w", foreign(b, err))
	}
	m := object.Manifest
	switch {
	case m.Version > ManifestVersion:
		return Manifest{}, fmt.Errorf("decode manifest: %w", foreign(b, nil))
	case m.Version == 1:
		m = m.upgrade()
	case !sealed:
		return Manifest{}, fmt.Errorf("decode manifest: version %d without a checksum: %w", m.Version, ErrFormat)
	}
	if _, err := dec.Token(); err != io.EOF {
		return Manifest{}, fmt.Errorf("decode manifest: bytes follow it: %w", ErrFormat)
	}
	return m, nil
}

// upgrade makes a manifest of version 2 of one of version 1. There a tombstone covered an object
// if the object's rank was below the tombstone's identifier, and a segment's rank was its
// identifier.
func (m Manifest) upgrade() Manifest {
	m = m.clone()
	m.Version = ManifestVersion
	through := func(b *Block) {
		for _, t := range m.Tombstones {
			if t.ID.Compare(b.Rank) <= 0 {
				b.DeletesThrough = later(b.DeletesThrough, t.ID)
			}
		}
	}
	for i := range m.Blocks {
		through(&m.Blocks[i])
	}
	for i, sp := range m.Splits {
		m.Splits[i].Done = slices.Clone(sp.Done)
		for j := range m.Splits[i].Done {
			through(&m.Splits[i].Done[j])
		}
	}
	for i := range m.Tombstones {
		m.Tombstones[i].Before = m.Tombstones[i].ID
	}
	return m
}

// foreign explains why bytes did not decode: by their version, if it is another one.
func foreign(b []byte, err error) error {
	var v struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(b, &v) == nil && v.Version > ManifestVersion {
		return checksum.CheckVersion("manifests", strconv.Itoa(v.Version), ManifestVersion)
	}
	return fmt.Errorf("%w: %w", ErrFormat, err)
}

package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// MaxManifestBytes bounds a manifest's JSON.
const MaxManifestBytes = 64 << 20

// Encode returns the manifest as JSON (schemas/manifest.schema.json). Equal manifests have equal bytes.
func Encode(m Manifest) ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	b, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode manifest: %w", err)
	}
	if len(b) >= MaxManifestBytes {
		return nil, fmt.Errorf("encode manifest: it has %d bytes, the limit is %d: compact and collect garbage more often: %w", len(b), MaxManifestBytes, ErrInvalid)
	}
	return append(b, '\n'), nil
}

// Decode is the inverse of Encode. The error wraps ErrFormat for what is no manifest or of another version. A field that this version does not
// have is refused too: a committer would drop it.
func Decode(b []byte) (Manifest, error) {
	var m Manifest
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return Manifest{}, fmt.Errorf("decode manifest: %w: %w", ErrFormat, foreign(b, err))
	}
	if _, err := dec.Token(); err != io.EOF {
		return Manifest{}, fmt.Errorf("decode manifest: bytes follow it: %w", ErrFormat)
	}
	if err := m.validate(); err != nil {
		return Manifest{}, fmt.Errorf("decode manifest: %w: %w", ErrFormat, err)
	}
	return m, nil
}

// foreign explains why bytes did not decode: if they are of another version, then because of that.
func foreign(b []byte, err error) error {
	var v struct {
		Version int `json:"version"`
	}
	if json.Unmarshal(b, &v) == nil && v.Version != ManifestVersion {
		return fmt.Errorf("its version is %d, this program knows %d", v.Version, ManifestVersion)
	}
	return err
}

package segment

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/parquet-go/parquet-go/format"

	"github.com/promlake/promlake/internal/format/checksum"
	"github.com/promlake/promlake/internal/format/parquetfile"
)

// Keys of the footer's key-value metadata.
const (
	kvVersion  = "promlake.segment.version"
	kvInfo     = "promlake.segment.info"     // JSON of Info without Version and Metadata
	kvMetadata = "promlake.segment.metadata" // JSON of []Metadata; absent if there is none
	kvValues   = "promlake.segment.values"   // base64 of Values; absent if there are none
	kvLabels   = "promlake.segment.labels"   // base64 of LabelRuns; absent if there are none
)

// ErrFormat reports bytes that are not a segment. A segment of a later version is a
// checksum.ErrUnknownVersion.
var ErrFormat = errors.New("not a promlake segment")

// checkVersion refuses the key-value metadata of a file of a version that this program does not know.
func checkVersion(kv map[string]string) error {
	v, ok := kv[kvVersion]
	if !ok {
		return fmt.Errorf("%w: it has no version", ErrFormat)
	}
	return checksum.CheckVersion("segments", v, FormatVersion)
}

func decodeMetadata(kv map[string]string) (m []Metadata, err error) {
	if text, ok := kv[kvMetadata]; ok {
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return nil, fmt.Errorf("%w: decode metadata: %w", ErrFormat, err)
		}
	}
	return m, nil
}

func (i *Info) keyValues() ([]format.KeyValue, error) {
	info, err := json.Marshal(i)
	if err != nil {
		return nil, fmt.Errorf("encode segment info: %w", err)
	}
	kv := []format.KeyValue{{Key: kvVersion, Value: strconv.Itoa(i.Version)}, {Key: kvInfo, Value: string(info)}}
	if len(i.Metadata) > 0 {
		m, err := json.Marshal(i.Metadata)
		if err != nil {
			return nil, fmt.Errorf("encode segment metadata: %w", err)
		}
		kv = append(kv, format.KeyValue{Key: kvMetadata, Value: string(m)})
	}
	if len(i.Values) > 0 {
		kv = append(kv, format.KeyValue{Key: kvValues, Value: i.Values.text()})
	}
	return kv, nil
}

// ReadInfo reads the footer of a segment of size bytes. Errors: ErrFormat, and those of r.
func ReadInfo(r io.ReaderAt, size int64) (Info, error) {
	footer, err := parquetfile.ReadFooter(r, size)
	if err != nil {
		return Info{}, asFormat(err)
	}
	kv, err := parquetfile.KeyValues(footer)
	if err != nil {
		return Info{}, fmt.Errorf("%w: decode footer: %w", ErrFormat, err)
	}
	if err := checkVersion(kv); err != nil {
		return Info{}, err
	}
	var info Info
	if info.Version, err = strconv.Atoi(kv[kvVersion]); err != nil {
		return Info{}, fmt.Errorf("%w: decode version: %w", ErrFormat, err)
	}
	if err := json.Unmarshal([]byte(kv[kvInfo]), &info); err != nil {
		return Info{}, fmt.Errorf("%w: decode info: %w", ErrFormat, err)
	}
	if info.Metadata, err = decodeMetadata(kv); err != nil {
		return info, err
	}
	info.Values, err = decodeValues(kv)
	return info, err
}

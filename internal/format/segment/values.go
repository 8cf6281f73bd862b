package segment

import (
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/prometheus/common/model"
	"github.com/zeebo/xxh3"
)

// Values is a Bloom filter of the labels of a segment's series: of their metrics, and of the labels
// that have a column. A reader that wants a label need not read a segment whose filter lacks it.
// The empty filter has every label.
type Values []byte

const (
	valueBits   = 16      // of the filter for each label; one label in 1,700 is found by mistake
	valueProbes = 8       // bits that a label sets
	maxValues   = 8 << 10 // labels of a segment beyond which it has no filter
)

// ValueHash returns the hash of a label. Its name is __name__ for a metric.
func ValueHash(name, value string) uint64 { return xxh3.HashStringSeed(value, xxh3.HashString(name)) }

// Has reports whether a series of the segment may have the label of a hash.
func (v Values) Has(hash uint64) bool {
	bits, at, step := uint64(len(v))*8, uint32(hash), uint32(hash>>32)
	for range valueProbes {
		if bit := uint64(at) * bits >> 32; bits > 0 && v[bit>>3]&(1<<(bit&7)) == 0 {
			return false
		}
		at += step
	}
	return true
}

// valuesOf returns the filter of the labels of distinct hashes, nil if there are too many.
func valuesOf(hashes []uint64) Values {
	if len(hashes) == 0 || len(hashes) > maxValues {
		return nil
	}
	v := make(Values, (len(hashes)*valueBits+7)/8)
	bits := uint64(len(v)) * 8
	for _, h := range hashes {
		at, step := uint32(h), uint32(h>>32)
		for range valueProbes {
			bit := uint64(at) * bits >> 32
			v[bit>>3] |= 1 << (bit & 7)
			at += step
		}
	}
	return v
}

// hashValues adds the hashes of the labels of the row group that was written last to those of the
// groups before it.
func (c *SeriesColumns) hashValues(before []uint64) []uint64 {
	dst := before
	add := func(name string, values []string) {
		seed := xxh3.HashString(name)
		for _, v := range values {
			if v != "" {
				dst = append(dst, xxh3.HashStringSeed(v, seed))
			}
		}
	}
	add(model.MetricNameLabel, c.metric.Distinct())
	for i, o := range c.ord {
		add(c.Names[i], c.columns[o].Distinct())
	}
	if len(before) > 0 {
		slices.Sort(dst)
		dst = slices.Compact(dst)
	}
	return dst
}

// text returns the filter as the footer has it.
func (v Values) text() string { return base64.RawStdEncoding.EncodeToString(v) }

func decodeValues(kv map[string]string) (Values, error) {
	text, ok := kv[kvValues]
	if !ok {
		return nil, nil
	}
	v, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("%w: decode values: %w", ErrFormat, err)
	}
	return v, nil
}

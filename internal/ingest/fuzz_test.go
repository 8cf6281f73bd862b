package ingest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzDecodersAgree holds both decoders against upstream's, sample by sample.
func FuzzDecodersAgree(f *testing.F) {
	for _, version := range protocols {
		f.Add(version == protocolV2, message(f, version, everything()))
		for seed := range uint64(10) {
			f.Add(version == protocolV2, message(f, version, randomItems(rand.New(rand.NewPCG(seed, 8)))))
		}
	}
	f.Add(true, bytes.Repeat([]byte{0x2a, 0x00}, 100))
	f.Fuzz(func(t *testing.T, v2 bool, msg []byte) {
		version := protocolV1
		if v2 {
			version = protocolV2
		}
		require.Empty(t, differs(version, msg))
	})
}

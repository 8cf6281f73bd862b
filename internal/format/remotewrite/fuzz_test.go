package remotewrite_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/remotewrite"
	"github.com/promlake/promlake/tests/support/remotewritetest"
)

// FuzzDecodersAgree holds both decoders against upstream's, sample by sample.
func FuzzDecodersAgree(f *testing.F) {
	for _, version := range protocols {
		f.Add(version == remotewrite.V2, remotewritetest.Message(f, version, remotewritetest.Everything()))
		for seed := range uint64(10) {
			f.Add(version == remotewrite.V2, remotewritetest.Message(f, version, remotewritetest.RandomItems(rand.New(rand.NewPCG(seed, 8)))))
		}
	}
	f.Add(true, bytes.Repeat([]byte{0x2a, 0x00}, 100))
	f.Fuzz(func(t *testing.T, v2 bool, msg []byte) {
		version := remotewrite.V1
		if v2 {
			version = remotewrite.V2
		}
		require.Empty(t, differs(version, msg))
	})
}

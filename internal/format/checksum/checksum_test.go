package checksum_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/promlake/promlake/internal/format/checksum"
)

func TestUpdateUint64(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		crc, v := rng.Uint32(), rng.Uint64()
		require.Equal(t, checksum.Update(crc, binary.LittleEndian.AppendUint64(nil, v)), checksum.UpdateUint64(crc, v))
	}
}

package vector_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

func TestMapIsSortedByKey(t *testing.T) {
	got := vector.OrdinalMap([]uint64{1 << 63, 2, 0x0102030405060708}, []uint32{7, 0, vector.NoOrdinal})
	assert.Equal(t, []byte{
		2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		8, 7, 6, 5, 4, 3, 2, 1, 0xFF, 0xFF, 0xFF, 0xFF,
		0, 0, 0, 0, 0, 0, 0, 0x80, 7, 0, 0, 0,
	}, got)
	assert.Empty(t, vector.OrdinalMap(nil, nil))
}

func TestArray(t *testing.T) {
	assert.Equal(t, []byte{1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 4, 3, 2, 1}, vector.OrdinalArray([]uint32{1, vector.NoOrdinal, 0x01020304}))
	assert.Empty(t, vector.OrdinalArray(nil))
}

package vector_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/promlake/promlake/internal/query/plan/vector"
)

func TestArray(t *testing.T) {
	assert.Equal(t, []byte{1, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 4, 3, 2, 1}, vector.OrdinalArray([]uint32{1, vector.NoOrdinal, 0x01020304}))
	assert.Empty(t, vector.OrdinalArray(nil))
}

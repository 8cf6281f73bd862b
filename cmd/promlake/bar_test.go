package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBarKeepsItsLineBelowTheLog(t *testing.T) {
	var out bytes.Buffer
	b := &bar{out: &out, width: 50}
	step := func(want string, f func()) {
		t.Helper()
		out.Reset()
		f()
		require.Equal(t, want, out.String())
	}
	half := "[" + strings.Repeat("█", 12) + strings.Repeat("░", 12) + "]  50% merge"
	log := func() { _, err := b.Write([]byte("log\n")); require.NoError(t, err) }
	step("log\n", log)
	step(eraseLine+half, func() { b.show(1, 2, "merge") })
	step(eraseLine+"log\n"+half, log)
	step(eraseLine+"["+strings.Repeat("█", 24)+"] 100% a line that is to", func() { b.show(2, 2, "a line that is too long") })
	step(eraseLine, func() { b.show(0, 0, "") })
	step("log\n", log)
}

func TestGauge(t *testing.T) {
	require.Equal(t, "["+strings.Repeat("░", 24)+"]   0%", gauge(0, 0))
	require.Equal(t, "["+strings.Repeat("█", 8)+strings.Repeat("░", 16)+"]  33%", gauge(1, 3))
	require.Equal(t, "["+strings.Repeat("█", 24)+"] 100%", gauge(4, 3), "more than planned")
}

func TestNoBarWithoutTerminal(t *testing.T) {
	require.Nil(t, newBar(&bytes.Buffer{}))
	f, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer f.Close()
	require.Nil(t, newBar(f))
}

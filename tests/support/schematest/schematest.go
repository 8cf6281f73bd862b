// Package schematest validates documents of tests by JSON Schemas. The validator is a program with a
// module of its own, tests/schema, because its dependencies are not Promlake's.
package schematest

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Validate returns what is wrong with each of the JSON documents by the schema of a file: "" if it
// is valid. A document that is no JSON fails the test.
func Validate(t *testing.T, schema string, docs ...[]byte) []string {
	t.Helper()
	text, err := os.ReadFile(schema)
	require.NoError(t, err)
	texts := []json.RawMessage{text}
	for _, doc := range docs {
		texts = append(texts, doc)
	}
	in, err := json.Marshal(texts)
	require.NoError(t, err)

	dir, err := os.Getwd()
	require.NoError(t, err)
	program := filepath.Join("tests", "schema")
	for ; ; dir = filepath.Dir(dir) {
		// Reading the source makes it an input of the test: go test keeps results until one changes.
		if _, err := os.ReadFile(filepath.Join(dir, program, "main.go")); err == nil {
			break
		}
		require.NotEqual(t, filepath.Dir(dir), dir, "%s is in no parent of the working directory", program)
	}
	var out, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "run", "-C", filepath.Join(dir, program), ".")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(in), &out, &stderr
	require.NoError(t, cmd.Run(), "%s", &stderr)
	var wrong []string
	require.NoError(t, json.Unmarshal(out.Bytes(), &wrong))
	require.Len(t, wrong, len(docs))
	return wrong
}

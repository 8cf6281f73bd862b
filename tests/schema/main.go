// Program schema validates documents by a JSON Schema. It reads an array of JSON texts, of which the
// first one is the schema, and writes an array with what is wrong with each of the others: "" if it
// is valid. tests/support/schematest runs it.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"os"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	var texts []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&texts); err != nil {
		return fmt.Errorf("read texts: %w", err)
	}
	var docs []any
	for _, text := range texts {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("decode %s: %w", text, err)
		}
		docs = append(docs, doc)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", docs[0]); err != nil {
		return fmt.Errorf("add schema: %w", err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		return fmt.Errorf("compile schema: %w", err)
	}
	out := make([]string, 0, len(docs)-1)
	for _, doc := range docs[1:] {
		wrong := ""
		if err := schema.Validate(doc); err != nil {
			wrong = err.Error()
		}
		out = append(out, wrong)
	}
	return json.NewEncoder(os.Stdout).Encode(out)
}

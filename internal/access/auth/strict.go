package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// strictJSON decodes one JSON value. In addition to what encoding/json rejects, it rejects unknown
// fields, fields that differ in case, repeated fields of an object, and text after the value.
func strictJSON(text []byte, into any) error {
	if err := checkFields(json.NewDecoder(bytes.NewReader(text))); err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the end of the document")
	}
	return nil
}

// checkFields checks the fields of the objects in one value: encoding/json accepts repeated fields,
// and ignores the case of field names.
func checkFields(dec *json.Decoder) error {
	t, err := dec.Token()
	if err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	switch t {
	case json.Delim('['):
		for dec.More() {
			if err := checkFields(dec); err != nil {
				return err
			}
		}
	case json.Delim('{'):
		seen := map[string]bool{}
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return fmt.Errorf("not JSON: %w", err)
			}
			field, _ := name.(string)
			if seen[field] {
				return fmt.Errorf("field %q occurs twice", field)
			}
			if field != string(bytes.ToLower([]byte(field))) {
				return fmt.Errorf("unknown field %q", field)
			}
			seen[field] = true
			if err := checkFields(dec); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	if _, err := dec.Token(); err != nil { // the closing bracket
		return fmt.Errorf("not JSON: %w", err)
	}
	return nil
}

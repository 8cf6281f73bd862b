package otlp

import "github.com/promlake/promlake/internal/format/series"

// scope is the instrumentation scope whose metrics are being read, if it becomes labels.
type scope struct {
	key                   series.Key // zero: it has no labels
	name, version, schema string
	attributes            []byte
}

// readScope reads the scope of a ScopeMetrics: scope = 1, schema_url = 3. The scope is an
// InstrumentationScope: name = 1, version = 2, attributes = 3.
func (d *decoder) readScope(msg []byte) error {
	var s scope
	var attributes span
	r := read(msg, "ScopeMetrics")
	for r.next() {
		switch r.num {
		case 1:
			var own span
			in := read(r.bytes(), "InstrumentationScope")
			for in.next() {
				switch in.num {
				case 1:
					s.name = string(in.bytes())
				case 2:
					s.version = string(in.bytes())
				case 3:
					own.add(&in)
				}
			}
			attributes.join(own.bytes)
			if in.err != nil {
				return in.err
			}
		case 3:
			s.schema = string(r.bytes())
		}
	}
	if r.err != nil {
		return r.err
	}
	if s.name == "" {
		return nil
	}
	s.attributes = attributes.bytes
	d.text = append(d.text[:0], 'O', 's')
	for _, part := range []string{s.name, s.version, s.schema} {
		d.text = appendText(d.text, part)
	}
	d.text = append(d.text, s.attributes...)
	s.key = d.c.Key(d.text)
	d.scope = s
	return nil
}

// scoped sets the labels of the scope.
func (d *decoder) scoped(lset []series.Label) ([]series.Label, error) {
	s := &d.scope
	if s.name == "" {
		return lset, nil
	}
	list, err := d.attributes(s.attributes)
	if err != nil {
		return nil, err
	}
	namer := d.set.labelNamer()
	var own []series.Label
	for _, a := range list {
		name, err := namer.Build("otel_scope_" + a.key)
		if err != nil {
			return nil, invalidLabel(err)
		}
		own = set(own, name, a.value)
	}
	for _, l := range own {
		lset = set(lset, l.Name, l.Value)
	}
	lset = set(lset, "otel_scope_name", s.name)
	lset = set(lset, "otel_scope_version", s.version)
	return set(lset, "otel_scope_schema_url", s.schema), nil
}

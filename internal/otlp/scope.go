package otlp

import "github.com/promlake/promlake/internal/series"

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
	for len(msg) > 0 {
		f, rest, err := next(msg)
		if err != nil {
			return err
		}
		msg = rest
		if f.num != 1 && f.num != 3 {
			continue
		}
		if err := f.message("ScopeMetrics"); err != nil {
			return err
		}
		if f.num == 3 {
			s.schema = string(f.data)
			continue
		}
		one, err := fieldsOf(f.data, 3, "InstrumentationScope")
		if err != nil {
			return err
		}
		attributes.join(one)
		for b := f.data; len(b) > 0; {
			f, rest, err := next(b)
			if err != nil {
				return err
			}
			b = rest
			if f.num != 1 && f.num != 2 {
				continue
			}
			if err := f.message("InstrumentationScope"); err != nil {
				return err
			}
			if f.num == 1 {
				s.name = string(f.data)
			} else {
				s.version = string(f.data)
			}
		}
	}
	if s.name == "" {
		return nil
	}
	s.attributes = attributes.joined
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

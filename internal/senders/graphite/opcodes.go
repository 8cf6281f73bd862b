package graphite

// step executes one opcode.
func (m *machine) step(op byte) error {
	switch op {
	case 0x80: // PROTO
		v, err := m.byte()
		if err == nil && v > 5 {
			err = m.invalid("protocol %d, of 0 to 5", v)
		}
		return err
	case 0x95: // FRAME
		_, err := m.bytes(8)
		return err
	case '(':
		m.push(pickled{Kind: pickledMark})
		return nil
	case '0': // POP
		_, err := m.pop()
		return err
	case '1': // POP_MARK
		_, err := m.popMark()
		return err
	case 'N':
		m.push(pickled{})
		return nil
	case ']', ')': // EMPTY_LIST, EMPTY_TUPLE
		m.sequence(nil)
		return nil
	case 'l', 't': // LIST, TUPLE
		values, err := m.popMark()
		if err == nil {
			m.sequence(values)
		}
		return err
	case 0x85, 0x86, 0x87: // TUPLE1, TUPLE2, TUPLE3
		n := int(op) - 0x84
		if len(m.stack) < n {
			return m.invalid("the stack is empty")
		}
		from := len(m.stack) - n
		values := m.stack[from:]
		for _, v := range values {
			if v.Kind == pickledMark {
				return m.invalid("a mark in a tuple")
			}
		}
		m.stack = m.stack[:from]
		m.sequence(values)
		return nil
	case 'a': // APPEND
		v, err := m.pop()
		if err == nil && v.Kind == pickledMark {
			err = m.invalid("a mark in a list")
		}
		if err != nil {
			return err
		}
		return m.extend(v)
	case 'e': // APPENDS
		values, err := m.popMark()
		if err != nil {
			return err
		}
		return m.extend(values...)
	case 'p', 'q', 'r', 0x94: // PUT, BINPUT, LONG_BINPUT, MEMOIZE
		key, err := m.key(op)
		if err != nil {
			return err
		}
		if len(m.stack) == 0 {
			return m.invalid("the stack is empty")
		}
		if m.memo == nil {
			m.memo = map[uint64]pickled{}
		}
		m.left--
		m.memo[key] = m.stack[len(m.stack)-1]
		return nil
	case 'g', 'h', 'j': // GET, BINGET, LONG_BINGET
		key, err := m.key(op)
		if err != nil {
			return err
		}
		v, ok := m.memo[key]
		if !ok {
			return m.invalid("nothing was remembered as %d", key)
		}
		m.push(v)
		return nil
	}
	if done, err := m.numeric(op); done || err != nil {
		return err
	}
	if done, err := m.textual(op); done || err != nil {
		return err
	}
	m.at--
	return m.invalid("opcode 0x%02x is not one of numbers, texts, tuples and lists (nothing is executed)", op)
}

// key reads the number under which a value is remembered.
func (m *machine) key(op byte) (uint64, error) {
	switch op {
	case 'p', 'g':
		return m.decimal()
	case 'q', 'h':
		return m.unsigned(1)
	case 'r', 'j':
		return m.unsigned(4)
	}
	return uint64(len(m.memo)), nil // MEMOIZE
}

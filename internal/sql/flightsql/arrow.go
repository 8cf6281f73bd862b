package flightsql

import (
	"errors"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow/flight"
	flatbuffers "github.com/google/flatbuffers/go"
)

var (
	errDamaged = errors.New("the Arrow message is damaged")
	errRows    = errors.New("the parameters have more than one row: run the statement once for each")
	errType    = errors.New("its type is not supported: want a boolean, a number, a text, a date or a timestamp")
)

// The kinds of messages and of the types of fields, as Arrow's Message.fbs and Schema.fbs number
// them.
const (
	kindSchema, kindBatch                                      = 1, 3
	typeNull, typeInt, typeFloat, typeText, typeBool           = 1, 2, 3, 5, 6
	typeDate, typeTimestamp, typeLargeText, typeTextView       = 8, 10, 20, 24
	endianBig                                            int16 = 1
)

// part is a table of a message; its fields are numbered from 0, as in the .fbs files.
type part struct{ flatbuffers.Table }

// at returns the place of a field, 0 if it is absent.
func (p part) at(field int) flatbuffers.UOffsetT {
	return flatbuffers.UOffsetT(p.Offset(flatbuffers.VOffsetT(4 + 2*field)))
}

// table returns the table to which a field refers.
func (p part) table(field int) (part, bool) {
	o := p.at(field)
	if o == 0 {
		return part{}, false
	}
	return part{flatbuffers.Table{Bytes: p.Bytes, Pos: p.Indirect(p.Pos + o)}}, true
}

// vector returns the length of a vector, and the place of its first element.
func (p part) vector(field int) (int, flatbuffers.UOffsetT) {
	o := p.at(field)
	if o == 0 {
		return 0, 0
	}
	return p.VectorLen(o), p.Vector(o)
}

// check refuses what Arrow's reader would believe without a limit. The reader follows the
// references of a schema however deep they nest and however many of them share one text, and makes
// room for lengths that a message merely states. The parameters of statements need none of that:
// they are one row of plain columns, uncompressed, whose parts do not overlap.
func check(d *flight.FlightData, first bool) (err error) {
	switch {
	case first && d.FlightDescriptor == nil:
		return errors.New("the first message has no descriptor")
	case first && len(d.DataHeader) == 0:
		return nil
	}
	defer func() {
		if recover() != nil { // a reference leads out of the message
			err = errDamaged
		}
	}()
	m := part{flatbuffers.Table{Bytes: d.DataHeader, Pos: flatbuffers.GetUOffsetT(d.DataHeader)}}
	header, ok := m.table(2)
	if !ok {
		return errDamaged
	}
	switch m.GetUint8Slot(6, 0) {
	case kindSchema:
		return checkSchema(m, header)
	case kindBatch:
		return checkBatch(header, int64(len(d.DataBody)))
	}
	return errors.New("the message is neither a schema nor a record batch")
}

// checkSchema counts the bytes that each reference reaches: parts that are shared or nested in a
// circle make more than the message has.
func checkSchema(m, schema part) error {
	reached := 0
	reach := func(n int) {
		if reached += n; reached > len(m.Bytes) {
			panic(errDamaged)
		}
	}
	text := func(p part, field int) {
		if o := p.at(field); o != 0 {
			reach(4 + len(p.ByteVector(p.Pos+o)))
		}
	}
	tables := func(p part, field int, each func(part)) {
		n, at := p.vector(field)
		for range n {
			reach(4)
			each(part{flatbuffers.Table{Bytes: p.Bytes, Pos: p.Indirect(at)}})
			at += 4
		}
	}
	pair := func(p part) { text(p, 0); text(p, 1) }
	tables(m, 4, pair)
	if schema.GetInt16Slot(4, 0) == endianBig {
		return errors.New("big-endian data is not supported")
	}
	var err error
	columns := 0
	tables(schema, 1, func(f part) {
		columns++
		text(f, 0)
		tables(f, 6, pair)
		switch kind, ok := f.table(3); f.GetUint8Slot(8, 0) {
		case typeTimestamp:
			if ok {
				text(kind, 1)
			}
		case typeNull, typeInt, typeFloat, typeText, typeBool, typeDate, typeLargeText, typeTextView:
		default:
			err = fmt.Errorf("parameter %d: %w", columns, errType)
		}
		if n, _ := f.vector(5); n > 0 || f.at(4) != 0 { // children, a dictionary
			err = fmt.Errorf("parameter %d: %w", columns, errType)
		}
	})
	tables(schema, 2, pair)
	return err
}

// checkBatch compares the lengths of a record batch with what there is.
func checkBatch(b part, body int64) error {
	rows := b.GetInt64Slot(4, 0)
	if rows > 1 {
		return errRows
	}
	if b.at(3) != 0 {
		return errors.New("compressed data is not supported")
	}
	ok := rows >= 0
	n, at := b.vector(1) // length and count of nulls of each column
	for range n {
		nulls := b.GetInt64(at + 8)
		ok = ok && b.GetInt64(at) == rows && nulls >= 0 && nulls <= rows
		at += 16
	}
	buffers, at := b.vector(2) // offset and length of each buffer
	left := body
	for range buffers {
		offset, length := b.GetInt64(at), b.GetInt64(at+8)
		ok = ok && offset >= 0 && length >= 0 && length <= left && offset <= body-length
		if left -= length; !ok {
			break
		}
		at += 16
	}
	views, at := b.vector(4) // further buffers of each column of views
	for range views {
		more := b.GetInt64(at)
		if ok = ok && more >= 0 && more <= int64(buffers); !ok {
			break
		}
		buffers -= int(more)
		at += 8
	}
	if !ok {
		return errDamaged
	}
	return nil
}

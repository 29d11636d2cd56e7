// Package columns writes PredictRequests directly from slices, as docs/wire.md describes.
//
// Each feature is a column: an item feature has a row per candidate, a user feature one row. Rows
// that several candidates share are sent once, with the index row_to_<domain>.
package columns

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// TensorFlow's numbers of dtypes.
const (
	dtFloat  = 1
	dtString = 7
	dtInt64  = 9
)

// Request builds a tensorflow.serving.PredictRequest. Bytes reports the first column whose values
// do not fill its shape.
type Request struct {
	buffer []byte
	err    error
}

// New begins a request to a model's signature, such as "columnar".
func New(model, signature string) *Request {
	spec := append(field(1, []byte(model)), field(3, []byte(signature))...)
	return &Request{buffer: field(1, spec)}
}

// Int64 adds a column of integers, row-major.
func (r *Request) Int64(name string, values []int64, shape ...int) {
	r.numbers(name, dtInt64, values, len(values), shape)
}

// Float32 adds a column of floats, row-major.
func (r *Request) Float32(name string, values []float32, shape ...int) {
	r.numbers(name, dtFloat, values, len(values), shape)
}

// Strings adds a column of strings, row-major.
func (r *Request) Strings(name string, values []string, shape ...int) {
	var body []byte
	for _, value := range values {
		body = append(body, field(8, []byte(value))...) // string_val
	}
	r.input(name, dtString, body, len(values), shape)
}

// RowTo adds the index of a domain ("user", "shop"): for each candidate, its row of that domain.
func (r *Request) RowTo(domain string, rows []int64) {
	r.Int64("row_to_"+domain, rows, len(rows))
}

// Bytes returns the message.
func (r *Request) Bytes() ([]byte, error) {
	return r.buffer, r.err
}

func (r *Request) numbers(name string, dtype uint64, values interface{}, count int, shape []int) {
	var body bytes.Buffer
	binary.Write(&body, binary.LittleEndian, values) // cannot fail: writes to memory
	var content []byte
	if count > 0 {
		content = field(4, body.Bytes()) // tensor_content
	}
	r.input(name, dtype, content, count, shape)
}

func (r *Request) input(name string, dtype uint64, body []byte, count int, shape []int) {
	size, dims := 1, []byte{}
	for _, rows := range shape {
		size *= rows
		dims = append(dims, field(2, integer(1, uint64(rows)))...)
	}
	if size != count && r.err == nil {
		r.err = fmt.Errorf("column %q: %d values do not fill shape %v", name, count, shape)
	}
	tensor := append(integer(1, dtype), field(2, dims)...)
	entry := append(field(1, []byte(name)), field(2, append(tensor, body...))...)
	r.buffer = append(r.buffer, field(2, entry)...)
}

func field(number uint64, content []byte) []byte {
	return append(append(varint(number<<3|2), varint(uint64(len(content)))...), content...)
}

func integer(number, value uint64) []byte {
	return append(varint(number<<3), varint(value)...)
}

func varint(value uint64) []byte {
	buffer := make([]byte, binary.MaxVarintLen64)
	return buffer[:binary.PutUvarint(buffer, value)]
}

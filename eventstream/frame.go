package eventstream

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"sync"
)

// A Frame is a message, encoded once for all who get it.
type Frame struct {
	payload []byte
	binary  bool
	stamp   Stamp

	once  sync.Once
	bytes []byte // the event, without an ID
}

// NewFrame returns a message. Text must be UTF-8. Nobody may change payload any more.
// The zero Stamp is for what is no broadcast, or one that is not remembered.
func NewFrame(payload []byte, binary bool, stamp Stamp) *Frame {
	return &Frame{payload: payload, binary: binary, stamp: stamp}
}

// event returns the fields of the event and the empty line that ends it.
func (f *Frame) event() []byte {
	f.once.Do(func() {
		if f.binary {
			b := append(make([]byte, 0, len(f.payload)*4/3+32), "event: binary\ndata: "...)
			b = base64.StdEncoding.AppendEncode(b, f.payload)
			f.bytes = append(b, '\n', '\n')
			return
		}
		f.bytes = append(appendData(make([]byte, 0, len(f.payload)+32), f.payload), '\n')
	})
	return f.bytes
}

// appendData appends a text as "data" fields, one for each line. All that ends a line
// for a client, CR LF, CR and LF, becomes the LF between two of them: an event cannot
// say which it was.
func appendData(b, text []byte) []byte {
	for {
		end := bytes.IndexAny(text, "\r\n")
		b = append(b, "data: "...)
		if end < 0 {
			return append(append(b, text...), '\n')
		}
		b = append(append(b, text[:end]...), '\n')
		if bytes.HasPrefix(text[end:], []byte("\r\n")) {
			end++
		}
		text = text[end+1:]
	}
}

// MarshalJSON writes the frame as polls have it: {"data":"text"}, which can be any, or
// {"binary":"base64"}.
func (f *Frame) MarshalJSON() ([]byte, error) {
	if f.binary {
		return json.Marshal(struct {
			Binary []byte `json:"binary"`
		}{append([]byte{}, f.payload...)}) // null is no string
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Data string `json:"data"`
	}{string(f.payload)})
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

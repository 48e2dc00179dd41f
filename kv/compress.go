package kv

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A coding says how a stored string is compressed.
type coding uint8

const (
	codingPlain coding = iota
	codingGzip
	codingBrotli
	codingZstd
)

// packed is a string as it is stored. With another coding than codingPlain the
// data are the length of the string (u32, little endian) and then what the
// compression made of it.
type packed struct {
	data   []byte
	coding coding
}

func plain(b []byte) packed { return packed{data: b} }

// length is the length of the string.
func (p packed) length() int {
	if p.coding == codingPlain {
		return len(p.data)
	}
	return int(binary.LittleEndian.Uint32(p.data))
}

// A codec compresses and decompresses. Its methods may be called from any
// goroutine.
type codec struct {
	least   int // bytes that are worth it
	coding  coding
	writers sync.Pool // writer; for gzip and brotli
	encoder *zstd.Encoder
	decoder *zstd.Decoder
}

type writer interface {
	io.WriteCloser
	Reset(io.Writer)
}

// newCodec returns what compresses as the Options say, nil for nothing.
func newCodec(o Options) (*codec, error) {
	c := &codec{least: o.CompressMin}
	switch o.Compression {
	case CompressGzip:
		c.coding = codingGzip
		c.writers.New = func() any {
			w, _ := gzip.NewWriterLevel(nil, o.CompressLevel) // the level is checked
			return writer(w)
		}
	case CompressBrotli:
		c.coding = codingBrotli
		c.writers.New = func() any { return writer(brotli.NewWriterLevel(nil, o.CompressLevel)) }
	case CompressZstd:
		c.coding = codingZstd
		var err error
		// zstd's own levels go to 22, of which 1 to 19 are for everyday use.
		level := zstd.EncoderLevelFromZstd(o.CompressLevel * 2)
		if c.encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true)); err != nil {
			return nil, fmt.Errorf("kv: %w", err)
		}
		if c.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxValue+1)); err != nil {
			return nil, fmt.Errorf("kv: %w", err)
		}
	default:
		return nil, nil
	}
	return c, nil
}

// pack compresses a value if that makes it smaller.
func (s *Store) pack(value []byte) packed {
	c := s.codec
	if c == nil || len(value) < c.least || len(value) > MaxValue {
		return plain(value)
	}
	p := packed{coding: c.coding, data: make([]byte, 4, len(value)/2)}
	binary.LittleEndian.PutUint32(p.data, uint32(len(value)))
	if c.encoder != nil {
		p.data = c.encoder.EncodeAll(value, p.data)
	} else {
		out := bytes.NewBuffer(p.data)
		w := c.writers.Get().(writer)
		w.Reset(out)
		_, _ = w.Write(value) // a Buffer takes everything
		_ = w.Close()
		c.writers.Put(w)
		p.data = out.Bytes()
	}
	if len(p.data) >= len(value) {
		return plain(value)
	}
	return p
}

// unpackAny returns a stored string of any coding.
func unpackAny(p packed) ([]byte, error) {
	c := &codec{}
	if p.coding == codingZstd {
		var err error
		if c.decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(MaxValue+1)); err != nil {
			return nil, err
		}
		defer c.decoder.Close()
	}
	return c.unpack(nil, p)
}

// unpack appends a stored string to dst.
func (c *codec) unpack(dst []byte, p packed) ([]byte, error) {
	if p.coding == codingPlain {
		return append(dst, p.data...), nil
	}
	if p.length() > MaxValue {
		return nil, ErrTooLong
	}
	n, data := p.length(), p.data[4:]
	want := len(dst) + n
	var err error
	switch p.coding {
	case codingZstd:
		dst, err = c.decoder.DecodeAll(data, dst)
	case codingBrotli:
		dst, err = appendAll(dst, n, brotli.NewReader(bytes.NewReader(data)))
	case codingGzip:
		var r *gzip.Reader
		if r, err = gzip.NewReader(bytes.NewReader(data)); err == nil {
			dst, err = appendAll(dst, n, r)
		}
	}
	if err == nil && len(dst) != want {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, fmt.Errorf("kv: decompress a value: %w", err)
	}
	return dst, nil
}

// appendAll appends n bytes of r to dst. It believes n only as far as r has them.
func appendAll(dst []byte, n int, r io.Reader) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	out.Grow(min(n, 1<<20))
	_, err := io.CopyN(out, r, int64(n))
	return out.Bytes(), err
}

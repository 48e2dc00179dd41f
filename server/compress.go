package server

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// An encoder encodes a stream. What was written before a Flush can be decoded by
// then.
type encoder interface {
	io.WriteCloser
	Flush() error
	Reset(io.Writer)
}

// maxEncoders bounds the encoders that are in use at a time. Each holds 1 to 3 MiB;
// an answer that finds none goes out as it is.
const maxEncoders = 64

// encoders is the supply of a server. Those that nobody uses are the garbage
// collector's.
type encoders struct {
	inUse atomic.Int64
	pools [codings]sync.Pool // of one level each
}

// newEncoders returns encoders of a level, 1 to 9: 1 is the fastest.
func newEncoders(level int) *encoders {
	e := &encoders{}
	e.pools[gzipCoding].New = func() any {
		w, _ := gzip.NewWriterLevel(nil, level) // levels 1 to 9 exist
		return encoder(w)
	}
	// Brotli's lowest is slower than gzip's and no smaller, its upper ones take
	// tens of MiB. The window is what a page or a script fills.
	quality := min(level+1, 6)
	e.pools[brotliCoding].New = func() any {
		return encoder(brotli.NewWriterOptions(nil, brotli.WriterOptions{Quality: quality, LGWin: 18}))
	}
	speed := zstd.SpeedFastest
	if level > 3 {
		speed = zstd.SpeedDefault
	}
	e.pools[zstdCoding].New = func() any {
		w, _ := zstd.NewWriter(nil, // the options are possible
			zstd.WithEncoderLevel(speed), zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(256<<10))
		return encoder(w)
	}
	return e
}

// get returns an encoder that writes to w, or nil when too many are in use. Give it
// back by put.
func (e *encoders) get(c coding, w io.Writer) encoder {
	if e.inUse.Add(1) > maxEncoders {
		e.inUse.Add(-1)
		return nil
	}
	z := e.pools[c].Get().(encoder)
	z.Reset(w)
	return z
}

func (e *encoders) put(c coding, z encoder) {
	z.Reset(nil) // holds nobody's connection
	e.pools[c].Put(z)
	e.inUse.Add(-1)
}

// encode encodes a whole body into to. It reports false when no encoder is free.
func (e *encoders) encode(to *bytes.Buffer, c coding, body []byte) bool {
	z := e.get(c, to)
	if z == nil {
		return false
	}
	defer e.put(c, z)
	_, err := z.Write(body)
	return err == nil && z.Close() == nil // a buffer takes everything
}

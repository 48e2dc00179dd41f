package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// measureStreams prints what an idle event stream costs, which is what clients get
// whose network lets no socket through.
func measureStreams(ctx context.Context, r *socketReport) error {
	fmt.Println("event streams: PSS of all processes, growth from 1,000 idle ones on")
	for _, secure := range []bool{false, true} {
		s, err := startSockets(ctx, r, secure)
		if err != nil {
			return err
		}
		var conns []net.Conn
		per, after, err := r.growth(s, func(n int) error {
			more, err := openStreams(s.addr, secure, len(conns), n, 32)
			conns = append(conns, more...)
			return err
		}, func() {
			for _, c := range conns {
				_ = c.Close() // nobody is told
			}
		})
		s.stop()
		if err != nil {
			return err
		}
		if secure {
			r.atMost("KB an idle event stream with TLS", per/1024, 16)
		} else {
			r.atMost("KB an idle event stream", per/1024, 6)
			r.atMost("memory after a crowd of event streams has left, times before", after, 1.2)
		}
	}
	return nil
}

// openStreams opens idle event streams, so many at a time.
func openStreams(addr string, secure bool, from, n, parallel int) ([]net.Conn, error) {
	conns, errs := make([]net.Conn, n), make([]error, parallel)
	var wg sync.WaitGroup
	for worker := range parallel {
		wg.Go(func() {
			for i := worker; i < n && errs[worker] == nil; i += parallel {
				conns[i], errs[worker] = openStream(addr, secure, from+i)
			}
		})
	}
	wg.Wait()
	return conns, errors.Join(errs...)
}

// openStream opens one, from one of several addresses of the loopback, and reads its
// first event.
func openStream(addr string, secure bool, index int) (net.Conn, error) {
	d := &net.Dialer{Timeout: dialTimeout, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+index%8))}}
	conn, err := d.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	if secure {
		conn = tls.Client(conn, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	}
	_ = conn.SetDeadline(time.Now().Add(dialTimeout)) // it is one of package net
	if _, err := io.WriteString(conn, streamRequest(addr)); err != nil {
		return nil, err
	}
	var got []byte
	for b := make([]byte, 2048); !bytes.Contains(got, []byte("\n\n")); {
		n, err := conn.Read(b)
		if got = append(got, b[:n]...); err != nil {
			return nil, fmt.Errorf("event stream: %q: %w", got, err)
		}
	}
	if !bytes.HasPrefix(got, []byte("HTTP/1.1 200 ")) || !bytes.Contains(got, []byte("event: connection")) {
		return nil, fmt.Errorf("event stream: %q", got)
	}
	return conn, nil
}

// streamRequest is the request, with what a browser would send.
func streamRequest(host string) string {
	return "GET / HTTP/1.1\r\nHost: " + host + "\r\nAccept: text/event-stream\r\nCache-Control: no-cache\r\n" +
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\r\nReferer: http://" + host + "/\r\n" +
		"Accept-Encoding: gzip, deflate, br\r\nAccept-Language: en-GB,en;q=0.9\r\nCookie: session=0123456789abcdef0123456789abcdef\r\n\r\n"
}

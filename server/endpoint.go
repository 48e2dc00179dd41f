package server

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"

	"ephpm/descriptor"
)

// An endpoint is a listener and what is spoken on it.
type endpoint struct {
	net.Listener
	tls bool
}

// listenAll opens the listeners of a checked configuration, those for plain HTTP
// first. With certificates and no address of its own for TLS, Listen speaks TLS.
func listenAll(c Config) ([]endpoint, error) {
	var endpoints []endpoint
	open := func(key string, list Addresses, tls bool) error {
		for _, addr := range list {
			l, err := listen(list.network(addr), addr, key)
			if err != nil {
				return err
			}
			endpoints = append(endpoints, endpoint{Listener: l, tls: tls})
		}
		return nil
	}
	s := c.Server
	err := open("[server] listen", s.Listen, c.speaksTLS() && len(s.TLS.Listen) == 0)
	if err == nil {
		err = open("[server.tls] listen", s.TLS.Listen, true)
	}
	if err != nil {
		closeAll(endpoints)
		return nil, err
	}
	return endpoints, nil
}

// ErrPortTaken is returned by New when somebody else listens on a port.
var ErrPortTaken = errors.New("another program has this port")

// listen opens a TCP listener. Its errors say what to do; key is where the address
// is from.
func listen(network, addr, key string) (net.Listener, error) {
	l, err := net.Listen(network, addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("listen on %s: %w: stop it, or choose another with %s", addr, ErrPortTaken, key)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("listen on %s: not permitted: ports below 1024 need root or CAP_NET_BIND_SERVICE; or choose another with %s", addr, key)
	case err != nil:
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// closeAll closes listeners that served nobody.
func closeAll(endpoints []endpoint) {
	for _, e := range endpoints {
		_ = e.Close() // as above
	}
}

// listenPort returns the port of the first listener that speaks TLS, or of the first
// that does not; 0 when there is none.
func listenPort(endpoints []endpoint, tls bool) int {
	for _, e := range endpoints {
		if e.tls != tls {
			continue
		}
		if addr, ok := e.Addr().(*net.TCPAddr); ok {
			return addr.Port
		}
	}
	return 0
}

// String names the endpoint for the log.
func (e endpoint) String() string {
	if e.tls {
		return "HTTPS"
	}
	return "HTTP"
}

// serve accepts connections until the server is closed, and says why it ended.
func (e endpoint) serve(hs *http.Server) error {
	var err error
	if e.tls {
		err = hs.ServeTLS(descriptor.Parkable(e.Listener), "", "")
	} else {
		err = hs.Serve(e.Listener)
	}
	return fmt.Errorf("accept on %s: %w", e.Addr(), err)
}

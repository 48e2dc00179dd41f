package server

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Addresses are those of listeners, "host:port". An empty host means every address
// of the machine, "0.0.0.0" every one of IPv4; port 0 means a free one. In a file
// they are one string or a list.
type Addresses []string

// UnmarshalTOML sets the addresses from a string or a list of strings.
func (a *Addresses) UnmarshalTOML(v any) error {
	var all Addresses
	switch v := v.(type) {
	case string:
		if v != "" {
			all = Addresses{v}
		}
	case []any:
		for _, e := range v {
			s, ok := e.(string)
			if !ok {
				return errors.New(`want addresses such as [":80", "[::1]:8080"]`)
			}
			all = append(all, s)
		}
	default:
		return errors.New(`want an address such as ":8080", or a list of them`)
	}
	*a = all
	return nil
}

// String returns the addresses with commas between them.
func (a Addresses) String() string { return strings.Join(a, ", ") }

// addresses checks the addresses of a key.
func (k *checks) addresses(key string, list Addresses) {
	for i, addr := range list {
		if slices.Contains(list[:i], addr) {
			k.add(key, "%q is there twice", addr)
			continue
		}
		k.address(key, addr)
	}
}

func (k *checks) address(key, addr string) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		k.add(key, `%q is not an address such as "0.0.0.0:8080", "[::1]:8080" or ":8080"`, addr)
		return
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strings.HasPrefix(port, "+") {
		k.add(key, "%q is not a port; want a number from 0 to 65535, 0 for a free one", port)
	} else if strings.ContainsAny(host, "/ ") {
		k.add(key, `%q is not a host; want an address and a port such as "0.0.0.0:%d"`, host, n)
	}
}

// network returns what net.Listen is told for an address of a list. Go takes
// "0.0.0.0" and "[::]" for one and the same, every address of both families. Here
// the first is IPv4 only, and the second leaves IPv4 to it when both are listed.
func (a Addresses) network(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && ip.Is4():
		return "tcp4"
	case err == nil && ip.IsUnspecified() && slices.Contains(a, "0.0.0.0:"+port):
		return "tcp6"
	}
	return "tcp"
}
